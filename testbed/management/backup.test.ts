import assert from "node:assert/strict";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { type Testbed, withTestbed } from "../harness.ts";
import { cells, inventory, releaseOrphans, until } from "../lab.testing.ts";
import { execIn } from "../tenants/questions.testing.ts";

/**
 * Everything that manages a cloud is destroyed, down to the authority's key; hosts and storage servers keep what is theirs.
 * From the backup it comes back with its cell as declared and what the guest had written.
 */
const specification = (more: string): string => `
lab extends Cell {
  golden extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }
  bootvol extends VolumeCopy { x.image "<ref:/lab/golden>"; }
  vm extends VM { x.memory 128; x.restartOnFailure true; }
  disk extends VolumeConnection { x.vm "<ref:/lab/vm>"; x.volume "<ref:/lab/bootvol>"; x.bootOrder 0; }
  ${more}
}
`;
const passphrase = "four words make one";

/** All but hosts and storage servers. */
const destroyManagement = ({ at }: Testbed): void => {
  for (const name of readdirSync(join(at.directory, "members")))
    if (!/^[hs]\d+$/.test(name)) rmSync(join(at.directory, "members", name), { recursive: true });
  for (const path of [at.authority, at.shared, at.recordFile]) rmSync(path, { recursive: true });
};

const inGuest = (t: Testbed, script: string): Promise<string> =>
  until(
    `the guest runs ${script}`,
    async () => (await execIn(t, "lab/vm", ["sh", "-c", script])).stdout,
    (stdout) => stdout !== "",
  );

test("a cloud whose management is gone comes back from its backup, with its cells and their data", async () => {
  await withTestbed({ hosts: 2, servers: 1 }, async (t) => {
    const directory = dirname(t.configFile);
    const [cell, secret, backup] = ["lab.sf", "passphrase", "cells.backup"].map((name) => join(directory, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(cell, specification(""));
    writeFileSync(secret, `${passphrase}\n`, { mode: 0o600 });
    await cells(t, "apply", cell, "--yes");
    assert.match(await inGuest(t, "echo written before > /root/kept; sync; echo done"), /done/);
    const volumes = (await inventory(t, [], ["s1"]))["s1 volumes"];

    const said = await cells(t, "management", "backup", backup, "--passphrase-file", secret);
    for (const name of ["supervisor", "controller.lab", "storage-manager", "presence.1", "host.h2", "agent.s1"])
      assert.match(said, new RegExp(`^  ${name.replace(".", "\\.")}: \\d+ KiB$`, "m"));
    assert.match(await cells(t, "management", "verify", backup, "--passphrase-file", secret), /every seal, signature/);
    const refused = await t.cells(["management", "restore", backup, "--passphrase-file", secret, "--yes"]);
    assert.match(refused.stderr, /runs, and would write over what is restored/);

    await t.down();
    destroyManagement(t);
    const restored = await cells(t, "management", "restore", backup, "--passphrase-file", secret, "--yes");
    assert.match(restored, /left as they are: agent\.s1, host\.h1, host\.h2/);
    await t.up();
    await until(
      "the cell is as declared",
      async () => JSON.parse(await cells(t, "get", "--output", "json")) as { phases: Record<string, number> }[],
      ([lab]) => lab !== undefined && Object.keys(lab.phases).join() === "ready",
    );
    assert.match(await cells(t, "plan", cell), /4 unchanged/);
    assert.match(await inGuest(t, "cat /root/kept"), /^written before$/m);
    assert.deepEqual((await inventory(t, [], ["s1"]))["s1 volumes"], volumes);

    // What was declared after the backup is in no store then; what it led to is kept, and somebody is told.
    writeFileSync(cell, specification("later extends Volume { x.size 8; }"));
    await cells(t, "apply", cell, "--yes");
    const more = (await inventory(t, [], ["s1"]))["s1 volumes"];
    assert.equal(more?.length, (volumes?.length ?? 0) + 1);
    await t.down();
    await cells(t, "management", "restore", backup, "--passphrase-file", secret, "--yes");
    await t.up();
    await until(
      "the machine is not started anew: its host knows of a later controller's store",
      async () => (await t.cells(["why", "lab/vm"])).stdout,
      (stdout) => /was lost or is older.*cells orphans release controller\.lab/.test(stdout),
    );
    assert.deepEqual((await inventory(t, [], ["s1"]))["s1 volumes"], more);
    await releaseOrphans(t, "controller.lab");
    assert.match(await inGuest(t, "cat /root/kept"), /^written before$/m);
    assert.deepEqual((await inventory(t, [], ["s1"]))["s1 volumes"], more);
  });
});
