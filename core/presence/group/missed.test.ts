import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { presenceKey } from "../../documents/presence.ts";
import type { Input } from "../../env.ts";
import { createPresence } from "./group.ts";
import { mostMissed } from "./missed.ts";

test("a member that hears hardly anybody says nothing of whom it misses, until few are left", () => {
  const count = 3 * mostMissed;
  const hosts = Array.from({ length: count }, (_, index) => peerName(`host.h${index}`));
  const members = [1, 2, 3].map((number) => peerName(`presence.${number}`));
  const service = createPresence({ self: peerName("presence.1"), members, hosts });
  let state = service.restore({ records: new Map(), desiredAt: new Map() });
  const missed = new Map<string, Json>();
  let said = 0;
  const input = (what: Input): void => {
    const step = service.step(state, what, { ms: 0, wallMs: 0 });
    state = step.state;
    for (const effect of step.effects) {
      if (effect.kind !== "publish" || !effect.key.startsWith(presenceKey.missed(""))) continue;
      said += 1;
      if (effect.value === null) missed.delete(effect.key);
      else missed.set(effect.key, effect.value);
    }
  };
  const hear = (from: number, to: number, reachable: boolean): void => {
    for (const peer of hosts.slice(from, to)) input({ kind: "reachable", peer, reachable });
  };
  input({ kind: "start" });
  for (const [index, from] of hosts.entries())
    input({
      kind: "actual",
      from,
      key: presenceKey.self,
      value: { host: `h${index}`, generation: 1, incarnation: 0, answers: true },
    });
  hear(0, count, true);
  hear(0, mostMissed, false);
  assert.equal(missed.size, mostMissed, "these may have been lost");
  hear(mostMissed, count, false);
  assert.equal(missed.size, 0);
  hear(mostMissed / 2, count, true);
  assert.equal(missed.size, mostMissed / 2, "who has not come back");
  assert.equal(said, 2.5 * mostMissed);
  hear(0, 1, true);
  assert.equal(missed.size, mostMissed / 2 - 1);
});
