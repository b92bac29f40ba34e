import { readFileSync } from "node:fs";
import type { Frame } from "../../core/distribution/node/frames.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { createTransport, type Transport } from "../../runtime/transport/transport.ts";

/*
 * `listen FILE…`: a service for each configuration, each with links of its own. `dial FILE PEER…`: one service that connects to
 * all of these. Writes a line with how many connections there are whenever that changes.
 */
const greeting: readonly Frame[] = [{ frame: "ack", seq: 1 }];
let connections = 0;

const serve = async (file: string): Promise<Transport> => {
  const configuration = JSON.parse(readFileSync(file, "utf8")) as ProcessConfiguration;
  const transport = await createTransport(configuration, {
    input: (input) => {
      if (input.kind === "connected") connections += 1;
      else if (input.kind === "disconnected") connections -= 1;
      else return;
      if (input.kind === "connected") setImmediate(() => transport.send(input.connection, greeting));
      process.stdout.write(`${connections}\n`);
    },
    log: () => undefined,
  });
  return transport;
};

const [, , verb, ...words] = process.argv;
if (verb === "listen") {
  for (const file of words) await serve(file);
  process.stdout.write("listening\n");
} else {
  const [file = "", ...peers] = words;
  const transport = await serve(file);
  for (const peer of peers) transport.connect(peerName(peer));
}
