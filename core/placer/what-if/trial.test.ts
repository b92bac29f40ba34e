import assert from "node:assert/strict";
import { test } from "node:test";
import { type HostName, hostName, peerName, type Uid } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { host } from "../placer.testing.ts";
import { createPlacer } from "../placer.ts";
import type { PlacerState } from "../state.ts";
import { requestOf, root, shop } from "./clouds.testing.ts";
import { wholeOf } from "./sliced.ts";
import { trialOf } from "./trial.ts";

/* What would come of a move is what comes of it: the Placer is asked before, and the VM goes then. */
function cloud() {
  const peers = ["h1", "h2", "h3"].map((name) => peerName(`host.${name}`));
  const service = createPlacer({ self: peerName("placer"), hosts: peers });
  let state: PlacerState = service.restore({ records: new Map(), desiredAt: new Map() });
  const input = (what: Parameters<typeof service.step>[1]) => {
    const step = service.step(state, what, { ms: 0, wallMs: 0 });
    state = step.state;
    return step.effects;
  };
  input({ kind: "start" });
  for (const peer of peers) {
    input({ kind: "actual", from: peer, key: "host", value: host(peer.slice("host.".length), 4000) });
    input({ kind: "reachable", peer, reachable: true });
  }
  const desire = (from: typeof root, key: string, value: Json) => input({ kind: "desired", from, key, value });
  const to = { kind: "account", path: "ROOT/d/a" };
  desire(root, "owner/shop", { cell: "shop", account: to.path });
  const want = (more = {}) => desire(shop, "placement/v", { ...requestOf("v", "shop", more) } as never);
  const trial = (only: HostName | null = null) => {
    const wanted = state.wanted.get("v" as Uid);
    return wanted === undefined ? assert.fail() : wholeOf(trialOf(state, wanted, { vm: "shop/v", only }));
  };
  const dedicate = (name: string) => desire(root, `dedicated/${name}`, { host: name, of: name, level: "host", to });
  return { input, desire, want, trial, dedicate, stateOf: () => state };
}

test("each other host says whether it takes a VM, and which alerts that raises; nothing is kept", () => {
  const { want, trial, dedicate, stateOf, desire } = cloud();
  want({ memoryMiB: 100 });
  const from = stateOf().reservations.get("v" as Uid)?.host ?? assert.fail();
  const others = ["h1", "h2", "h3"].filter((each) => each !== from);
  assert.deepEqual(trial(), {
    vm: "shop/v",
    from,
    hosts: others.map((each) => ({ host: each, alerts: [] })),
  });
  const before = JSON.stringify([...stateOf().usage.keys(), ...stateOf().next.keys()]);
  dedicate(from);
  const [one = "", other = ""] = others;
  desire(root, `host/${other}`, { host: other, state: "disabled" });
  const [left, closed] = trial().hosts;
  assert.deepEqual([left?.host, left?.alerts.map(({ kind }) => kind), left?.refusal], [one, ["E1"], undefined]);
  assert.deepEqual([closed?.host, closed?.alerts, closed?.refusal?.kind], [other, [], "closed"]);
  assert.deepEqual(
    trial(hostName(one)).hosts.map((each) => each.host),
    [one],
  );
  assert.equal(JSON.stringify([...stateOf().usage.keys(), ...stateOf().next.keys()]), before);
});

test("what was said before a move is what is told when it is made", () => {
  const { want, trial, dedicate, stateOf } = cloud();
  want({ memoryMiB: 100 });
  const from = stateOf().reservations.get("v" as Uid)?.host ?? assert.fail();
  dedicate(from);
  for (const { host: to, alerts } of trial().hosts) {
    const effects = want({ memoryMiB: 100, moveTo: to });
    const told = effects.flatMap((each) => (each.kind === "log" && each.event === "placement/crosses" ? [each] : []));
    assert.deepEqual([told.map(({ fields }) => fields.alerts), told[0]?.fields.to], [["E1"], to]);
    assert.deepEqual(
      alerts.map(({ kind }) => kind),
      ["E1"],
    );
    want({ memoryMiB: 100 });
  }
});
