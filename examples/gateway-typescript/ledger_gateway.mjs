// The gateway of the campaign: it records in $LEDGER what was acknowledged, as soon as hearback has said so.

import { openSync, writeSync } from "node:fs";
import { Turn } from "../../packages/typescript/dist/src/turn.js";

const ledger = openSync(process.env.LEDGER, "a");
const done = Turn.prototype.done;
Turn.prototype.done = async function () {
  await done.call(this);
  const ids = this.items.map((item) => item.id);
  if (ids.length > 0) writeSync(ledger, `${JSON.stringify({ acknowledged: ids })}\n`);
};
await import("../../packages/typescript/dist/gateway/gateway.js");
