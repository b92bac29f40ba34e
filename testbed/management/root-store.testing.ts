import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Testbed } from "../harness.ts";
import { cells, releaseOrphans, stateOf, until } from "../lab.testing.ts";
import { rootSpecification } from "../self-hosted.ts";
import { crashOf } from "./data-volume.testing.ts";
import { killMachine, processesOf, vmState } from "./self-hosted.testing.ts";

/**
 * The store of the root cell's controller is lost while everything runs: it says so and stands still, takes the older one
 * that a backup has, and goes on when an operator lets that count. The authority's directory, on the same volume, stays: to lose
 * that too is to lose the installation.
 */
const older = /lost or is older than what .* holds: nothing is changed or started/;
const root = "controller.root";

export interface Backup {
  readonly file: string;
  readonly passphrase: string;
}
export const backupOf = async (t: Testbed): Promise<Backup> => {
  const directory = dirname(t.configFile);
  const backup = { file: join(directory, "cells.backup"), passphrase: join(directory, "passphrase") };
  writeFileSync(backup.passphrase, "four words make one\n", { mode: 0o600 });
  const { code, stderr } = await t.cells(["management", "backup", backup.file, "--passphrase-file", backup.passphrase]);
  // 4: some service was too slow to be in it.
  assert.ok(code === 0 || code === 4, stderr);
  return backup;
};

export interface RootStore {
  readonly t: Testbed;
  readonly reached: (what: string) => void;
  /** Seconds. */
  readonly patience: number;
  /** Of before. */
  readonly backup: Backup;
  /** A VM of the root cell; its incarnation is a later one than the backup knows. */
  readonly victim: string;
}

/** Every machine of the testbed with its incarnation. */
const machinesOf = async (t: Testbed, host: string): Promise<readonly string[]> => {
  const script = `for p in $(pgrep -f '^qemu-system'); do tr '\\0' '\\n' <"/proc/$p/cmdline" | grep '^guest='; done; true`;
  const { stdout } = await t.exec(host, ["sh", "-c", script]);
  const names = stdout.split("\n").filter((line) => line !== "");
  return names.map((name) => name.split(",")[0] ?? name).sort();
};

/** The victim is killed while the root controller stands still: nobody starts it again before the older store counts. */
export const losesRootStore = async ({ t, reached, patience, backup, victim }: RootStore): Promise<void> => {
  const { host: anywhere } = await vmState(t, "root/core1/vm");
  const killed = await vmState(t, victim);
  const isOther = (machine: string): boolean => !machine.startsWith(`guest=cells-${killed.uid}-`);
  const before = await machinesOf(t, anywhere);
  const others = before.filter(isOther);
  assert.equal(others.length, before.length - 1, before.join(" "));

  await crashOf(t, "root/core1", (volume) => volume.removeStore("controller"));
  reached("the root controller's store is gone, and its VM starts again");
  const status = await until(
    "`cells status` says that the root controller's store was lost",
    () => t.cells(["status"]),
    ({ code, stdout }) => code === 0 && /the store of [^:]*controller\.root[^:]* was lost or is older/.test(stdout),
    patience,
  );
  reached(`the cloud says so: ${/the store of .*/.exec(status.stdout)?.[0]}`);
  assert.match(await cells(t, "get", "--output", "json"), /"one"/);
  const refused = await t.cells(["apply", rootSpecification(t.at, "small"), "--yes"]);
  assert.notEqual(refused.code, 0);
  assert.match(refused.stdout + refused.stderr, older);
  const blank = await t.cells(["orphans", "release", root]);
  assert.notEqual(blank.code, 0, blank.stdout);
  assert.match(blank.stderr, /knows nothing of the cloud.*cells management return/);
  assert.deepEqual(await machinesOf(t, anywhere), before, "nothing was ended or started");
  await killMachine(t, killed.host, killed.uid);

  const opening = ["--passphrase-file", backup.passphrase, "--yes"];
  assert.match(await cells(t, "management", "return", backup.file, root, ...opening), /starts again with its store/);
  await until(
    "the copy is known to be older",
    () => t.cells(["why", victim]),
    ({ stdout, stderr }) => older.test(stdout + stderr),
    patience,
  );
  reached("it has the older store of the backup, and stands still");
  assert.deepEqual(await processesOf(t, killed.host, `^qemu-system.*guest=cells-${killed.uid}-`), []);
  assert.deepEqual(await machinesOf(t, anywhere), others, "nothing was ended or started");
  // The victim's own service is away until the root controller has started it, which some may have heard before others.
  await releaseOrphans(t, root, patience);
  await until(
    `${victim} runs again`,
    () => stateOf(t, victim),
    (state) => state?.phase === "ready" && (state.incarnation ?? 0) > (killed.incarnation ?? 0),
    patience,
  );
  assert.deepEqual((await machinesOf(t, anywhere)).filter(isOther), others, "nothing else was ended or started");
  reached("the older store counts, and what had died meanwhile is back");
  reached(`left over: ${(await cells(t, "orphans", "list")).trim()}`);
  const events = await cells(t, "events", "--json");
  const of = new Map<string, number>();
  for (const line of events.trim().split("\n")) {
    const { service } = JSON.parse(line) as { readonly service: string };
    of.set(service, (of.get(service) ?? 0) + 1);
  }
  reached(`events: ${[...of].map(([service, count]) => `${service} ${count}`).join(", ")}`);
  for (const service of [root, "storage-manager", "cell-manager", "host.h1", "agent.s1"])
    assert.ok((of.get(service) ?? 0) > 0, `the time line has nothing of ${service}`);
  assert.match(events, /"controller\/forked"/);
  assert.match(events, /"store\/restored"/);
};
