#!/usr/bin/env node
// The command `hearback` of this package: the program that the package for this system carries.

import { spawnSync } from "node:child_process";
import { findBinary } from "./binary.js";

try {
  const { status, signal, error } = spawnSync(findBinary(), process.argv.slice(2), { stdio: "inherit" });
  if (error) throw error;
  if (signal) process.kill(process.pid, signal);
  else process.exitCode = status ?? 1;
} catch (error) {
  console.error(`error: ${(error as Error).message}`);
  const tip = (error as { tip?: string }).tip;
  if (tip !== undefined) console.error(`tip: ${tip}`);
  process.exitCode = 127;
}
