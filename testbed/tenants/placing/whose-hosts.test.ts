import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import type { PoolSummary } from "../../../model/contract/tenancy/pools.ts";
import { type Testbed, withTestbed } from "../../harness.ts";
import * as lab from "../../lab.testing.ts";
import { applyRoot, beginRoot, startCells } from "./child-cells.testing.ts";

/**
 * Whose hosts are, over the whole path: the root cell's text, the root controller, Placer, hosts and real machines, in two zones. The use cases of
 * dedication run one after the other on one state: h1 is the domain d1's, in which a1 and a2 are, h2 is empty, h3 is in use, a3 is elsewhere. Then
 * two accounts have a pool of whole hosts, from its flavour to its end. No more than eight machines are there at a time, and none has a disk: what is tried
 * is where they stand.
 */
const hosts = ["h1", "h2", "h3", "h4", "h5", "h6"] as const;
const accounts = { a1: "ROOT/d1/a1", a2: "ROOT/d1/a2", a3: "ROOT/a3" } as const;
type CellOf = keyof typeof accounts;
const cellNames = Object.keys(accounts) as readonly CellOf[];

/** @param pooled what is said of the two hosts that go into a flavour */
const topology = (pooled: string, more = ""): string => `
  places extends {
    z1 extends Zone { p1 extends Pod { c1 extends Cluster; } }
    z2 extends Zone { p1 extends Pod { c1 extends Cluster; } }
  }
  hosts extends {
    ${["h1", "h2", "h3"].map((host) => `${host} extends Host { x.cluster "z1/p1/c1"; }`).join("\n    ")}
    ${["h4", "h5"].map((host) => `${host} extends Host { x.cluster "z2/p1/c1"; ${pooled} }`).join("\n    ")}
    h6 extends Host { x.cluster "z2/p1/c1"; }
  }
  tenants extends {
    d1 extends Domain { a1 extends Account; a2 extends Account; }
    d2 extends Domain;
    a3 extends Account;
  }
  cells extends {
    ${cellNames.map((cell) => `${cell} extends CellController { x.name "${cell}"; x.account "${accounts[cell]}"; x.cell extends { ${cell} extends Cell; } }`).join("\n    ")}
  }
  dedications extends {
    first extends Dedication { x.of "h1"; x.to "ROOT/d1"; }
    last extends Dedication { x.of "h6"; x.to "ROOT/d2"; }
  }
  ${more}
`;

/** What a cell has: by name a machine with what it says of itself, and more elements. */
interface Content {
  readonly machines: Record<string, string>;
  more: string;
}
const specification = (cell: string, { machines, more }: Content): string => `
${cell} extends Cell {
  ${Object.entries(machines)
    .map(([name, own]) => `${name} extends VM { ${own.includes("x.memory") ? "" : "x.memory 64; "}${own} }`)
    .join("\n  ")}
  ${more}
}
`;

class Cloud {
  readonly t: Testbed;
  readonly #content: Record<CellOf, Content> = {
    a1: { machines: {}, more: "" },
    a2: { machines: {}, more: "" },
    a3: { machines: {}, more: "" },
  };
  constructor(t: Testbed) {
    this.t = t;
  }
  async #apply(cell: CellOf): Promise<void> {
    const file = join(dirname(this.t.configFile), `${cell}.sf`);
    writeFileSync(file, specification(cell, this.#content[cell]));
    await lab.cells(this.t, "apply", file, "--yes", "--no-wait");
  }
  /** The host at which it runs, as its cell says it and as the machine is there. */
  async starts(cell: CellOf, name: string, own = ""): Promise<string> {
    this.#content[cell].machines[name] = own;
    await this.#apply(cell);
    const path = `${cell}/${name}`;
    const state = await lab.until(
      `${path} runs`,
      () => lab.stateOf(this.t, path),
      (now) => now?.phase === "ready" && now.power === "on",
    );
    const { uid, host } = state ?? {};
    assert.ok(host);
    const running = (await lab.inventory(this.t, [host], []))[`${host} machines`] ?? [];
    assert.ok(
      running.some((guest) => guest.startsWith(`guest=cells-${uid}-`)),
      `${path} is at ${host}: ${running.join(", ")}`,
    );
    return host;
  }
  /** Why it waits for a host, as `cells why` says it. It is taken out again. */
  async waits(cell: CellOf, name: string, own: string): Promise<string> {
    this.#content[cell].machines[name] = own;
    await this.#apply(cell);
    const path = `${cell}/${name}`;
    await lab.until(
      `${path} waits for a host`,
      () => lab.stateOf(this.t, path),
      (state) => state?.phase === "waiting" && state.causes?.some(({ kind }) => kind === "no-host") === true,
    );
    const { stdout } = await this.t.cells(["why", path]);
    assert.match(stdout, /is held up at "(?:a )?host"/);
    await this.ends(cell, name);
    return stdout;
  }
  async ends(cell: CellOf, ...names: readonly string[]): Promise<void> {
    for (const name of names) delete this.#content[cell].machines[name];
    await this.#apply(cell);
    for (const name of names)
      await lab.until(
        `${cell}/${name} has gone`,
        () => lab.stateOf(this.t, `${cell}/${name}`),
        (state) => state === null,
      );
  }
  async has(cell: CellOf, more: string): Promise<void> {
    this.#content[cell].more = more;
    await this.#apply(cell);
  }
}
const strict = `x.placement.dedication "strict";`;
const preferred = `x.placement.dedication "preferred";`;
const explicit = `x.placement.groups "DedicatedGrp-domain-d1";`;

/** The paper's use cases by their numbers, as `core/placer/filters/use-cases.test.ts` has them. */
async function useCases(cloud: Cloud): Promise<void> {
  assert.equal(await cloud.starts("a3", "u0", `x.placement.host "h3";`), "h3", "h3 is in use");
  assert.equal(await cloud.starts("a2", "u1", strict), "h2", "1: A2 strict: H2, now A2's");
  assert.equal(await cloud.starts("a1", "u2", explicit), "h1", "2: A1 explicit: H1");
  assert.equal(await cloud.starts("a1", "u3"), "h3", "3: A1 none: H3, the only shared one");
  await cloud.ends("a3", "u0");
  const refused = await cloud.waits("a1", "u4", strict);
  assert.match(refused, /x\.placement\.dedication/, "4: A1 strict: refused");
  assert.equal(await cloud.starts("a2", "u5", explicit), "h1", "5: A2 explicit: H1, beside A1");
  assert.match(await cloud.waits("a3", "u6", strict), /dedication/, "6: A3 strict: refused");
  const others = await cloud.waits("a3", "u7", explicit);
  assert.match(others, /ROOT\/a3 has no group "DedicatedGrp-domain-d1"/, "7: A3 explicit: refused");
  assert.doesNotMatch(others, /\bh1\b|ROOT\/d1/, "and nothing is said of whose hosts there are");
  assert.equal(await cloud.starts("a3", "u8"), "h3", "8: A3 none: H3");
  assert.equal(await cloud.starts("a2", "u9", preferred), "h2", "9: A2 preferred: H2, beside its strict VM");
  assert.equal(await cloud.starts("a2", "u10"), "h3", "10: A2 none: H3");
  assert.equal(await cloud.starts("a3", "u11", preferred), "h3", "11: A3 preferred: no own, none empty: H3");
  await cloud.ends("a2", "u1", "u9");
  assert.equal(await cloud.starts("a3", "u12", strict), "h2", "12: the last VM of H2 deleted: H2 is anybody's");
  await cloud.ends("a1", "u2");
  await cloud.ends("a2", "u5");
  await cloud.waits("a1", "u13", "x.memory 1000;");
  assert.equal(await cloud.starts("a1", "u14", explicit), "h1", "13: H1 empty: stays D1's");
}

const racks = (isEnabled: boolean): string => `
  racks extends Pool {
    x.authorised ["${accounts.a1}", "${accounts.a3}"];
    rack1 extends PoolHost { x.pool "<ref:..>"; x.flavor "large"; x.enabled ${isEnabled}; }
  }`;
/** A pool of one account, in which another one has a VM as well. */
async function pool(cloud: Cloud): Promise<void> {
  const { t } = cloud;
  await applyRoot(t, topology(`x.flavor "large";`, "flavors extends { large extends HostFlavor { x.units 2; } }"));
  await cloud.has("a1", racks(true));
  const own = await cloud.starts("a1", "p1", `x.placement.pool "a1/racks";`);
  assert.ok(["h4", "h5"].includes(own), own);
  const [summary] = JSON.parse(await lab.cells(t, "pool", "list", "--output", "json")) as readonly PoolSummary[];
  const byUid = `x.placement.pool "${summary?.uid}";`;
  assert.equal(await cloud.starts("a3", "p2", byUid), own, "who is authorised stands there too");
  const stranger = await cloud.waits("a2", "p3", byUid);
  assert.match(stranger, /there is no pool/, "and nobody else");
  assert.doesNotMatch(stranger, /\bh[45]\b|rack1/);
  const shown = await lab.cells(t, "pool", "show", "a1/racks");
  assert.match(shown, /rack1 +large +enabled/);
  assert.doesNotMatch(shown, /\bh[45]\b/, "its hosts go by its owner's names");
  await lab.cells(t, "pool", "add", "a1/racks", "rack2", "--flavor", "large");
  const none = await t.cells(["pool", "add", "a1/racks", "rack3", "--flavor", "large"]);
  assert.equal(none.code, 1, none.stdout);
  assert.match(none.stderr, /no host of large is free/);
  await lab.cells(t, "pool", "remove", "a1/racks", "rack2");
  await lab.cells(t, "pool", "disable", "a1/racks", "rack1");
  const busy = await t.cells(["pool", "remove", "a1/racks", "rack1"]);
  assert.equal(busy.code, 1, busy.stdout);
  assert.match(busy.stderr, /has the VMs .*, and leaves its pool only disabled and empty/);
  await cloud.ends("a3", "p2");
  await cloud.has("a1", racks(false));
  await cloud.ends("a1", "p1");
  await lab.until(
    "rack1 goes, once it is known to be empty",
    () => t.cells(["pool", "remove", "a1/racks", "rack1"]),
    ({ code }) => code === 0,
  );
  await lab.until(
    "both hosts are their flavour's again",
    () => lab.cells(t, "pool", "flavors"),
    (said) => /large +2 units +2 free/.test(said),
  );
}

test("whose hosts are decides where real machines stand, and pools of whole hosts are their accounts'", {
  skip: process.getuid?.() === 0 ? false : "needs root",
}, async (context: TestContext) => {
  await withTestbed(
    { hosts: hosts.length, servers: 1, rootCell: true, hostMemoryMiB: 1536, timeoutMs: 300_000 },
    async (t) => {
      const from = performance.now();
      const said = (what: string): void =>
        context.diagnostic(`${what} after ${Math.round((performance.now() - from) / 1000)} s`);
      await beginRoot(t, hosts);
      await applyRoot(t, topology(`x.state "disabled";`));
      await startCells(t, cellNames);
      said("the cells are there");
      const cloud = new Cloud(t);
      await useCases(cloud);
      said("dedication is done");
      await pool(cloud);
      said("pools are done");
    },
  );
});
