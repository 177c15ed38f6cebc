// Makes the npm packages: `node build.mjs PROGRAM OUT [PLATFORM]`.
//
// Two files appear in OUT, and their paths are printed: `hearback`, which is JavaScript, and the package for one system,
// which carries the program and on which the first depends where it fits. PROGRAM should be linked statically.

import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const LICENCES = ["LICENSE-MIT", "LICENSE-APACHE"];
const npm = process.platform === "win32" ? "npm.cmd" : "npm";

const [program, out, platform = `${process.platform}-${process.arch}`] = process.argv.slice(2);
if (out === undefined) {
  console.error("error: which program, and where to?\ntip: node build.mjs PROGRAM OUT [PLATFORM]");
  process.exit(2);
}

const main = JSON.parse(readFileSync(join(HERE, "package.json"), "utf8"));
// A program that does not run here is for another system, and is taken at its word.
if (platform === `${process.platform}-${process.arch}`) {
  const said = JSON.parse(execFileSync(program, ["--version", "--json"], { encoding: "utf8" })).version;
  if (said !== main.version) {
    console.error(`error: the program has version ${said}, and package.json ${main.version}`);
    process.exit(1);
  }
}

mkdirSync(out, { recursive: true });
const stage = mkdtempSync(join(tmpdir(), "hearback-npm-"));
try {
  const carrier = `@hearback/${platform}`;
  pack("main", (folder) => {
    if (!existsSync(join(HERE, "node_modules/typescript"))) run(npm, ["ci", "--no-audit", "--no-fund", "--loglevel", "error"], HERE);
    run(process.execPath, [join(HERE, "node_modules/typescript/bin/tsc"), "--outDir", join(folder, "dist")], HERE);
    cpSync(join(HERE, "README.md"), join(folder, "README.md"));
    const { scripts, devDependencies, ...kept } = main;
    return { ...kept, optionalDependencies: { [carrier]: main.version } };
  });
  pack("platform", (folder) => {
    const [os, cpu] = platform.split("-");
    const name = os === "win32" ? "hearback.exe" : "hearback";
    mkdirSync(join(folder, "bin"));
    cpSync(program, join(folder, "bin", name));
    chmodSync(join(folder, "bin", name), 0o755);
    const { version, license } = main;
    const description = `The hearback program for ${platform}. Install the package \`hearback\`, which brings it along.`;
    return { name: carrier, version, description, license, os: [os], cpu: [cpu], files: ["bin", ...LICENCES], preferUnplugged: true };
  });
} finally {
  rmSync(stage, { recursive: true, force: true });
}

/** Fills a folder, writes the `package.json` that `fill` returns, and packs it. */
function pack(name, fill) {
  const folder = join(stage, name);
  mkdirSync(folder);
  const manifest = fill(folder);
  for (const licence of LICENCES) cpSync(join(HERE, "../..", licence), join(folder, licence));
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest, null, 2) + "\n");
  const packed = execFileSync(npm, ["pack", "--json", "--loglevel", "error", "--pack-destination", resolve(out)], { cwd: folder, encoding: "utf8" });
  console.log(join(resolve(out), JSON.parse(packed)[0].filename));
}

function run(command, args, cwd) {
  execFileSync(command, args, { cwd, stdio: ["ignore", "inherit", "inherit"] });
}
