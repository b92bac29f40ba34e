import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { firstServices } from "../core/cells/binding.ts";
import { controllerElements } from "../core/cells/controller-vm.ts";
import type { SavedState } from "../core/documents/saved-state.ts";
import { readBundle, readRoot } from "../host/bootstrap/bootstrap.ts";
import { cellName, ipv4, peerName, uid } from "../model/cell/identifiers.ts";
import type { ImageManifest } from "../runtime/installation.ts";
import { inTurns, saveServiceStates, sizes } from "./service-states.ts";

const examples = join(import.meta.dirname, "../examples/root");

interface Vm {
  readonly path: string;
  readonly memoryMiB: number;
  readonly cpus: number;
}
/** QEMU gives a state back only to a machine of the same size: one of another size boots, which takes twice as long. */
const without = (vms: readonly Vm[]): readonly string[] =>
  vms
    .filter((vm) => !sizes.some(({ memoryMiB, cpus }) => memoryMiB === vm.memoryMiB && cpus === vm.cpus))
    .map(({ path, memoryMiB, cpus }) => `${path}: ${memoryMiB} MiB and ${cpus} processors`);

test("each VM of the cloud itself has the size of a saved state", async () => {
  for (const name of ["small", "large", "primary"]) {
    const { elements } = readRoot(await readBundle(join(examples, `${name}.sf`)));
    const vms = [...elements.values()].filter((element) => element.type === "VM");
    assert.ok(vms.length > 0, name);
    assert.deepEqual(without(vms), [], name);
  }
});

test("so has the VM of a cell's controller", () => {
  const cell = cellName("shop");
  const wanted = {
    uid: uid("c2"),
    cell,
    controller: peerName("controller.shop"),
    cellNumber: 2,
    services: firstServices,
  };
  const { vm } = controllerElements({ ...wanted, state: "run", answers: false }, "shop", ipv4("10.0.3.2"));
  const { "x.memory": memoryMiB, "x.cpus": cpus } = vm as { "x.memory": number; "x.cpus": number };
  assert.deepEqual(without([{ path: "shop", memoryMiB, cpus }]), []);
});

test("one of another size is told", () => {
  const vm = { path: "root/core3/vm", memoryMiB: 304, cpus: 2 };
  assert.deepEqual(without([vm]), ["root/core3/vm: 304 MiB and 2 processors"]);
});

test("states are made two at a time, each once, and are told in the order of their sizes", async () => {
  const begun: number[] = [];
  let [underWay, most] = [0, 0];
  const made = await inTurns([30, 1, 20, 5], 2, async (ms, index) => {
    begun.push(index);
    underWay += 1;
    most = Math.max(most, underWay);
    await sleep(ms);
    underWay -= 1;
    return `${index}: ${ms}`;
  });
  assert.deepEqual(made, ["0: 30", "1: 1", "2: 20", "3: 5"]);
  assert.deepEqual([begun, most], [[0, 1, 2, 3], 2]);
});

test("whose QEMU could save nothing has none, and the one before saves again", async () => {
  const directory = await mkdtemp(join(tmpdir(), "cells-states-"));
  try {
    const boot = { kernel: "kernel", initrd: "initrd", kernelSha256: "1", initrdSha256: "2", commandLine: "quiet" };
    const image: ImageManifest = { name: "service", digest: "3", disk: "disk.qcow2", sizeMiB: 1, boot };
    await writeFile(join(directory, "manifest.json"), JSON.stringify(image));
    let saved = 0;
    const saving: Parameters<typeof saveServiceStates>[2] = async (into, _image, of) => {
      assert.ok(of !== undefined);
      saved += 1;
      for (const name of ["memory", "state"] as const) await writeFile(join(into, of.part(name)), name);
      return { ...of.form, engine: "of this test" } as unknown as SavedState;
    };
    const sizesNow = async (): Promise<number> =>
      (JSON.parse(await readFile(join(directory, "manifest.json"), "utf8")) as ImageManifest).boot?.savedSizes
        ?.length ?? 0;
    await saveServiceStates(directory, () => undefined, saving);
    await saveServiceStates(directory, () => undefined, saving);
    assert.deepEqual([saved, await sizesNow()], [sizes.length, sizes.length], "they are there, and are not made again");

    const marker = join(directory, "saved");
    const ours = await readFile(marker, "utf8");
    // Another QEMU wrote what it depends on, and its machine does not come up.
    await writeFile(marker, "of another QEMU");
    await saveServiceStates(
      directory,
      () => undefined,
      () => Promise.reject(new Error("its guest did not answer")),
    );
    assert.equal(await sizesNow(), 0);
    await assert.rejects(readFile(marker), "what is gone is not said to be there");

    await saveServiceStates(directory, () => undefined, saving);
    assert.deepEqual([await sizesNow(), await readFile(marker, "utf8")], [sizes.length, ours]);
  } finally {
    await rm(directory, { recursive: true });
  }
});
