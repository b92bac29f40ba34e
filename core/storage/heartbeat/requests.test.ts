import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, ipv4, peerName, type Uid, uid } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Input } from "../../env.ts";
import { createAgentService } from "../agent/agent.ts";
import type { LeaseRecord, WorkAnswer } from "../agent/work.ts";
import type { Looked } from "./requests.ts";

const manager = peerName("ha-manager");
const lease = (vm: string, incarnation: number, host: string, epoch: number): LeaseRecord => ({
  epoch,
  holder: { vm: uid(vm), incarnation, host: hostName(host) },
  confirmed: true,
  fencing: false,
  access: { exportName: "x", pskIdentity: "i", pskHex: "ab", port: 10_900 + epoch },
});
/** A server with two volumes of a VM at h1, one of another there, and one of a VM at h2. */
const leases = {
  "c-1": lease("a-1", 4, "h1", 7),
  "c-2": lease("a-1", 4, "h1", 2),
  "c-3": lease("a-2", 1, "h1", 1),
  "c-4": lease("a-3", 1, "h2", 3),
};

const createRoom = (isAskedBefore = false) => {
  const service = createAgentService({ server: "s1", address: ipv4("10.0.2.1"), firstPort: 10_900 });
  const records = new Map(
    Object.entries(leases).map(([volume, record]) => [`lease/${volume}`, record as unknown as Json]),
  );
  let state = service.restore({ records, desiredAt: new Map() });
  /** What is said about requests, and all events. */
  const said = new Map<string, Json>();
  const give = (input: Input): readonly Json[] => {
    const stepped = service.step(state, input, { ms: 1000, wallMs: 1_700_000_000_000 });
    state = stepped.state;
    for (const effect of stepped.effects)
      if (effect.kind === "publish" && effect.key.includes("requests")) said.set(effect.key, effect.value);
    return stepped.effects.flatMap((effect) =>
      effect.kind === "reply" ? [effect.response] : effect.kind === "log" ? [effect.event] : [],
    );
  };
  const desire = (value: Json, key = "requests/h1") => give({ kind: "desired", from: manager, key, value });
  for (const [volume, { epoch, holder }] of Object.entries(leases)) {
    const value = { volume, epoch, holder } as unknown as Json;
    give({ kind: "desired", from: peerName("storage-manager"), key: `lease/${volume}`, value });
  }
  if (isAskedBefore) desire({ host: "h1" });
  give({ kind: "start" });
  give({ kind: "request", id: 1, request: { kind: "begin", start: "s1-1", found: null } });
  return {
    said,
    desire,
    look: (...exports: readonly Looked[]) =>
      give({ kind: "request", id: 1, request: { kind: "looked", exports } as unknown as Json }),
    counted: (): readonly Uid[] => {
      const [answer] = give({ kind: "request", id: 1, request: { kind: "work", known: 0 } });
      const { work } = answer as unknown as WorkAnswer;
      return work.flatMap((each) => (each.export?.counted === true ? [each.volume] : []));
    },
    machines: () => said.get("ha-manager/requests/h1"),
  };
};
const saw = (volume: string, epoch: number, served: boolean): Looked => ({ volume: uid(volume), epoch, served });
const machines = (a1: readonly [number, number], a2: readonly [number, number]): Json => ({
  host: "h1",
  machines: [
    { vm: "a-1", incarnation: 4, looked: a1[0], served: a1[1] },
    { vm: "a-2", incarnation: 1, looked: a2[0], served: a2[1] },
  ],
});

test("of a host that is asked about the exports are counted, and what was seen is said by machine", () => {
  const room = createRoom();
  assert.deepEqual(room.counted(), []);
  room.desire({ host: "h1" });
  assert.deepEqual(room.counted(), ["c-1", "c-2", "c-3"], "and of no other host");
  assert.deepEqual(room.machines(), machines([0, 0], [0, 0]), "who has machines there is known at once");
  room.look(saw("c-1", 7, true));
  assert.deepEqual(room.machines(), machines([0, 1], [0, 0]), "its other volume was not looked at yet");
  room.look(saw("c-1", 7, false), saw("c-2", 2, false), saw("c-3", 1, true));
  assert.deepEqual(room.machines(), machines([1, 1], [1, 1]));
  room.desire(null);
  assert.equal(room.machines(), null);
  assert.deepEqual(room.counted(), []);
  room.desire({ host: "h1" });
  assert.deepEqual(room.machines(), machines([0, 0], [0, 0]), "what was seen before says nothing of now");
});

test("what was seen of another lease, of another host or unasked counts for nothing", () => {
  const room = createRoom();
  room.look(saw("c-1", 7, true));
  room.desire({ host: "h1" });
  room.look(saw("c-1", 6, true), saw("c-4", 3, true), saw("c-9", 1, true));
  assert.deepEqual(room.machines(), machines([0, 0], [0, 0]));
  assert.deepEqual([...room.said.keys()], ["ha-manager/requests/h1"]);
});

test("it is looked also where it was asked before this start", () => {
  const room = createRoom(true);
  assert.deepEqual(room.counted(), ["c-1", "c-2", "c-3"]);
  assert.deepEqual(room.machines(), machines([0, 0], [0, 0]));
});

test("what is malformed, or of another host than its key, is refused and changes nothing", () => {
  const room = createRoom();
  for (const value of [{}, { host: "h2" }, { host: 1 }, "h1"])
    assert.deepEqual(room.desire(value), ["document/refused"], JSON.stringify(value));
  assert.deepEqual(room.counted(), []);
  assert.equal(room.said.size, 0);
});
