import { readFileSync } from "node:fs";
import { actualKey } from "../../core/documents/vocabulary.ts";
import { type Effect, type Input, readAnything, type Service } from "../../core/env.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { runService } from "../process/process.ts";

/**
 * A pair of services for the process tests, each its own process: the client desires numbers, the server publishes what
 * is desired of it, and both watch that no key's number ever gets smaller. Run with `fork`; asked over its channel.
 */
export const echoServer = peerName("placer");
export const echoClient = peerName("controller.test");

export type EchoRequest =
  | { readonly ask: "desire"; readonly key: string; readonly value: number | null }
  | { readonly ask: "view" };
export type EchoView = {
  readonly desired: { readonly [key: string]: Json };
  readonly actual: { readonly [key: string]: Json };
  readonly reachable: boolean;
  readonly violations: readonly string[];
};

interface EchoState {
  readonly desired: Map<string, Json>;
  readonly actual: Map<string, Json>;
  /** Key → highest number ever seen; the server keeps it durable. */
  readonly highest: Map<string, number>;
  readonly violations: string[];
  reachable: boolean;
}

const createState = (): EchoState => ({
  desired: new Map(),
  actual: new Map(),
  highest: new Map(),
  violations: [],
  reachable: false,
});

const rise = (state: EchoState, key: string, value: Json): void => {
  if (typeof value !== "number") return;
  const highest = state.highest.get(key) ?? 0;
  if (value < highest) state.violations.push(`${key} went from ${highest} back to ${value}`);
  state.highest.set(key, Math.max(highest, value));
};

const set = (map: Map<string, Json>, key: string, value: Json): void => {
  if (value === null) map.delete(key);
  else map.set(key, value);
};

const view = (state: EchoState): EchoView => ({
  desired: Object.fromEntries(state.desired),
  actual: Object.fromEntries(state.actual),
  reachable: state.reachable,
  violations: state.violations,
});

const stepServer = (state: EchoState, input: Input): Effect[] => {
  if (input.kind === "request") return [{ kind: "reply", id: input.id, response: view(state) }];
  if (input.kind !== "desired") return [];
  const { from, key, value } = input;
  rise(state, key, value);
  set(state.desired, key, value);
  const effects: Effect[] = [{ kind: "publish", key: actualKey(from, key), value }];
  if (value !== null) effects.push({ kind: "write", key, value });
  return effects;
};

const stepClient = (state: EchoState, input: Input): Effect[] => {
  switch (input.kind) {
    case "start":
      return [{ kind: "subscribe", to: echoServer, prefix: actualKey(echoClient, "") }];
    case "reachable":
      state.reachable = input.reachable;
      return [];
    case "actual":
      rise(state, input.key, input.value);
      set(state.actual, input.key.slice(actualKey(echoClient, "").length), input.value);
      return [];
    case "request": {
      const request = input.request as EchoRequest;
      if (request.ask === "view") return [{ kind: "reply", id: input.id, response: view(state) }];
      set(state.desired, request.key, request.value);
      return [
        { kind: "desire", to: echoServer, key: request.key, value: request.value },
        { kind: "reply", id: input.id, response: null },
      ];
    }
    default:
      return [];
  }
};

export const createEcho = (self: PeerName): Service<EchoState> => ({
  restore: ({ records, desiredAt }) => {
    const state = createState();
    for (const [key, value] of records) rise(state, key, value);
    for (const [key, value] of desiredAt.get(echoServer) ?? []) state.desired.set(key, value);
    return state;
  },
  step: (state, input) => ({
    state,
    effects: self === echoServer ? stepServer(state, input) : stepClient(state, input),
  }),
  entitled: (_state, peer, key) => key.startsWith(actualKey(peer, "")),
  accepts: (_peer, key) => key.startsWith("number/"),
  read: readAnything,
});

if (process.send !== undefined && process.argv[2] !== undefined && import.meta.filename === process.argv[1]) {
  const configuration = JSON.parse(readFileSync(process.argv[2], "utf8")) as ProcessConfiguration;
  const running = await runService({ configuration, service: createEcho(configuration.name) });
  process.on("message", async ({ id, request }: { id: number; request: Json }) => {
    const response = await running.request(request);
    if (process.connected) process.send?.({ id, response });
  });
  process.send({ id: 0, response: null });
}
