import { readFileSync } from "node:fs";
import { readAnything, type Service } from "../../../core/env.ts";
import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { createObserver } from "../../observation/observer.ts";
import { runService } from "../../process/process.ts";
import { certify } from "./certify.ts";

/**
 * `member.testing.ts CONFIG.json PEER…`, forked: a process with the identity that its configuration gives it, which wants to
 * reach the named peers and tells its parent of each that it reaches.
 */
const [, program, file, ...peers] = process.argv;

const createMember = (others: readonly PeerName[], reached: (peer: PeerName) => void): Service<null> => ({
  restore: () => null,
  step: (state, input) => {
    if (input.kind === "reachable" && input.reachable) reached(input.peer);
    const subscriptions = others.map((to) => ({ kind: "subscribe", to, prefix: "member/" }) as const);
    return { state, effects: input.kind === "start" ? subscriptions : [] };
  },
  entitled: () => true,
  accepts: () => false,
  read: readAnything,
});

if (process.send !== undefined && file !== undefined && import.meta.filename === program) {
  const configuration = JSON.parse(readFileSync(file, "utf8")) as ProcessConfiguration;
  const observer = createObserver(configuration.name);
  await certify(configuration, observer);
  process.send({ running: true });
  const service = createMember(peers.map(peerName), (peer) => process.send?.({ reached: peer }));
  await runService({ configuration, observer, service, goodbye: false });
}
