import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { peerName } from "../../../model/cell/identifiers.ts";
import { noUsage, type Usage } from "../../../model/check/check-limits.ts";
import type { Limits } from "../../../model/contract/tenancy/quotas.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import type { DesiredCell } from "../../documents/cells.ts";
import { toJson } from "../../outbox.ts";
import { childOf, Root, rootWithTenancy } from "./root.testing.ts";

const tenancy = peerName("tenancy");
const limit = (root: Root, uid: string, path: string, limits: Limits | null): void => {
  const value =
    limits === null ? null : toJson({ uid, path, kind: uid.startsWith("d") ? "domain" : "account", limits });
  root.step({ kind: "desired", from: tenancy, key: `limits/${uid}`, value });
};
const cellOf = (root: Root, cell: string): DesiredCell =>
  root.at<DesiredCell>("cell-manager", "cell/").find((each) => each.cell === cell) ?? assert.fail(`no cell ${cell}`);
const grantOf = (root: Root, cell: string) => cellOf(root, cell).grant;
/** The child asks for so much in all; why not, or null. */
const ask = (root: Root, cell: string, want: Partial<Usage>): string | null => {
  const { serial, amount, answered } = grantOf(root, cell);
  const asks = { number: answered + 1, amount: { ...noUsage, ...want } };
  root.hearCells({ [cell]: toJson({ serial, holds: amount, asks }) });
  const answer = grantOf(root, cell);
  assert.equal(answer.answered, answered + 1);
  return answer.refusal;
};
const holds = (root: Root, cell: string, has: Partial<Usage>): void =>
  root.hearCells({ [cell]: toJson({ serial: grantOf(root, cell).serial, holds: { ...noUsage, ...has }, asks: null }) });
const vms = (root: Root, cell: string): number => grantOf(root, cell).amount.vms;

/** Two cells of one account, one of another in the same domain, one of the operator's. */
const world = (): Root => {
  const root = new Root();
  root.put("", rootWithTenancy());
  for (const [name, account] of [
    ["shop", "ROOT/acme/dev"],
    ["web", "ROOT/acme/dev"],
    ["bank", "ROOT/acme/ops"],
    ["ours", undefined],
  ] as const)
    root.put(`root/cells/${name}`, childOf(name, account));
  return root;
};

test("two cells of an account that grow have together what it may have, and the refusal says whose limit that is", () => {
  const root = world();
  limit(root, "a1", "ROOT/acme/dev", { vms: 3 });
  assert.equal(ask(root, "shop", { vms: 2, memoryMiB: 4096 }), null);
  const why = ask(root, "web", { vms: 2 });
  assert.equal(
    why,
    "the account ROOT/acme/dev may have 3 VMs; 2 are held, of ROOT/acme/dev by shop 2, and 2 more are asked for",
  );
  assert.deepEqual([vms(root, "shop"), vms(root, "web")], [2, 0]);
  assert.equal(ask(root, "web", { vms: 1 }), null);
  assert.equal(ask(root, "bank", { vms: 50 }), null, "another account has its own");
  assert.equal(ask(root, "ours", { vms: 50 }), null, "and the operator none");
  limit(root, "a2", "ROOT/acme/ops", { publicAddresses: 8 });
  assert.equal(ask(root, "bank", { addresses: 64, publicAddresses: 8 }), null);
  assert.match(
    ask(root, "bank", { publicAddresses: 16 }) ?? "",
    /may have 8 public addresses; 0 are held, and 16 more/,
  );
  // What one gives back the other may have.
  holds(root, "shop", { vms: 0, memoryMiB: 4096 });
  assert.equal(ask(root, "web", { vms: 3 }), null);
});

test("a domain's limit bounds the sum of its accounts, and tells nobody which cells others have", () => {
  const root = world();
  limit(root, "d1", "ROOT/acme", { vms: 4 });
  assert.equal(ask(root, "bank", { vms: 3 }), null);
  assert.equal(ask(root, "shop", { vms: 1 }), null);
  const why = ask(root, "shop", { vms: 2 }) ?? "";
  assert.match(why, /^the domain ROOT\/acme may have 4 VMs; 3 are held, and 2 more/);
  assert.doesNotMatch(why, /bank|ops/);
  assert.equal(ask(root, "ours", { vms: 9 }), null);
  // A name that only begins alike is another one.
  root.put("root/cells/other", childOf("other", "ROOT/acmes/dev"));
  assert.equal(ask(root, "other", { vms: 9 }), null);
});

test("a limit below what is held takes nothing away, and grants nothing of that until it is met", () => {
  const root = world();
  assert.equal(ask(root, "shop", { vms: 4, volumes: 1 }), null);
  limit(root, "a1", "ROOT/acme/dev", { vms: 2 });
  assert.equal(vms(root, "shop"), 4);
  assert.equal(ask(root, "shop", { vms: 4, volumes: 5 }), null, "of other things it may have more");
  assert.match(ask(root, "shop", { vms: 5 }) ?? "", /may have 2 VMs/);
  assert.match(ask(root, "web", { vms: 1 }) ?? "", /may have 2 VMs; 4 are held/);
  holds(root, "shop", { vms: 1, volumes: 5 });
  assert.equal(ask(root, "web", { vms: 1 }), null);
  limit(root, "a1", "ROOT/acme/dev", null);
  assert.equal(ask(root, "web", { vms: 9 }), null);
});

test("cells that are made, given away, or still ending count, and a model that goes beyond is refused as a whole", () => {
  const root = world();
  limit(root, "a1", "ROOT/acme/dev", { vms: 3, cells: 3 });
  assert.equal(ask(root, "shop", { vms: 2 }), null);
  assert.equal(ask(root, "bank", { vms: 2 }), null);
  const machine = { "x.type": "VM", "x.memory": 64, "x.desiredState": "off" };
  const big = childOf("big", "ROOT/acme/dev", { one: machine, two: machine });
  const refused = root.put("root/cells/big", big);
  assert.equal(refused.status, 400);
  assert.match(JSON.stringify(refused.body), /may have 3 VMs; 2 are held, of ROOT\/acme\/dev by shop 2, and 2 more/);
  const given = root.put("root/cells/bank", childOf("bank", "ROOT/acme/dev"));
  assert.match(JSON.stringify(given.body), /may have 3 VMs/);
  assert.equal(root.put("root/cells/small", childOf("small", "ROOT/acme/dev", { one: machine })).status, 200);
  assert.match(JSON.stringify(root.put("root/cells/more", childOf("more", "ROOT/acme/dev")).body), /may have 3 cells/);
  // What ends is held until nothing is left of it, also after a crash.
  root.ask({ method: "DELETE", path: "root/cells/small" });
  root.crash();
  assert.match(ask(root, "web", { vms: 1 }) ?? "", /3 are held/);
  assert.equal(root.put("root/cells/more", childOf("more", "ROOT/acme/dev")).status, 400);
  root.endAll();
  assert.equal(ask(root, "web", { vms: 1 }), null);
  assert.equal(root.put("root/cells/more", childOf("more", "ROOT/acme/dev")).status, 200);
});

test("what was granted is said of each limit, to the service that keeps it alone", () => {
  const root = world();
  limit(root, "d1", "ROOT/acme", { vms: 9 });
  const effects = root.step({ kind: "reachable", peer: peerName("placer"), reachable: true });
  assert.equal(
    effects.some(({ kind }) => kind === "publish"),
    false,
    "nothing is said twice",
  );
  ask(root, "bank", { vms: 2 });
  assert.equal(ask(root, "shop", { vms: 3 }), null);
  assert.deepEqual((root.published.get("tenancy/limits/d1") as { granted: Limits }).granted, {
    ...noUsage,
    vms: 5,
    cells: 3,
    units: 0,
  });
  limit(root, "d1", "ROOT/acme", null);
  assert.equal(root.published.has("tenancy/limits/d1"), false);
});

test("whatever cells ask for, give back, and whoever ends: no account and no domain is ever granted more than it may have", () => {
  const names = ["shop", "web", "bank", "ours"];
  const accounts: Readonly<Record<string, string>> = { shop: "dev", web: "dev", bank: "ops" };
  const step = fc.record({
    cell: fc.constantFrom(...names),
    kind: fc.constantFrom("ask", "ask", "give", "crash", "end"),
    vms: fc.integer({ min: 0, max: 6 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const root = world();
      limit(root, "a1", "ROOT/acme/dev", { vms: 4 });
      limit(root, "d1", "ROOT/acme", { vms: 6 });
      const ended = new Set<string>();
      for (const { cell, kind, vms: amount } of steps) {
        if (kind === "crash") root.crash();
        else if (ended.has(cell)) root.endAll();
        else if (kind === "ask") ask(root, cell, { vms: amount });
        else if (kind === "give") holds(root, cell, { vms: Math.min(amount, vms(root, cell)) });
        else {
          root.ask({ method: "DELETE", path: `root/cells/${cell}` });
          ended.add(cell);
        }
        const has = (account: string): number =>
          root
            .at<DesiredCell>("cell-manager", "cell/")
            .filter((each) => accounts[each.cell] === account)
            .reduce((sum, { grant }) => sum + grant.amount.vms, 0);
        assert.ok(has("dev") <= 4 && has("dev") + has("ops") <= 6, JSON.stringify(steps));
      }
    }),
    { numRuns: 20 },
  );
});

test("cells of a disabled account, or below a disabled domain, are told that they are off; and no others", () => {
  const root = world();
  const disable = (uid: string, path: string, off: boolean): void => {
    const value = off ? toJson({ uid, path, kind: uid.startsWith("d") ? "domain" : "account", limits: {}, off }) : null;
    root.step({ kind: "desired", from: tenancy, key: `limits/${uid}`, value });
  };
  const off = (): readonly string[] =>
    root
      .at<DesiredCell>("cell-manager", "cell/")
      .flatMap((each) => (each.off === true ? [each.cell] : []))
      .sort();
  disable("a1", "ROOT/acme/dev", true);
  assert.deepEqual(off(), ["shop", "web"]);
  root.crash();
  assert.deepEqual(off(), ["shop", "web"]);
  disable("d1", "ROOT/acme", true);
  assert.deepEqual(off(), ["bank", "shop", "web"]);
  disable("a1", "ROOT/acme/dev", false);
  assert.deepEqual(off(), ["bank", "shop", "web"]);
  disable("d1", "ROOT/acme", false);
  assert.deepEqual(off(), []);
  disable("a2", "ROOT/acme/de", true);
  assert.deepEqual(off(), [], "a name that begins so is another one");
});

test("cells of an account that is deleted leave the model, are counted until they have ended, and no other comes", () => {
  const root = world();
  const ending = (off: boolean): void => {
    const limit = { uid: "a1", path: "ROOT/acme/dev", kind: "account", limits: {}, off: true, ending: true };
    root.step({ kind: "desired", from: tenancy, key: "limits/a1", value: off ? toJson(limit) : null });
  };
  const left = (): unknown => (root.published.get("tenancy/limits/a1") as { left?: number } | undefined)?.left;
  const cells = (): readonly string[] =>
    root
      .at<DesiredCell>("cell-manager", "cell/")
      .map((each) => `${each.cell}${each.ending === true ? " ends" : ""}`)
      .sort();
  ending(true);
  assert.deepEqual(cells(), ["bank", "ours", "shop ends", "web ends"]);
  assert.equal(left(), 2);
  root.crash();
  assert.deepEqual([left(), cells()], [2, ["bank", "ours", "shop ends", "web ends"]]);
  const late = root.put("root/cells/late", childOf("late", "ROOT/acme/dev"));
  assert.equal(late.status, 400);
  assert.match(JSON.stringify(late.body), /is given to ROOT\/acme\/dev, which is being deleted/);
  root.endAll();
  assert.deepEqual([left(), cells()], [0, ["bank", "ours"]]);
  const done = [...root.records].filter(([key]) => key.startsWith("audit"));
  assert.equal(done.filter(([, value]) => /"deleteElement"/.test(JSON.stringify(value))).length, 2);
  ending(false);
  assert.equal(
    root.put("root/cells/late", childOf("late", "ROOT/acme/dev")).status,
    200,
    "the name is another account's",
  );
});

test("what is dedicated to an account or a domain that is deleted is released once none of its cells is left", () => {
  const root = world();
  const dedicated = (): readonly string[] =>
    root
      .at<{ readonly host: string }>("placer", "dedicated/")
      .map(({ host }) => host)
      .sort();
  const give = (host: string, to: string, account?: string): void => {
    root.put(`root/hosts/${host}`, { "x.type": "Host" });
    const whose = { "x.of": host, "x.to": to, ...(account === undefined ? {} : { "x.account": account }) };
    assert.equal(root.put(`root/dedications/${host}`, { "x.type": "Dedication", ...whose }).status, 200);
  };
  give("h1", "ROOT/acme", "dev");
  give("h2", "ROOT/acme");
  give("h3", "ROOT/others");
  const ends = (uid: string, path: string, kind: string): void => {
    const value = toJson({
      uid,
      path,
      kind,
      limits: {},
      off: true,
      ...(kind === "account" ? { ending: true } : { domainEnds: true }),
    });
    root.step({ kind: "desired", from: tenancy, key: `limits/${uid}`, value });
  };
  const left = (uid: string): unknown => (root.published.get(`tenancy/limits/${uid}`) as { left?: number }).left;
  ends("a1", "ROOT/acme/dev", "account");
  assert.deepEqual([left("a1"), dedicated()], [3, ["h1", "h2", "h3"]], "what runs there still keeps others away");
  const to = (account: string): JsonObject => ({
    "x.type": "Dedication",
    "x.of": "h4",
    "x.to": "ROOT/acme",
    "x.account": account,
  });
  root.put("root/hosts/h4", { "x.type": "Host" });
  const { status, body } = root.put("root/dedications/h4", to("dev"));
  assert.equal(status, 400);
  assert.match(JSON.stringify(body), /root\/dedications\/h4` gives h4 to .*ROOT\/acme\/dev, which is being deleted/);
  assert.equal(root.put("root/dedications/h4", to("ops")).status, 200);
  assert.equal(
    root.ask({ method: "DELETE", path: "root/dedications/h4" }).status,
    200,
    "what is there already stands against nothing",
  );
  assert.deepEqual([left("a1"), dedicated()], [3, ["h1", "h2", "h3"]], "nor do changes meanwhile release it");
  root.endAll();
  assert.deepEqual([left("a1"), dedicated()], [0, ["h2", "h3"]]);
  ends("d1", "ROOT/acme", "domain");
  assert.deepEqual([left("d1"), dedicated()], [2, ["h2", "h3"]], "a cell of another account in it is left");
  ends("a2", "ROOT/acme/ops", "account");
  root.endAll();
  assert.deepEqual([left("a2"), left("d1"), dedicated()], [0, 0, ["h3"]]);
});

test("many hosts of one who is deleted are released by one change of the model", () => {
  const root = new Root();
  root.put("", rootWithTenancy());
  const hosts = ["h1", "h2", "h3", "h4"];
  for (const host of hosts) {
    root.put(`root/hosts/${host}`, { "x.type": "Host" });
    root.put(`root/dedications/${host}`, { "x.type": "Dedication", "x.of": host, "x.to": "ROOT/acme" });
  }
  const of = (path: string) => root.ask({ method: "GET", path });
  const before = of("root/hosts").version;
  const value = toJson({ uid: "d1", path: "ROOT/acme", kind: "domain", limits: {}, off: true, domainEnds: true });
  root.step({ kind: "desired", from: tenancy, key: "limits/d1", value });
  assert.deepEqual(
    hosts.map((host) => of(`root/dedications/${host}`).status),
    [404, 404, 404, 404],
  );
  assert.equal(of("root/hosts").version, before + 1);
});

test("a root controller without a model does not say that nothing of an account is left", () => {
  const root = new Root();
  const left = (): unknown => (root.published.get("tenancy/limits/a1") as { left?: number } | undefined)?.left;
  const limits = toJson({ uid: "a1", path: "ROOT/acme/dev", kind: "account", limits: {}, off: true, ending: true });
  root.step({ kind: "desired", from: tenancy, key: "limits/a1", value: limits });
  assert.equal(left(), undefined, "it has no model yet");
  root.put("", rootWithTenancy());
  assert.equal(left(), 0);
});
