// The TypeScript package as a door: a request a line on standard input, its answer on standard output. The first argument
// is the compiled package.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { Client, HearbackError } = await import(pathToFileURL(process.argv[2]).href);
const client = new Client();
const calls = {
  launch: ({ command, ...options }) => client.launch(command, options),
  show: ({ job }) => client.show(job),
  wait: ({ jobs }) => client.wait(jobs),
};
for await (const line of createInterface({ input: process.stdin })) {
  const { method, params } = JSON.parse(line);
  const answer = await calls[method](params).then(
    (result) => ({ result }),
    (error) => {
      if (!(error instanceof HearbackError)) throw error;
      return { error: { kind: error.kind, message: error.message } };
    },
  );
  console.log(JSON.stringify(answer));
}
