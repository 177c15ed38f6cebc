// The TypeScript SDK as a client of `hearback mcp`: typescript.mjs HEARBACK PACKAGES 2|1
//
// It launches, waits, is told, kills, and finds its job again through another server process. The SDK checks every
// structured answer against the schema of its tool. `cargo xtask mcp` runs it.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const [hearback, packages, line] = process.argv.slice(2);
const require = createRequire(join(packages, 'package.json'));
const modern = line === '2';
const { Client } = require(modern ? '@modelcontextprotocol/client' : '@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require(
  modern ? '@modelcontextprotocol/client/stdio' : '@modelcontextprotocol/sdk/client/stdio.js',
);

async function connected(work) {
  const options = modern ? { versionNegotiation: { mode: 'auto' } } : {};
  const client = new Client({ name: 'test', version: '1' }, options);
  const updated = [];
  if (modern) {
    client.setNotificationHandler('notifications/resources/updated', (message) => updated.push(message.params.uri));
  } else {
    const { ResourceUpdatedNotificationSchema } = require('@modelcontextprotocol/sdk/types.js');
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, (message) => updated.push(message.params.uri));
  }
  await client.connect(new StdioClientTransport({ command: hearback, args: ['mcp'], env: { ...process.env } }));
  const tool = async (name, args = {}) => {
    const result = await client.callTool({ name, arguments: args });
    assert.ok(!result.isError, JSON.stringify(result));
    return result.structuredContent;
  };
  try {
    await work({ client, tool, updated });
  } finally {
    await client.close();
  }
}

const gate = join(process.env.HEARBACK_HOME, '..', `gate-typescript-${line}`);
const hold = 'const t = setInterval(() => { if (require("fs").existsSync(process.argv[1])) process.exit(3) }, 20)';
const held = { argv: [process.execPath, '-e', hold, gate] };
let kept;
await connected(async ({ client, tool, updated }) => {
  // The SDK validates answers of tools whose schemas it has seen.
  assert.equal((await client.listTools()).tools[0].name, 'launch');
  const launched = await tool('launch', { command: 'echo hello from a job' });
  const waited = await tool('wait', { jobs: [launched.job.id] });
  assert.deepEqual(waited.ended[0].outcome, { kind: 'exited', code: 0 });
  const printed = await tool('output', { job: launched.job.id });
  assert.match(printed.parts[0].text, /hello from a job/);
  const killed = await tool('launch', held);
  assert.equal((await tool('kill', { job: killed.job.id })).outcome.kind, 'killed');
  kept = (await tool('launch', held)).job.id;
  const uri = `hearback://jobs/${kept}`;
  const subscription = modern ? await client.listen({ resourceSubscriptions: [uri] }) : await client.subscribeResource({ uri });
  await tool('show', { job: kept });
  writeFileSync(gate, '');
  for (let tries = 0; updated.length === 0 && tries < 1000; tries++) await sleep(20);
  const read = await client.readResource({ uri });
  assert.deepEqual(JSON.parse(read.contents[0].text).outcome, { kind: 'exited', code: 3 });
  await sleep(300);
  // An unsolicited notification besides that of the subscription would be the second.
  assert.deepEqual(updated, [uri]);
  if (modern) await subscription.close();
  const missing = await client.callTool({ name: 'show', arguments: { job: '00000000' } });
  assert.ok(missing.isError);
});
// Another server process, which knows nothing but the store.
await connected(async ({ tool }) => {
  const job = await tool('show', { job: kept });
  assert.deepEqual(job.outcome, { kind: 'exited', code: 3 });
  assert.equal(job.follow_up.state, 'read');
});
console.log(`typescript ${line}.x: launched, waited, told, killed, reconnected`);
