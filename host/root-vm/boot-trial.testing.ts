import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { ActualVm, DesiredDisk, DesiredVm } from "../../core/documents/vocabulary.ts";
import { ipv4, uid } from "../../model/cell/identifiers.ts";
import { storageIdentity } from "../drivers/unix-users.ts";
import { type ExportProcess, endExport, startExport } from "../storage-agent/export-process.ts";

/**
 * The part of `main.testing.ts` about a VM that its host starts again by itself: boot disks that real exports serve, or
 * that nobody serves, tried by a Host Manager over its real drivers. No guest system is in them; a machine that finds
 * none goes on.
 */
export interface TrialScene {
  readonly directory: string;
  /** What the VM has beside its disks. */
  readonly vm: DesiredVm;
  readonly desire: (vm: DesiredVm) => Promise<unknown>;
  readonly until: (holds: (vm: ActualVm | null) => boolean) => Promise<ActualVm | null>;
  /** Number of its machine's process. */
  readonly machine: () => Promise<number>;
  /** Ends the Host Manager and starts it anew. */
  readonly restartHost: () => Promise<void>;
}

const firstPort = 21_000;

export const tryBootDisks = async (scene: TrialScene): Promise<void> => {
  const exportsDirectory = join(scene.directory, "exports");
  await mkdir(exportsDirectory, { recursive: true, mode: 0o711 });
  const running: ExportProcess[] = [];
  const disk = async (name: string, number: number, served: boolean): Promise<DesiredDisk> => {
    const volume = uid(`${name}-volume`);
    const access = {
      exportName: `export-${name}`,
      pskIdentity: "cells",
      pskHex: randomBytes(32).toString("hex"),
      port: firstPort + number,
    };
    const file = join(scene.directory, `${name}.qcow2`);
    execFileSync("qemu-img", ["create", "-q", "-f", "qcow2", file, "1M"]);
    execFileSync("chown", [`${storageIdentity.uid}:${storageIdentity.gid}`, file]);
    await chmod(file, 0o600);
    if (served)
      running.push(
        await startExport({ exportsDirectory, volume, epoch: 1, file, writable: true, address: "10.0.1.1", access }),
      );
    const layer = { volume, address: ipv4("10.0.1.1"), writable: true, ...access };
    return {
      connection: uid(name),
      busType: "virtio",
      busNumber: null,
      busSlot: null,
      bootOrder: 0,
      readOnly: false,
      attachment: { volume, epoch: 1, sizeMiB: 1, layers: [layer], boot: null },
    };
  };
  try {
    await tryThem(scene, await disk("old", 0, true), await disk("broken", 1, false), await disk("new", 2, true));
  } finally {
    for (const each of running) await endExport(exportsDirectory, each);
  }
};

const tryThem = async (
  { vm, desire, until, machine, restartHost }: TrialScene,
  old: DesiredDisk,
  broken: DesiredDisk,
  fresh: DesiredDisk,
): Promise<void> => {
  const trial = (disk: DesiredDisk): DesiredVm => ({
    ...vm,
    restart: "host",
    disks: [old],
    trial: { disk, replaces: old.connection, withinMs: 600_000 },
  });
  await desire({ ...vm, restart: "host", disks: [old] });
  await until((actual) => actual?.phase === "ready" && actual.power === "on");
  const first = await machine();

  await desire(trial(broken));
  const back = await until((actual) => typeof actual?.trial?.refused === "string" && actual.power === "on");
  assert.match(back?.trial?.refused ?? "", /ended 2 times: .*does not serve its disk/);
  assert.equal(back?.trial?.boots, false);
  await until((actual) => actual?.phase === "ready");
  const second = await machine();
  assert.notEqual(second, first, "another machine runs, from the old disk");

  await desire(trial(fresh));
  await until((actual) => actual?.trial?.connection === "new" && actual.trial.boots && actual.phase === "ready");
  const third = await machine();
  await desire({ ...vm, restart: "host", disks: [fresh] });
  await until((actual) => actual?.phase === "ready" && actual.trial === undefined);
  await restartHost();
  await until((actual) => actual?.phase === "ready");
  assert.equal(await machine(), third, "what was taken over goes on as it is");
};
