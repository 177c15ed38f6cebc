// Runs a job through the installed package, in the store that the argument names.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";

import { Client } from "hearback";

const home = process.argv[2];
const client = new Client({ home });
const launched = await client.launch([process.execPath, "-e", "console.log('hello'); process.exit(3)"]);
const ended = await client.wait(launched.id, { timeout_ms: 60_000 });
assert.equal(ended.timed_out, false);
assert.deepEqual(ended.jobs[0].outcome, { kind: "exited", code: 3 });
await client.close();

// The package carries the command, too.
const shown = execFileSync("node_modules/.bin/hearback", ["show", launched.id], {
  env: { ...process.env, HEARBACK_HOME: home },
  encoding: "utf8",
});
assert.match(shown, /exit code 3/);
