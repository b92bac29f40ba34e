import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Changed } from "../../model/api.ts";
import { type Testbed, withTestbedDirectory } from "../harness.ts";
import { cacheDirectory } from "../places.ts";
import { cgroupRoots } from "../supervisor/cgroups.ts";
import { firstProcesses } from "../supervisor/first-process.ts";
import { execIn } from "./questions.testing.ts";

/**
 * The whole, with real processes, guests and packets: the demo, what a host may see, services that die, and a testbed
 * that ends and comes back. Needs root; the guests are emulated where KVM does not work, so this takes a minute or two.
 */
const shop = fileURLToPath(new URL("../../examples/shop/shop.sf", import.meta.url));
const typescript = fileURLToPath(new URL("../../examples/shop-typescript/shop.ts", import.meta.url));
const skip = process.getuid?.() === 0 ? false : "needs root, for namespaces";

interface State {
  readonly host?: string;
  readonly incarnation?: number;
  readonly phase: string;
}
const vmStates = async (t: Testbed): Promise<Readonly<Record<string, State>>> => {
  const { stdout } = await t.cells(["get", "shop", "--state", "--output", "json"]);
  const { shop } = JSON.parse(stdout) as { shop: Record<string, { vm: { $state: State } }> };
  return Object.fromEntries(["web", "app", "db"].map((tier) => [tier, shop[tier]?.vm.$state ?? { phase: "none" }]));
};

const inGuest = async (t: Testbed, command: string): Promise<string> => {
  for (let attempt = 0; ; attempt += 1) {
    const { code, stdout, stderr } = await execIn(t, "shop/db/vm", ["sh", "-c", command]);
    if (code === 0) return stdout.trim();
    assert.ok(attempt < 120, `${command}: ${code} ${stderr}`);
    await pause(500);
  }
};

const apply = async (t: Testbed): Promise<void> => {
  const applied = await t.cells(["apply", shop, "--yes"]);
  assert.equal(applied.code, 0, `${applied.stdout}\n${applied.stderr}`);
};

/** The cell as it is, in each language: read by the command line and again by its controller, it changes nothing. */
const sameInOtherLanguages = async (t: Testbed): Promise<void> => {
  const yaml = join(t.at.directory, "shop.yaml");
  const got = await t.cells(["get", "shop", "--output", "yaml"]);
  assert.equal(got.code, 0, got.stderr);
  writeFileSync(yaml, got.stdout);
  for (const file of [yaml, typescript]) {
    const planned = await t.cells(["plan", file, "--output", "json"]);
    assert.equal(planned.code, 0, planned.stderr);
    const { plan } = JSON.parse(planned.stdout) as Changed;
    assert.deepEqual([...new Set(plan.steps.map(({ action }) => action))], ["none"], file);
    assert.equal(plan.steps.length, 20, file);
  }
};

describe("the shop on a testbed", { skip }, () => {
  test("demo, isolation of hosts, deaths, and down", async () => {
    await withTestbedDirectory({ hosts: 2, servers: 2 }, async (t) => {
      const demo = await t.cells(["demo", "--hosts", "2"]);
      assert.equal(demo.code, 0, `${demo.stdout}\n${demo.stderr}`);
      const before = await vmStates(t);
      assert.deepEqual([...new Set(Object.values(before).map(({ host }) => host))].sort(), ["h1", "h2"]);

      // A host's file system holds no volume and no image of a server, however it is looked at by path.
      for (const host of ["h1", "h2"]) {
        const found = await t.exec(host, ["find", t.at.directory, cacheDirectory(), "/run", "-name", "*.qcow2"]);
        assert.equal(found.stdout, "");
        const tree = await t.exec(host, ["find", t.at.directory, "-path", "*members/s*"]);
        assert.equal(tree.stdout, "");
      }
      const atServer = await t.exec("s1", ["find", `${t.at.directory}/members/s1/data`, "-type", "f"]);
      assert.notEqual(atServer.stdout, "", "the server itself sees its volumes");

      await sameInOtherLanguages(t);

      await inGuest(t, "echo kept >/root/kept; sync");
      for (const member of ["controller.shop", "placer", "h1", "h2", "storage-manager", "gateway"])
        await t.kill(member);
      assert.equal(await inGuest(t, "cat /root/kept"), "kept");
      await apply(t);
      const after = await vmStates(t);
      assert.deepEqual(after, before, "dying services took no VM along");

      const unnamed = await t.cells(["delete", "shop", "--yes"]);
      assert.equal(unnamed.code, 1);
      assert.match(unnamed.stderr, /--allow-destroy \S*shop\/db\/bootvol/);
      assert.doesNotMatch(unnamed.stderr, /golden \(|--allow-destroy \S*golden/, "nobody can write the image");

      // That all comes back with its data after that is shown by daily-life.test.ts, and that a cell goes whole by cell-life.test.ts.
      await t.down();
      assert.deepEqual(firstProcesses(t.at.tag), { outer: [], init: [] });
      for (const root of cgroupRoots(t.at.tag)) assert.equal(existsSync(root), false);
      assert.equal(readFileSync("/proc/self/mounts", "utf8").includes(t.at.tag), false);
    });
  });
});
