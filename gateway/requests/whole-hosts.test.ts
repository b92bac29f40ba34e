import assert from "node:assert/strict";
import { test } from "node:test";
import { childOf, Root, rootWithTenancy } from "../../core/controller/model/root.testing.ts";
import type { ControllerRequest } from "../../core/controller/requests/requests.ts";
import type { Holdings } from "../../model/contract/tenancy/pools.ts";
import type { JsonObject } from "../../model/json/json.ts";
import type { CellSource } from "./cell-source.ts";
import { RefusedError } from "./refused.ts";
import { addFlavor, releaseDedication, removeFlavor, addDedication as toOwner, usableBy } from "./whole-hosts.ts";

/** The root controller, and a cell of an account with a VM at a host. */
function cloud(vmAt: string | null = null) {
  const root = new Root();
  root.put("", rootWithTenancy({ shop: childOf("shop", "ROOT/acme/dev") }));
  root.hearHosts(["h1", "h2"]);
  const z1: JsonObject = { "x.type": "Zone", p1: { "x.type": "Pod", c1: { "x.type": "Cluster" } } };
  assert.equal(root.put("root/places/z1", z1).status, 200);
  assert.equal(root.put("root/hosts/h1", { "x.type": "Host", "x.cluster": "z1/p1/c1" }).status, 200);
  const vm: JsonObject = { "x.type": "VM", $state: { uid: "s-1", phase: "ready", reason: null, host: vmAt } };
  const source: CellSource = {
    cells: async () =>
      new Map([
        ["root", undefined],
        ["shop", undefined],
      ]),
    ask: async (cell, { method, path, body, version }) => {
      if (cell === "shop") return { json: { shop: { "x.type": "Cell", vm } }, version: '"1"' };
      const [at = "", query = ""] = path.replace(/^model\/?/, "").split("?");
      const request: JsonObject = {
        method,
        path: at,
        state: query === "state=true",
        ...(body === undefined ? {} : { json: body }),
        ...(version === undefined ? {} : { ifMatch: Number(version.replaceAll('"', "")) }),
      };
      const answer = root.ask(request as unknown as ControllerRequest);
      if (answer.status === 200) return { json: answer.body, version: `"${answer.version}"` };
      throw new RefusedError(answer.status, (answer.body as unknown as { error: RefusedError["refusal"] }).error);
    },
    holdings: async () => root.ask({ method: "HOLDINGS", account: null }).body as unknown as Holdings,
  };
  return { root, source };
}
/** The owners of these tests are there. */
const addDedication = (source: CellSource, asked: Parameters<typeof toOwner>[1]) =>
  toOwner(source, asked, async () => undefined);
const refusal = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work;
    return "done";
  } catch (error) {
    assert.ok(error instanceof RefusedError);
    return `${error.statusCode} ${error.refusal.message}`;
  }
};

test("a flavour is an element of the root cell, once by its name, and goes when no host is of it", async () => {
  const { source, root } = cloud();
  assert.deepEqual(await addFlavor(source, { name: "large", description: "32 processors", units: 4 }), {
    name: "large",
    description: "32 processors",
    units: 4,
    free: 0,
    hosts: [],
  });
  assert.deepEqual(
    (await source.holdings()).flavors.map(({ name, units }) => [name, units]),
    [["large", 4]],
  );
  assert.match(
    await refusal(addFlavor(source, { name: "large", units: 1 })),
    /^409 there is a host flavour large already/,
  );
  assert.equal((await addFlavor(source, { name: "other", units: 1 })).name, "other");
  assert.deepEqual(await removeFlavor(source, "other"), { removed: "other" });
  assert.match(await refusal(removeFlavor(source, "small")), /^404 there is no host flavour small: there are large/);
  const into: JsonObject = { "x.type": "Host", "x.state": "disabled", "x.flavor": "large" };
  for (const peer of ["placer"])
    root.step({
      kind: "actual",
      from: peer as never,
      key: "controller.root/standing/h2",
      value: { vms: [], tag: null },
    });
  if (root.put("root/hosts/h2", into).status === 200)
    assert.match(await refusal(removeFlavor(source, "large")), /^400 .*large/);
  root.put("root/hosts/h2", { "x.type": "Host" });
  assert.deepEqual(await removeFlavor(source, "large"), { removed: "large" });
});

test("a dedication is given and taken back by requests, by the rules of commands and texts", async () => {
  const { source } = cloud();
  const one = await addDedication(source, { of: "h1", domain: "ROOT/acme", account: "dev" });
  const { uid = "", ...rest } = one;
  assert.deepEqual(rest, {
    of: "h1",
    level: "host",
    to: { kind: "account", path: "ROOT/acme/dev" },
    group: "DedicatedGrp-dev",
    released: [],
  });
  assert.match(await refusal(addDedication(source, { of: "h1", domain: "ROOT/acme" })), /^409 h1 is dedicated to/);
  assert.match(await refusal(addDedication(source, { of: "h9", domain: "ROOT/acme" })), /^400 there is no zone, pod/);
  assert.match(
    await refusal(addDedication(source, { of: "z1", domain: "ROOT/other" })),
    /^409 h1 in z1 is dedicated to/,
  );
  const above = await addDedication(source, { of: "z1/p1", domain: "ROOT/acme", account: "dev" });
  assert.deepEqual(above.released, ["h1"]);
  assert.deepEqual((await source.holdings()).dedications, [
    { uid: above.uid, of: "z1/p1", level: "pod", to: { kind: "account", path: "ROOT/acme/dev" } },
  ]);
  assert.match(await refusal(releaseDedication(source, uid)), /^404 there is no dedication/);
  assert.deepEqual(await releaseDedication(source, above.uid ?? ""), { removed: "z1/p1" });
  assert.deepEqual((await source.holdings()).dedications, []);
});

test("a host at which VMs of others run is given to nobody, and they are named", async () => {
  const { source } = cloud("h1");
  const to = { domain: "ROOT/acme", account: "ops" };
  for (const what of ["h1", "z1"])
    assert.match(
      await refusal(addDedication(source, { of: what, ...to })),
      /^409 VMs of others run in .*: shop\/vm at h1/,
    );
  assert.equal(
    (await addDedication(source, { of: "z1", domain: "ROOT/acme" })).of,
    "z1",
    "those of its own do not count",
  );
  const silent: CellSource = {
    ...source,
    ask: (cell, request) =>
      cell === "shop"
        ? Promise.reject(new RefusedError(502, { code: "controller-unreachable", message: "silent" }))
        : source.ask(cell, request),
  };
  assert.match(await refusal(addDedication(silent, { of: "h2", ...to })), /^502 silent/);
});

test("nothing is given to whom nobody knows", async () => {
  const { source } = cloud();
  const asked: unknown[] = [];
  const nobody = (owner: unknown): Promise<void> => {
    asked.push(owner);
    return Promise.reject(new RefusedError(400, { code: "bad-request", message: "there is no account" }));
  };
  const to = { of: "h1", domain: "ROOT/acme", account: "ops" };
  assert.equal(await refusal(toOwner(source, to, nobody)), "400 there is no account");
  assert.deepEqual(asked, [{ kind: "account", path: "ROOT/acme/ops" }]);
  assert.deepEqual((await source.holdings()).dedications, []);
});

test("of what is dedicated a cell is offered what its account may use, whoever asks", async () => {
  const { source } = cloud();
  await addDedication(source, { of: "h1", domain: "ROOT/acme", account: "ops" });
  await addDedication(source, { of: "z1", domain: "ROOT/acme" });
  const shown = async (from: CellSource, cell: string) => (await usableBy(from, cell)).map(({ of }) => of);
  assert.deepEqual(await shown(source, "shop"), ["z1"], "h1 is another account's of the same domain");
  assert.deepEqual(await shown(source, "root"), [], "the operator's own cell is in no domain below ROOT");
  const cells = async () => new Map([["bank", "ROOT/acme/ops"]]);
  assert.deepEqual(await shown({ ...source, cells }, "bank"), ["h1", "z1"], "as a session says whose it is");
  assert.equal(await refusal(usableBy({ ...source, cells }, "shop")), '404 there is no cell "shop"');
});
