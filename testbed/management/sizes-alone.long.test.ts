import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { withTestbedDirectory } from "../harness.ts";
import { cells, stateOf, until } from "../lab.testing.ts";
import { rootSpecification } from "../self-hosted.ts";
import { pingsLost, startPings, tenant, untilAllReady, vmState } from "./self-hosted.testing.ts";

/**
 * A cloud of the profile `small` becomes one of `large` and goes back, while a tenant's machines ping each other: only with
 * `./cells test --all`, since twelve service VMs keep two cores of emulated processors busy for many minutes.
 */
const patience = 1500;
const inSmall = ["core2", "core3"];
const inLarge = ["addresses", "names", "directory", "cellManager", "tenants", "presence2", "presence3"];
/** What goes with the services of VMs that are taken out. */
const disksOf = (services: readonly string[]): string =>
  services.flatMap((name) => [`root/${name}/boot`, `root/${name}/data`]).join(",");

/** As `large.sf` says: the first VM stays as it is, with its member of Presence. */
const grown = (small: string, large: string): string => {
  const block = (name: string): RegExp => new RegExp(`  ${name} extends Service \\{[\\s\\S]*?\\n  \\}\\n`);
  const [first] = block("core1").exec(readFileSync(small, "utf8")) ?? [];
  assert.ok(first !== undefined);
  const text = readFileSync(large, "utf8");
  assert.match(text, block("presence1"));
  return text.replace(block("core1"), () => first).replace(block("presence1"), "");
};

test("small becomes large and goes back, and tenants' machines notice nothing", async (context) => {
  const start = performance.now();
  const reached = (what: string): void => {
    const line = `${((performance.now() - start) / 1000).toFixed(0)} s: ${what}`;
    context.diagnostic(line);
    process.stderr.write(`${line}\n`);
  };
  await withTestbedDirectory({ profile: "small", hosts: 3, servers: 1 }, async (t) => {
    await t.up();
    const file = join(dirname(t.configFile), "one.sf");
    writeFileSync(file, tenant("one"));
    await until(
      "the cell `one` is as declared",
      () => t.cells(["apply", file, "--yes"]),
      ({ code }) => code === 0,
      patience,
    );
    await untilAllReady(t, "root", patience);
    await startPings(t, file);
    const incarnations = async () =>
      await Promise.all(["one/vm", "one/peer"].map(async (vm) => (await vmState(t, vm)).incarnation));
    const before = await incarnations();
    reached("small, with a tenant's machines that ping");

    const small = rootSpecification(t.at, "small");
    const large = join(dirname(small), "grown.sf");
    writeFileSync(large, grown(small, rootSpecification(t.at, "large")));
    const become = async (specification: string, come: readonly string[], go: readonly string[]): Promise<void> => {
      await cells(t, "apply", specification, "--yes", "--allow-destroy", disksOf(go), "--timeout", String(patience));
      reached("accepted, and ready in the eyes of `cells apply`");
      await untilAllReady(t, "root", patience);
      for (const name of come) assert.equal((await vmState(t, `root/${name}/vm`)).phase, "ready", name);
      for (const name of go) assert.equal(await stateOf(t, `root/${name}/vm`), null, name);
      // All services work where they are now: a new cell needs each of them.
      writeFileSync(file.replace("one", "two"), tenant("two"));
      await until(
        "a new cell is as declared",
        () => t.cells(["apply", file.replace("one", "two"), "--yes"]),
        ({ code }) => code === 0,
        patience,
      );
      reached("a new cell is as declared");
      await cells(t, "delete", "two", "--yes", "--allow-destroy", "two/boot");
      assert.deepEqual(await incarnations(), before, "no machine of a tenant was started again");
    };
    await become(large, inLarge, inSmall);
    reached("large");
    await become(small, inSmall, inLarge);
    reached("small again");
    const { sent, lost } = await pingsLost(t);
    reached(`${lost} of ${sent} pings between a tenant's machines were lost`);
    assert.ok(sent > 30 && lost <= 1, `${lost} of ${sent} pings were lost`);
  });
});
