import assert from "node:assert/strict";
import { test } from "node:test";
import { getAt, replaceAt } from "../../../model/cell/document.ts";
import { cidr, ipv4 } from "../../../model/cell/identifiers.ts";
import { readQuery } from "../../../model/contract/request.ts";
import { diagnosticPages } from "../../../model/diagnostics/diagnostic-codes.ts";
import { imagePages, refusalPages } from "../../../model/diagnostics/pages/refusals.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { limits } from "../../../model/limits.ts";
import { checkDocument } from "../../../model/specification/specification.ts";
import { childOf, Root, rootWithTenancy } from "../model/root.testing.ts";
import type { ControllerResponse } from "../requests/requests.ts";
import { World } from "../world.testing.ts";

/*
 * The pages of codes that no text of a specification leads to: for each, the request that is refused with it and the
 * mended one. Those about texts are run by `model/diagnostics/diagnostic-codes.test.ts`.
 */
const cell = (inside: JsonObject = {}, name = "shop"): JsonObject => ({ [name]: { "x.type": "Cell", ...inside } });
const vm: JsonObject = { "x.type": "VM", "x.memory": 128 };
const nested = (depth: number): JsonObject => {
  let document: JsonObject = {};
  for (let at = 0; at < depth; at++) document = { a: document };
  return document;
};

/** Codes of an answer: its own, or those of its diagnostics where these say more. */
function codesOf({ status, body }: ControllerResponse): readonly string[] {
  if (status === 200) return [];
  const { error } = body as { error: { code: string; diagnostics?: readonly { code: string }[] } };
  return [error.code, ...(error.diagnostics ?? []).map(({ code }) => code)];
}
const ask =
  (request: object): (() => readonly string[]) =>
  () => {
    const world = new World();
    world.put(cell({ web: vm }));
    return codesOf(world.ask(request));
  };
const put = (json: Json, more: object = {}): (() => readonly string[]) =>
  ask({ method: "PUT", path: "", json, ...more });
const failing = (result: { ok: boolean; error?: { code: string } | readonly { code: string }[] }): readonly string[] =>
  [result.error ?? []].flat().map(({ code }) => code);
/** Takes a volume away that was written to. */
const removal = (more: object) => (): readonly string[] => {
  const world = new World();
  const connection = { "x.type": "VolumeConnection", "x.vm": "<ref:../vm>", "x.volume": "<ref:../disk>" };
  world.put(cell({ vm, disk: { "x.type": "Volume", "x.size": 64 }, connection }));
  world.settle();
  world.put(cell({ vm, disk: { "x.type": "Volume", "x.size": 64 } }));
  return codesOf(world.ask({ method: "DELETE", path: "shop/disk", ...more }));
};
/** Asks for another size of a volume that a VM has had, or that a copy was made from. */
const resized =
  (sizeMiB: number, more: JsonObject = {}) =>
  (): readonly string[] => {
    const world = new World();
    const connection = { "x.type": "VolumeConnection", "x.vm": "<ref:../vm>", "x.volume": "<ref:../disk>" };
    const model = (size: number) => cell({ vm, disk: { "x.type": "Volume", "x.size": size }, connection, ...more });
    world.put(model(64));
    world.settle();
    return codesOf(world.ask({ method: "PUT", path: "", json: model(sizeMiB), allowDestroy: ["shop/disk"] }));
  };
const aCopy = { copy: { "x.type": "VolumeCopy", "x.image": "<ref:../disk>" } };
/** Gives the VM that the root controller runs in so much memory; it was made with 160 MiB. */
const ownVm = (memory: number) => (): readonly string[] => {
  const management = cidr("10.0.0.0/16");
  const at = { address: ipv4("10.0.0.31"), fingerprint: "ab".repeat(32) };
  const token = () => ({ token: "t", hash: "h" });
  const world = new World({ root: { management, authority: at, credentialHashes: [], token } });
  const data = { service: { roles: { controller: { cell: "shop", cellUid: "c1", cellNumber: 7 } } } };
  const card = { "x.type": "VirtualInterface", "x.vm": "<ref:../vm>", "x.subnet": "<ref:../net>" };
  const net = { "x.type": "Subnet", "x.size": 8, "x.addressRange": "internal" };
  const model = (size: number) => cell({ vm: { "x.type": "VM", "x.memory": size, "x.data": data }, card, net });
  world.put(model(160));
  world.settle();
  const json = model(memory);
  return codesOf(world.ask({ method: "PUT", path: "", json }));
};
/** Gives a child of the root cell to an account. */
const given = (account: string) => (): readonly string[] => {
  const root = new Root();
  root.put("", rootWithTenancy());
  return codesOf(root.put("root/cells/shop", childOf("shop", account)));
};
/** Says of hosts of an installation that has two, `h1` and `h2`, that they are in maintenance. */
const closed =
  (...hosts: readonly string[]) =>
  (): readonly string[] => {
    const root = new Root();
    root.put("", rootWithTenancy());
    root.hearHosts(["h1", "h2"]);
    const maintenance: JsonObject = { "x.type": "Host", "x.state": "maintenance" };
    return codesOf(
      root.put("", rootWithTenancy({ hosts: Object.fromEntries(hosts.map((host) => [host, maintenance])) })),
    );
  };
/** Says where `h1` stands, in an installation of one cluster, and whose that and its pod are. */
const placed =
  (cluster: string, owners: Readonly<Record<string, string>> = {}) =>
  (): readonly string[] => {
    const root = new Root();
    root.put("", rootWithTenancy());
    root.hearHosts(["h1", "h2"]);
    const dedications = Object.entries(owners).map(([of, to]): [string, JsonObject] => [
      `of-${of.replaceAll("/", "-")}`,
      { "x.type": "Dedication", "x.of": of, "x.to": to },
    ]);
    const model: JsonObject = {
      places: { z1: { "x.type": "Zone", p1: { "x.type": "Pod", c1: { "x.type": "Cluster" } } } },
      hosts: { h1: { "x.type": "Host", "x.cluster": cluster } },
      dedications: Object.fromEntries(dedications),
    };
    return codesOf(root.put("", rootWithTenancy(model)));
  };
/** Puts `h1`, which is as it says and empty, into a flavour. */
const flavored = (state: string) => (): readonly string[] => {
  const root = new Root();
  root.put("", rootWithTenancy({ flavors: { large: { "x.type": "HostFlavor", "x.units": 4 } } }));
  root.hearHosts(["h1", "h2"]);
  root.put("root/hosts/h1", { "x.type": "Host", "x.state": state });
  root.hearStanding("h1", []);
  return codesOf(root.put("root/hosts/h1", { "x.type": "Host", "x.state": state, "x.flavor": "large" }));
};
const bundle = (text: string): object => ({
  method: "PUT",
  path: "",
  bundle: { main: "shop.sf", files: { "shop.sf": text } },
});

const patch = (...json: readonly Json[]): (() => readonly string[]) => ask({ method: "PATCH", path: "", patch: json });

/** Gives a VM one memory and then another, each under its key. */
const once = (first: string, second: string) => (): readonly string[] => {
  const world = new World();
  world.put(cell({ web: vm }));
  const put = (json: number, key: string): ControllerResponse =>
    world.ask({
      method: "PUT",
      path: "shop/web/x.memory",
      json,
      by: { who: "operator", door: "gateway" },
      once: { key, digest: String(json) },
    });
  put(256, first);
  return codesOf(put(512, second));
};

/** A volume that is held, and is then written like that. */
const heldAnew = (more: JsonObject) => (): readonly string[] => {
  const world = new World();
  const grant = {
    "x.type": "VolumeGrant",
    "x.volume": "<ref:/shop/disk>",
    "x.cell": "<ref://primary.cells.internal/>",
  };
  const hold = { ...grant, "x.grant": "copy", "x.hold": "primary/volumes/a1" };
  const disk = { "x.type": "Volume", "x.size": 64 };
  world.put(cell({ disk, hold }));
  return codesOf(world.ask({ method: "PUT", path: "", json: cell({ disk: { ...disk, ...more }, hold }) }));
};

const examples: Readonly<Record<string, readonly [wrong: () => readonly string[], right: () => readonly string[]]>> = {
  "cell/wrong-name": [ask(bundle("store extends Cell { }")), ask(bundle('store extends Cell { x.name "shop"; }'))],
  "cell/account": [given("dev"), given("ROOT/acme/dev")],
  "cell/host": [closed("h9"), closed("h1")],
  "cell/place": [placed("c1"), placed("z1/p1/c1")],
  "cell/dedication": [
    placed("z1/p1/c1", { "z1/p1": "ROOT/acme", h1: "ROOT/other" }),
    placed("z1/p1/c1", { "z1/p1": "ROOT/acme", h1: "ROOT/acme/dev" }),
  ],
  "cell/pool": [flavored("enabled"), flavored("disabled")],
  "cell/no-open-host": [closed("h1", "h2"), closed("h1")],
  "cell/own-vm": [ownVm(640), ownVm(160)],
  "cell/volume-shrinks": [resized(32), resized(64)],
  "cell/volume-is-origin": [resized(128, aCopy), resized(128)],
  "cell/held": [heldAnew({ "x.import": "tiny" }), heldAnew({})],
  "limit/document": [
    () => failing(checkDocument(nested(limits.nesting + 44))),
    () => failing(checkDocument(cell(nested(20)))),
  ],
  "idempotency/other-request": [once("7f1c", "7f1c"), once("7f1c", "90ab")],
  "patch/invalid": [
    patch({ op: "replace", path: "/shop/wbe/x.memory", value: 512 }),
    patch({ op: "add", path: "/shop/web/x.memory", value: 512 }),
  ],
  "patch/test-failed": [
    patch({ op: "test", path: "/shop/web/x.memory", value: 256 }),
    patch({ op: "test", path: "/shop/web/x.memory", value: 128 }),
  ],
  "document/no-path": [
    () => failing(getAt(cell({ web: vm }), "shop/wbe")),
    () => failing(getAt(cell({ web: vm }), "shop/web")),
  ],
  "document/not-an-object": [() => failing(replaceAt(cell(), "", 5)), () => failing(replaceAt(cell(), "", cell()))],
  "bad-request": [ask({ method: "PUT", path: "" }), put(cell())],
  "image/format": [
    () => failing(readQuery("addImage", "/images/debian")),
    () => failing(readQuery("addImage", "/images/debian?format=qcow2")),
  ],
  "not-found": [ask({ method: "GET", path: "shop/wbe" }), ask({ method: "GET", path: "shop/web" })],
  "version-mismatch": [put(cell(), { ifMatch: 6 }), put(cell(), { ifMatch: 1 })],
  "invalid-specification": [
    ask(bundle("shop extends Cell { vm extends VM { } }")),
    ask(bundle("shop extends Cell { vm extends VM { x.memory 128; } }")),
  ],
  "change/destroys-data": [removal({}), removal({ allowDestroy: ["shop/disk"] })],
  conflict: [
    () => {
      const world = new World();
      world.put(cell({ vm: { ...vm, "x.desiredState": "off" } }));
      return codesOf(world.ask({ method: "EXEC-TARGET", vm: "shop/vm" }));
    },
    () => {
      const world = new World();
      world.put(cell({ vm }));
      return codesOf(world.ask({ method: "EXEC-TARGET", vm: "shop/vm" }));
    },
  ],
};

for (const [code, { wrong }] of diagnosticPages) {
  // No request leads there, only a fault in the planner, another command (model/smartfrog/language.test.ts) or what runs
  // a specification (runtime/specification/typescript/).
  const elsewhere = code === "internal" || code === "tree/no-component" || code.startsWith("typescript/");
  // The gateway and storage servers refuse with these before a controller hears of a request.
  const before = (code in refusalPages || code in imagePages) && !(code in examples);
  if (wrong.kind !== "request" || elsewhere || before) continue;
  test(`the examples of ${code}`, () => {
    const example = examples[code];
    assert.ok(example, "a request that is refused with this code");
    const [refused, accepted] = example;
    assert.ok(refused().includes(code), `${refused()} includes ${code}`);
    assert.deepEqual(accepted(), []);
  });
}
