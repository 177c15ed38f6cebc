// Compiles the package and runs its tests against the program that HEARBACK names: `node scripts/test.mjs [FILE…]`.
//
// The files are named one by one, because Node 20 takes a folder there and Node 22 a pattern.

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL("..", import.meta.url));
const TSC = join(HERE, "node_modules/typescript/bin/tsc");

function node(...args) {
  const { status, error } = spawnSync(process.execPath, args, { cwd: HERE, stdio: "inherit" });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

if (!existsSync(TSC)) {
  console.error(`error: there is no compiler in ${HERE}node_modules\ntip: npm ci --prefix ${HERE}`);
  process.exit(1);
}
// A test whose source is gone would go on running.
rmSync(join(HERE, "dist"), { recursive: true, force: true });
node(TSC);
node(TSC, "--project", "../../examples/gateway-typescript");
const wanted = process.argv.slice(2);
const files = readdirSync(join(HERE, "dist/test")).filter((file) => file.endsWith(".test.js"));
const chosen = files.filter((file) => wanted.length === 0 || wanted.some((name) => file.startsWith(name)));
node("--test", "--test-timeout=300000", ...chosen.map((file) => `dist/test/${file}`));
