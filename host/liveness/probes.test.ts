import assert from "node:assert/strict";
import { test } from "node:test";
import type { DesiredVm } from "../../core/documents/vocabulary.ts";
import { ipv4, uid } from "../../model/cell/identifiers.ts";
import { askedOf, desiredVm, policy, Room } from "../service/manager.testing.ts";
import type { ProbeTarget } from "./liveness.ts";

const probed = {
  liveness: { protocol: "icmp", port: null, intervalMs: 500, failures: 3 },
} as const satisfies Partial<DesiredVm>;

test("which probes it is sent is said, and an answer to others says nothing: something else that is asked begins anew", () => {
  const room = new Room();
  room.found();
  room.desire("policy/shop", policy());
  room.desire("vm/a", desiredVm("a", 1, probed));
  room.settle();
  const answers = (port: number | null): void => {
    const asked = { ...askedOf("a"), ...(port === null ? {} : { protocol: "udp" as const, port }) };
    room.ask({ kind: "health", change: { vm: uid("a"), incarnation: 1, asked, health: "answering", reason: null } });
  };
  const liveness = (port: number) => ({ protocol: "udp", port, intervalMs: 500, failures: 3 }) as const;
  const seen = () => [room.vm("a")?.health, room.vm("a")?.probes?.port, room.vm("a")?.probes?.failures];
  answers(null);
  assert.deepEqual(seen(), ["answering", null, 3]);
  room.desire("vm/a", desiredVm("a", 1, { liveness: liveness(7) }));
  assert.deepEqual(seen(), ["starting", 7, 3]);
  answers(null);
  assert.equal(room.vm("a")?.health, "starting", "an answer to what was asked before");
  answers(7);
  assert.equal(room.vm("a")?.health, "answering");
  room.desire("vm/a", desiredVm("a", 1, { liveness: { ...liveness(7), failures: 9 } }));
  assert.deepEqual(seen(), ["answering", 7, 9], "how often is nothing else");
  room.desire("vm/a", desiredVm("a", 1));
  assert.deepEqual([room.vm("a")?.health, room.vm("a")?.probes], [undefined, null]);
});

test("the interface that is named is asked; one that the incarnation was started without is not replaced by another", () => {
  const room = new Room();
  room.found();
  room.desire("policy/shop", policy());
  const one = desiredVm("a", 1);
  const second = one.interfaces.map((each) => ({ ...each, uid: uid("a-j"), address: ipv4("10.64.0.7") }));
  const interfaces = [...one.interfaces, ...second];
  const named = (asked: string) =>
    desiredVm("a", 1, { interfaces, liveness: { ...probed.liveness, interface: uid(asked) } });
  room.desire("vm/a", named("a-j"));
  room.settle();
  const asked = () =>
    (room.ask({ kind: "probe-targets" }) as unknown as readonly ProbeTarget[]).map((each) => each.interface);
  assert.deepEqual(asked(), ["a-j"]);
  room.desire("vm/a", named("a-i"));
  room.settle();
  assert.deepEqual(asked(), ["a-i"], "while it runs");
  room.desire("vm/a", named("a-k"));
  room.settle();
  assert.deepEqual(asked(), []);
  assert.deepEqual([room.vm("a")?.phase, room.vm("a")?.health], ["waiting", "starting"]);
  assert.match(room.vm("a")?.reason ?? "", /started without the interface/);
});
