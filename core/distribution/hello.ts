import { type HelloFrame, protocolVersion } from "./frames.ts";
import type { Distribution } from "./node-types.ts";

/** What this service says first on a connection; the server repeats the client's session. */
export const helloOf = (node: Distribution, session: number): HelloFrame => ({
  frame: "hello",
  version: protocolVersion,
  generation: node.generation,
  session,
  name: node.self,
  ...(node.life === 0 ? {} : { life: node.life }),
});
