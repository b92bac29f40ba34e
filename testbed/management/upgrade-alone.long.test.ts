import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { withTestbedDirectory } from "../harness.ts";
import { until } from "../lab.testing.ts";
import { tenant, untilAllReady } from "./self-hosted.testing.ts";
import { upgradeCloud } from "./upgrade.testing.ts";
import { namesForTheOutside } from "./zone.testing.ts";

/**
 * The upgrade by itself, in a cloud of its own: only with `./cells test --all`. Beside the birth, ten service VMs start one
 * after another, each on an emulated processor and most with the 15 s of their proof, and that one waits for the other is
 * what is tried. What needs no machines is in core/controller/upgrade/upgrade.test.ts and upgrade-follow.test.ts.
 */
test("a new service image goes in, and goes back by itself", async (context) => {
  const start = performance.now();
  // Told at once as well: it takes long, and whoever runs it by hand wants to see how far it is.
  const reached = (what: string): void => {
    const line = `${((performance.now() - start) / 1000).toFixed(0)} s: ${what}`;
    context.diagnostic(line);
    process.stderr.write(`${line}\n`);
  };
  await withTestbedDirectory({ profile: "small", hosts: 2, servers: 1 }, async (t) => {
    await t.up();
    reached("up");
    const file = join(dirname(t.configFile), "one.sf");
    writeFileSync(file, tenant("one"));
    // A busy machine may take longer for a controller than a command waits.
    const applied = () => t.cells(["apply", file, "--yes"]);
    await until("the cell `one` is as declared", applied, ({ code }) => code === 0, 600);
    await untilAllReady(t, "root", 600);
    reached("the root cell is as declared");
    await namesForTheOutside(t);
    reached("names for the outside were handed to a name server, by a key");
    await upgradeCloud(t, file, reached);
  });
});
