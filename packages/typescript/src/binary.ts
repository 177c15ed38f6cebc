import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { HearbackError } from "./error.js";

const NAME = process.platform === "win32" ? "hearback.exe" : "hearback";

/** The package that carries the program for this system, such as `@hearback/linux-x64`. */
export const PLATFORM_PACKAGE = `@hearback/${process.platform}-${process.arch}`;

/**
 * Finds the hearback program: in the package for this system, which npm installs along, else what `HEARBACK` names, else
 * on the `PATH`.
 */
export function findBinary(env: NodeJS.ProcessEnv = process.env): string {
  const carried = inPackage();
  if (carried !== undefined) return carried;
  // A file that is named but not there is not replaced by another program: the caller meant this one.
  if (env["HEARBACK"]) return env["HEARBACK"];
  for (const folder of (env["PATH"] ?? "").split(delimiter)) {
    const path = join(folder, NAME);
    if (folder !== "" && isProgram(path)) return path;
  }
  throw new HearbackError("not_found", "there is no hearback program", {
    tip: `install ${PLATFORM_PACKAGE}, or put hearback on the PATH, or name it in HEARBACK`,
  });
}

function inPackage(): string | undefined {
  try {
    return createRequire(import.meta.url).resolve(`${PLATFORM_PACKAGE}/bin/${NAME}`);
  } catch {
    return undefined;
  }
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    // `node_modules/.bin` has the command of this package, which would look for the program and find itself.
    return statSync(path).isFile() && realpathSync(path) !== fileURLToPath(new URL("program.js", import.meta.url));
  } catch {
    return false;
  }
}
