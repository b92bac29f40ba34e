import { type HelloFrame, protocolVersion } from "./frames.ts";
import { historyOf } from "./history.ts";
import type { Distribution } from "./node-types.ts";

/** What this service says first on a connection; the server repeats the client's session. */
export const helloOf = (node: Distribution, session: number, more: Pick<HelloFrame, "forked"> = {}): HelloFrame => ({
  frame: "hello",
  version: protocolVersion,
  generation: node.generation,
  session,
  name: node.self,
  ...(node.life === 0 ? {} : { life: node.life }),
  history: historyOf(node),
  ...(node.instance === undefined ? {} : { instance: node.instance }),
  ...more,
});
