import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, peerName } from "../../../model/cell/identifiers.ts";
import { presenceKey } from "../../documents/presence.ts";
import { toJson } from "../../outbox.ts";
import { shop, World } from "../world.testing.ts";

test("a controller follows the members of the Presence group that there are by now", () => {
  const world = new World();
  world.put(shop());
  const [first, second] = [peerName("presence.1"), peerName("presence.2")];
  const death = { host: hostName("h1"), generation: 3, incarnation: 0, declaredAt: 0, reporters: 3 };
  const declare = (by: typeof first): void => {
    world.step({ kind: "actual", from: by, key: presenceKey.death("h1"), value: toJson(death) });
  };
  const group = (...members: readonly string[]): string[] => {
    const before = world.effects.length;
    world.step({ kind: "request", id: 77, request: { method: "PRESENCE", members } });
    return world.effects.slice(before).flatMap((effect) => {
      if (effect.kind === "subscribe" || effect.kind === "unsubscribe")
        return [`${effect.kind} ${effect.to} ${effect.prefix}`];
      return effect.kind === "reply" && effect.id === 77 ? ["reply"] : [];
    });
  };
  const dead = (): boolean => world.standing("shop/web").includes("host-declared-dead");
  assert.deepEqual(group(first, second), ["unsubscribe presence.3 dead/", "reply"]);
  assert.deepEqual(group(first), ["unsubscribe presence.2 dead/", "reply"]);
  assert.deepEqual(group(first, second), ["subscribe presence.2 dead/", "reply"]);
  world.withdraw(peerName("host.h1"));
  assert.ok(!dead());
  declare(first);
  declare(second);
  assert.ok(dead());
  assert.deepEqual(group(second), ["unsubscribe presence.1 dead/", "reply"]);
  assert.ok(dead(), "the other one still says so");
  assert.deepEqual(group(), ["unsubscribe presence.2 dead/", "reply"]);
  assert.ok(!dead(), "nobody does any more");
  declare(second);
  assert.ok(!dead());
});
