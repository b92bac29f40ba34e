import { randomUUID } from "node:crypto";
import { carryOutBatch } from "../../core/distribution/node/batch.ts";
import { createNode, stepNode } from "../../core/distribution/node/node.ts";
import type { NodeInput, NodeOutput } from "../../core/distribution/node/types.ts";
import { type Effect, type Input, type Instant, readAnything, type Service } from "../../core/env.ts";
import type { PeerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { createTransport } from "../../runtime/transport/transport.ts";

/*
 * A peer of what is measured: its share of state distribution and its transport are the real ones, and it keeps nothing on
 * disk. Many are in one process, and their commits are in nobody's figures.
 */
export interface Peer {
  readonly port: number;
  /** Connections that others have made to it. */
  readonly heard: () => number;
  readonly desire: (to: PeerName, key: string, value: Json) => void;
  readonly stop: () => Promise<void>;
}
/** What it does at its start, and of whatever else it hears. */
export type Manner = (input: Input) => readonly Effect[];

const instant = (): Instant => ({ ms: performance.now(), wallMs: Date.now() });
const serviceOf = (manner: Manner): Service<null> => ({
  restore: () => null,
  entitled: () => true,
  audience: () => null,
  accepts: () => true,
  read: readAnything,
  step: (state, input) => {
    if (input.kind === "request") return { state, effects: [input.request as unknown as Effect] };
    return { state, effects: manner(input) };
  },
});

export async function startPeer(configuration: ProcessConfiguration, manner: Manner): Promise<Peer> {
  const node = createNode(serviceOf(manner), new Map(), configuration.name, instant(), randomUUID());
  const timers = new Map<string, NodeJS.Timeout>();
  let [waiting, heard, isScheduled]: [NodeInput[], number, boolean] = [[], 0, false];
  const input = (next: NodeInput): void => {
    if (next.kind === "connected" && next.role === "server") heard += 1;
    waiting.push(next);
    if (!isScheduled) setImmediate(turn);
    isScheduled = true;
  };
  const setTimers = (set: NodeOutput["timers"]): void => {
    for (const { name, afterMs } of set) {
      clearTimeout(timers.get(name));
      if (afterMs === null) timers.delete(name);
      else
        timers.set(
          name,
          setTimeout(() => input({ kind: "timer", name }), afterMs),
        );
    }
  };
  const turn = (): void => {
    isScheduled = false;
    const batch = waiting;
    waiting = [];
    const outputs = batch.map((each) => stepNode(node, each, instant()));
    for (const output of outputs) setTimers(output.timers);
    carryOutBatch(outputs, {
      commit: (_writes, durable) => durable(),
      log: () => undefined,
      reply: () => undefined,
      connect: transport.connect,
      send: transport.send,
      close: transport.close,
    });
  };
  const transport = await createTransport(configuration, { input, log: () => undefined });
  input({ kind: "start" });
  let requests = 0;
  return {
    port: transport.port,
    heard: () => heard,
    desire: (to, key, value) => {
      requests += 1;
      const effect: Effect = { kind: "desire", to, key, value };
      input({ kind: "request", id: requests, request: effect as unknown as Json });
    },
    stop: async () => {
      for (const timer of timers.values()) clearTimeout(timer);
      await transport.stop();
    },
  };
}
