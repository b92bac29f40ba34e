import assert from "node:assert/strict";
import { test } from "node:test";
import type { DesiredVm } from "../../core/documents/vocabulary.ts";
import { elementPath, uid } from "../../model/cell/identifiers.ts";
import { askedOf, desiredVm, policy, Room } from "./manager.testing.ts";

const probed = {
  liveness: { protocol: "icmp", port: null, intervalMs: 500, failures: 3 },
} as const satisfies Partial<DesiredVm>;

test("what is said of a VM that was renamed has its new path, and it goes on", () => {
  const room = new Room();
  room.found();
  room.desire("policy/shop", policy());
  room.desire("vm/a", desiredVm("a", 1, probed));
  room.settle();
  const said: unknown[] = [];
  const step = room.input.bind(room);
  room.input = (input) => {
    const effects = step(input);
    for (const effect of effects)
      if (effect.kind === "log" && effect.event.startsWith("machine/") && effect.fields.stage !== "gone")
        said.push(effect.fields.path);
    return effects;
  };
  const path = elementPath("shop/renamed/a");
  room.desire("vm/a", { ...desiredVm("a", 1, probed), path });
  room.settle();
  const change = { vm: uid("a"), incarnation: 1, asked: askedOf("a"), health: "answering", reason: null } as const;
  room.ask({ kind: "health", change });
  assert.deepEqual([room.machines.get(uid("a")), said], [1, [path]]);
  room.desire("vm/a", null);
  room.settle();
  assert.ok(said.length > 2, "its end is told when nobody names it any more");
  room.desire("vm/a", { ...desiredVm("a", 2, probed), path });
  room.settle();
  assert.ok(said.length > 2 && said.every((each) => each === path), JSON.stringify(said));
});
