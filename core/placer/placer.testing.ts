import assert from "node:assert/strict";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import type { ActualPlacement } from "../documents/vocabulary.ts";
import type { Input } from "../env.ts";
import { createPlacer } from "./placer.ts";
import type { Loss } from "./room/loss.ts";
import type { HostRoom } from "./room/rooms.ts";
import type { Lack } from "./room/spare.ts";

interface SpareAnswer {
  readonly hosts: number;
  readonly lack: Lack | null;
}

export const shop = peerName("controller.shop");
export const host = (name: string, memoryMiB = 4000, more: JsonObject = {}): JsonObject => ({
  host: name,
  state: "up",
  address: "10.0.1.1",
  mac: "02:00:00:00:00:01",
  memoryMiB,
  reservedMiB: 1000,
  cpus: 2,
  cpuSpeedMHz: 2000,
  accelerator: "tcg",
  ...more,
});

/** A Placer whose hosts say what they have, and whose one client desires. */
export function world(names: readonly string[]) {
  const hosts = names.map((name) => peerName(`host.${name}`));
  const service = createPlacer({ self: peerName("placer"), hosts, presence: [peerName("presence.1")] });
  const records = new Map<string, Json>();
  const wanted = new Map<string, Json>();
  const administered = new Map<string, Json>();
  const published = new Map<string, ActualPlacement>();
  const alive = new Map<string, JsonObject>();
  let state = service.restore({ records, desiredAt: new Map() });
  const input = (what: Input) => {
    const step = service.step(state, what, { ms: 0, wallMs: 0 });
    state = step.state;
    for (const effect of step.effects) {
      if (effect.kind === "write" && effect.value === null) records.delete(effect.key);
      else if (effect.kind === "write") records.set(effect.key, effect.value);
      else if (effect.kind === "publish" && effect.value === null) published.delete(effect.key);
      else if (effect.kind === "publish") published.set(effect.key, effect.value as never);
    }
    return step.effects;
  };
  const say = (name: string, value: JsonObject | null) => {
    if (value !== null) alive.set(name, value);
    else alive.delete(name);
    const peer = peerName(`host.${name}`);
    if (value !== null) input({ kind: "actual", from: peer, key: "host", value });
    input({ kind: "reachable", peer, reachable: value !== null });
  };
  const restart = () => {
    published.clear();
    state = service.restore({ records: new Map(records), desiredAt: new Map() });
    for (const [key, value] of administered) input({ kind: "desired", from: peerName("controller.root"), key, value });
    for (const [key, value] of wanted) input({ kind: "desired", from: shop, key, value });
    input({ kind: "start" });
    input({ kind: "complete", peer: peerName("controller.root") });
    for (const name of names) if (!alive.has(name)) say(name, null);
    for (const [name, value] of [...alive]) say(name, value);
  };
  const want = (vm: string, memoryMiB: number | null, incarnation = 1, more: JsonObject = {}) => {
    const key = `placement/${vm}`;
    const base = {
      vm,
      path: `shop/${vm}`,
      cell: "shop",
      incarnation,
      memoryMiB,
      cpus: 1,
      cpuSpeedMHz: 0,
      placement: {},
    };
    const value = memoryMiB === null ? null : { ...base, ...more };
    if (value === null) wanted.delete(key);
    else wanted.set(key, value);
    return input({ kind: "desired", from: shop, key, value });
  };
  const root = peerName("controller.root");
  /** What the operator says of a host; null: nothing, it takes all that fits. */
  const administer = (name: string, state: "disabled" | "maintenance" | "reserved" | null): void => {
    const value = state === null ? null : { host: name, state };
    if (value === null) administered.delete(`host/${name}`);
    else administered.set(`host/${name}`, value);
    input({ kind: "desired", from: root, key: `host/${name}`, value });
  };
  const asked = (): {
    readonly hosts: readonly HostRoom[];
    readonly loss: Loss | null;
    readonly spare?: SpareAnswer;
  } => {
    const [reply] = input({ kind: "request", id: 1, request: { kind: "hosts" } });
    assert.equal(reply?.kind, "reply");
    return reply.response as unknown as ReturnType<typeof asked>;
  };
  const rooms = (): readonly HostRoom[] => asked().hosts;
  restart();
  return {
    published,
    want,
    input,
    say,
    restart,
    rooms,
    loss: (): Loss | null => asked().loss,
    spare: (): SpareAnswer | undefined => asked().spare,
    administer,
    records,
    wanted,
    get: (vm: string, client = shop) => published.get(`${client}/placement/${vm}`),
  };
}
