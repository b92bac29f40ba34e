import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { Root } from "../model/root.testing.ts";
import type { ControllerRequest, ControllerResponse } from "../requests/requests.ts";
import { World } from "../world.testing.ts";

/*
 * What is said of hosts, owners and placement, and cannot be: each is refused before anything is touched, with where it is written, why, and what would
 * be right. `^` in a text is where a fault has its place.
 */
interface Row {
  readonly what: string;
  readonly text: string;
  readonly code: string;
  readonly says: RegExp;
  readonly right: RegExp;
}
const roots: readonly Row[] = [
  {
    what: "a place that is none",
    text: 'hosts extends { ^h3 extends Host { x.cluster "z1/p1/c2"; } }',
    code: "cell/place",
    says: /the cluster "z1\/p1\/c2", which is none/,
    right: /The clusters are z1\/p1\/c1\./,
  },
  {
    what: "a dedication of what is not there",
    text: 'dedications extends { ^d extends Dedication { x.of "z1/p2"; x.to "ROOT/acme"; } }',
    code: "cell/dedication",
    says: /There is no zone, pod, cluster or host "z1\/p2"/,
    right: /mean `z1\/p1`/,
  },
  {
    what: "one to what is no path of a domain",
    text: 'dedications extends { ^d extends Dedication { x.of "h3"; x.to "acme"; } }',
    code: "cell/dedication",
    says: /"acme" is no path of a domain/,
    right: /`cells domain list` shows them/,
  },
  {
    what: "one of the same place",
    text: 'dedications extends { ^d extends Dedication { x.of "z1/p1"; x.to "ROOT/acme"; } }',

    code: "cell/dedication",
    says: /z1\/p1 is dedicated already, by `root\/dedications\/rack`/,
    right: /Release z1\/p1 first/,
  },
  {
    what: "one that lies in another's",
    text: 'dedications extends { ^d extends Dedication { x.of "h1"; x.to "ROOT/other"; } }',

    code: "cell/dedication",
    says: /h1 stands in z1\/p1, which is dedicated to the domain ROOT\/acme/,
    right: /Name ROOT\/acme, .* or release z1\/p1 first/,
  },
  {
    what: "a planner that does not exist",
    text: 'offerings extends { o extends Offering { x.memory 512; x.planner ^"ImplicitDedicationPlaner"; } }',
    code: "schema/value",
    says: /`x\.planner` must be/,
    right: /Did you mean `ImplicitDedicationPlanner`/,
  },
  {
    what: "a mode that does not exist",
    text: 'offerings extends { o extends Offering { x.memory 512; x.planner "ImplicitDedicationPlanner"; x.mode ^"Preffered"; } }',
    code: "schema/value",
    says: /`x\.mode` must be/,
    right: /Did you mean `Preferred`/,
  },
  {
    what: "a mode beside another planner",
    text: 'offerings extends { ^o extends Offering { x.memory 512; x.mode "Strict"; } }',

    code: "cell/pool",
    says: /`x\.planner` is FirstFitPlanner/,
    right: /Write `x\.planner "ImplicitDedicationPlanner";`/,
  },
  {
    what: "a flavour on a host that is not empty",
    text: 'hosts extends { ^h2 extends Host { x.flavor "large"; } }',
    code: "cell/pool",
    says: /h2.*c1-7/,
    right: /Let them go elsewhere first, with `cells host drain`/,
  },
  {
    what: "a flavour on a host that takes VMs",
    text: 'hosts extends { ^h3 extends Host { x.flavor "large"; } }',
    code: "cell/pool",
    says: /h3 is enabled/,
    right: /disable/i,
  },
  {
    what: "an offering with more tags than a host can have",
    text: `offerings extends { ^o extends Offering { x.memory 512; x.tags ${JSON.stringify(Array.from({ length: 65 }, (_, at) => `t${at}`))}; } }`,
    code: "cell/pool",
    says: /`x\.tags` has 65 words, and may have 64/,
    right: /Leave some out/,
  },
  {
    what: "a flavour that is none",
    text: 'hosts extends { ^h3 extends Host { x.flavor "larg"; } }',
    code: "cell/pool",
    says: /larg/,
    right: /large/,
  },
  {
    what: "so many hosts for the cloud's own VMs as nobody may set",
    text: "x.placement.systemHosts ^17;",
    code: "schema/range",
    says: /`x\.placement\.systemHosts` is 17/,
    right: /must be from 0 to 16/,
  },
];
const shops: readonly Row[] = [
  {
    what: "a zone that is none",
    text: 'v extends VM { x.memory 128; x.placement.zone ^"z9"; }',
    code: "cell/no-host",
    says: /There is no host with the zone `z9`/,
    right: /z1/,
  },
  {
    what: "a tag that no host has",
    text: 'v extends VM { x.memory 128; x.placement.tags ^"sdd"; }',
    code: "cell/no-host",
    says: /the tag `sdd`/,
    right: /Did you mean `ssd`/,
  },
  {
    what: "an offering that is none",
    text: 'v extends VM { x.memory 128; x.placement.offering ^"smal"; }',
    code: "cell/offering",
    says: /There is no offering `smal`/,
    right: /Did you mean `small`/,
  },
  {
    what: "more memory than its offering has",
    text: 'v extends VM { x.memory ^512; x.placement.offering "small"; }',
    code: "cell/offering",
    says: /has 512 MiB, and a VM of the offering `small` at most 256/,
    right: /Write `x\.memory 256` or less/,
  },
  {
    what: "a wish for more memory than its offering has",
    text: 'v extends VM { x.memory 128; x.placement.offering "small"; x.placement.nice ^extends DATA { roomy extends DATA { memory 512; } } }',
    code: "cell/offering",
    says: /would get 512 MiB by its wish `roomy`, and a VM of the offering `small` has at most 256/,
    right: /Leave that wish out, or have it name `memory 256` or less/,
  },
  {
    what: "a wish for more processors than its offering has",
    text: 'v extends VM { x.memory 128; x.placement.offering "small"; x.placement.nice ^extends DATA { fast extends DATA { cpus 2; } } }',
    code: "cell/offering",
    says: /would get 2 processors by its wish `fast`/,
    right: /have it name `cpus 1` or less/,
  },
  {
    what: "an offering that is no name",
    text: "v extends VM { x.memory 128; x.placement.offering ^7; }",
    code: "schema/value",
    says: /is the name of an offering/,
    right: /Write a name/,
  },
  {
    what: "a mode that does not exist, of a VM",
    text: 'v extends VM { x.memory 128; x.placement.dedication ^"Preffered"; }',
    code: "schema/value",
    says: /is "strict" or "preferred"/,
    right: /preferred/,
  },
  {
    what: "a ratio of 0",
    text: "p extends Pool { x.cpuRatio ^0; }",
    code: "schema/range",
    says: /`x\.cpuRatio` is 0/,
    right: /must be from 1 to 16/,
  },
  {
    what: "more memory than is there",
    text: "p extends Pool { x.memoryPercent ^120; }",
    code: "schema/range",
    says: /`x\.memoryPercent` is 120/,
    right: /must be from 1 to 100/,
  },
  {
    what: "an image that can be none",
    text: 'p extends Pool { x.images ^["../debian"]; }',
    code: "schema/value",
    says: /`x\.images` has "\.\.\/debian", which is no image/,
    right: /Write the name of an image/,
  },
  {
    what: "a group with the name of one that is made by a dedication",
    text: 'DedicatedGrp-dev extends AffinityGroup { x.kind "host affinity"; }',

    code: "cell/dedication",
    says: /has the name of a group that is made by a dedication/,
    right: /another name|a name/,
  },
  {
    what: "a place of the operator's",
    text: 'd extends Dedication { x.of "h1"; x.to "ROOT/acme"; }',
    code: "cell/dedication",
    says: /whose hosts are says the root cell alone/,
    right: /Leave it out/,
  },
];

interface Said {
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
  readonly position?: { readonly line: number; readonly column: number };
}
const put = (name: string, text: string): ControllerRequest => {
  const source = `${name} extends Cell {\n${text.replace("^", "")}\n}\n`;
  return { method: "PUT", path: "", bundle: { main: "c.sf", files: { "c.sf": source } } };
};
function refused(row: Row, { status, body }: ControllerResponse): void {
  assert.equal(status, 400, `${row.what}: ${JSON.stringify(body)}`);
  const all = (body as unknown as { readonly error: { readonly diagnostics: readonly Said[] } }).error.diagnostics;
  const found = all.find(({ code, message }) => code === row.code && row.says.test(message));
  assert.ok(found !== undefined, `${row.what}: ${JSON.stringify(all)}`);
  assert.match(`${found.message} ${found.hint ?? ""}`, row.right, row.what);
  const marked = row.text.indexOf("^");
  if (marked >= 0) assert.deepEqual([found.position?.line, found.position?.column], [2, marked + 1], row.what);
}

test("what is said of hosts and owners in the root cell, and cannot be, is refused with place, cause and the right form", () => {
  const root = new Root();
  const base = [
    "places extends { z1 extends Zone { p1 extends Pod { c1 extends Cluster; } } }",
    "flavors extends { large extends HostFlavor { x.units 4; } }",
  ].join("\n");
  assert.equal(root.ask(put("root", base)).status, 200);
  root.hearHosts(["h1", "h2", "h3"]);
  for (const [path, json] of [
    ["root/hosts/h1", { "x.type": "Host", "x.cluster": "z1/p1/c1" }],
    ["root/hosts/h2", { "x.type": "Host", "x.state": "disabled" }],
    ["root/dedications/rack", { "x.type": "Dedication", "x.of": "z1/p1", "x.to": "ROOT/acme" }],
  ] as const satisfies readonly (readonly [string, JsonObject])[])
    assert.equal(root.put(path, json).status, 200);
  root.hearStanding("h2", ["c1-7"]);
  const before = JSON.stringify(root.model("root"));
  const told = (): Json => root.at("placer", "") as Json;
  const heard = JSON.stringify(told());
  for (const row of roots) {
    refused(row, root.ask(put("root", row.text)));
    assert.equal(JSON.stringify(root.model("root")), before, `${row.what}: nothing is touched`);
    assert.equal(JSON.stringify(told()), heard, `${row.what}: nobody hears of it`);
  }
});

test("what a cell asks of hosts, and no host can be, is refused with place, cause and the right form", () => {
  const world = new World();
  const marks = { places: ["z1/p1/c1"], tags: ["ssd"], properties: [] };
  const hosts = [{ host: "h1", memoryMiB: 4096, cpus: 8, cpuSpeedMHz: 2000 }];
  const offerings = [{ name: "small", memoryMiB: 256, cpus: 1 }];
  const value = { hosts, complete: true, marks, offerings };
  world.step({ kind: "actual", from: peerName("placer"), key: "hosts", value });
  for (const row of shops) {
    refused(row, world.ask(put("shop", row.text)));
    assert.deepEqual(world.documents("placer", "placement"), [], `${row.what}: nothing is touched`);
  }
});
