import assert from "node:assert/strict";
import { test } from "node:test";
import type { CellSummary, InstallationStatus } from "../../model/api.ts";
import type { HaItem } from "../../model/contract/operator/ha.ts";
import type { KnownHa } from "./known.ts";
import { doneLately, standingOf } from "./needs.ts";

const status = (more: object = {}): InstallationStatus =>
  ({ hosts: [], servers: [], services: [], ...more }) as unknown as InstallationStatus;
const cell = (more: Partial<CellSummary> = {}): CellSummary => ({
  cell: "shop",
  version: 1,
  phases: { ready: 2 },
  elements: 2,
  ...more,
});
const ha = (items: readonly object[], alerts: readonly object[] = []): KnownHa =>
  ({ protected: 1, storm: null, items, alerts }) as unknown as KnownHa;
const item = (more: Partial<HaItem> = {}): object => ({
  vm: "u1",
  incarnation: 1,
  cell: "db.shop",
  path: "db/vm",
  host: "h1",
  held: null,
  reason: "h1 is lost",
  step: "Fencing",
  since: "2026-01-01T00:00:00Z",
  ...more,
});
const titles = (...known: Parameters<typeof standingOf>): readonly string[] =>
  standingOf(...known).needs.map(({ title }) => title);

test("where all is well nothing needs anybody, nor where nothing is known yet", () => {
  assert.deepEqual(standingOf(status(), [cell()], ha([])), { needs: [], doing: [] });
  assert.deepEqual(standingOf(null, null, null), { needs: [], doing: [] });
});

test("what was done about machines stands there for ten minutes, the latest first", () => {
  const now = Date.parse("2026-01-01T00:10:00Z");
  const done = (vm: string, since: string, more: Partial<HaItem> = {}) =>
    item({ vm, type: "HA", step: "Done", outcome: `${vm} runs on h2`, since, ...more });
  const known = ha([
    done("old", "2026-01-01T00:00:00Z"),
    done("first", "2026-01-01T00:01:00Z"),
    done("last", "2026-01-01T00:02:00Z"),
    done("mute", "2026-01-01T00:01:30Z", { outcome: null }),
    done("ahead", "2026-01-01T00:10:01Z"),
    done("working", "2026-01-01T00:09:00Z", { step: "Fencing" }),
    done("cancelled", "2026-01-01T00:09:00Z", { step: "Cancelled" }),
  ]);
  assert.deepEqual(
    doneLately(known, now).map(({ title, outcome }) => [title, outcome]),
    [
      ["db/vm, which ran on h1", "ahead runs on h2"],
      ["db/vm, which ran on h1", "last runs on h2"],
      ["db/vm, which ran on h1", "h1 is lost"],
      ["db/vm, which ran on h1", "first runs on h2"],
    ],
  );
  assert.deepEqual(doneLately(null, now), []);
});

test("what is lost, silent, full or failed is named, with its reason and a way out", () => {
  const host = { host: "h1", state: "unreachable", presence: { state: "dead", since: null } };
  const all = status({
    hosts: [
      host,
      { host: "h2", state: "unreachable", presence: { state: "up", since: null } },
      { host: "h3", state: "up", remark: "its clock is wrong" },
    ],
    servers: [
      { server: "s1", totalMiB: 0, freeMiB: 0, state: "unreachable" },
      { server: "s2", totalMiB: 1000, freeMiB: 10, state: "up" },
    ],
    services: [{ name: "placer", running: false, lastEnd: "exit code 1" }],
    warnings: ["the page's certificate ends in 3 days"],
  });
  const failed = cell({ phases: { failed: 3 }, waiting: [{ path: "shop/a", phase: "failed", reason: "no image" }] });
  assert.deepEqual(titles(all, [failed, cell({ cell: "bank", phases: { unreachable: 1 } })], null), [
    "Host h1 is lost",
    "Host h2 does not answer",
    "Host h3 says something",
    "Storage server s1 does not answer",
    "Storage server s2 is almost full",
    "Service placer does not run",
    "The gateway says something of itself",
    "shop/a has failed",
    "2 more elements of shop have failed",
    "The controller of the cell bank does not answer",
  ]);
  assert.match(standingOf(all, [], ha([item()])).needs[0]?.reason ?? "", /is being looked after/);
});

test("what waits for a person needs him, and what does not is being done", () => {
  const held = standingOf(null, null, ha([item({ held: "many hosts were lost at once" })]));
  assert.deepEqual(
    held.needs.map(({ command }) => command),
    ["cells ha release db.shop/vm"],
  );
  assert.deepEqual(held.doing, []);
  const gaveUp = standingOf(null, null, ha([item({ gaveUp: true })]));
  assert.deepEqual(
    gaveUp.needs.map(({ command }) => command),
    ["cells ha retry db.shop/vm"],
  );
  const working = standingOf(null, null, ha([item(), item({ step: "Done" }), item({ step: "Cancelled" })]));
  assert.deepEqual([working.needs, working.doing.map(({ step }) => step)], [[], ["makes sure that it writes no more"]]);
  const alerts = [
    { kind: "held", subject: "shop:shop/a", since: "", sentence: "It was started ten times." },
    { kind: "of-later", subject: "x", since: "", sentence: "" },
  ];
  assert.deepEqual(titles(null, null, ha([], alerts)), [
    "shop:shop/a was started again too often, and waits",
    "of-later: x",
  ]);
});
