import { randomBytes } from "node:crypto";
import { closeSync } from "node:fs";
import { stat, truncate } from "node:fs/promises";
import { type SavedState, savedFor } from "../../../../core/documents/saved-state.ts";
import type { Uid } from "../../../../model/cell/identifiers.ts";
import type { Json } from "../../../../model/json/json.ts";
import type { ComposedDisk, SavedFiles } from "../../storage/driver.ts";
import type { Accelerator, MachineSpecification } from "../driver.ts";
import { openIdentityPort } from "../guest/identity-port.ts";
import { bootSequence, type MachinePlaces, machineName, machineUuid, sandboxArguments } from "../process/arguments.ts";
import { sealMemory } from "../process/sealed-memory.ts";
import type { Qmp } from "../qmp.ts";
import { engineOf, formOf, plugPorts, type SavedForm, savedMachineArguments, seedBytesOf } from "./saved-machine.ts";

/**
 * Start from a saved state. The state of the guest image is one of a guest that has booted, has no identity, no network
 * card, and has only read its disk. It is right for exactly one start: the first one on an unwritten copy of that disk.
 * That of an image whose guest never writes to its disk, as the services', is right for every start (`readsOnly`).
 *
 *   load (CPUs stopped) → run → the guest becomes itself (name, keys, random numbers, clock, data) → network cards → disks
 *
 * No packet can leave before the guest is itself, since it has no card to send it through. Whether the disk is unwritten is
 * asked twice: the Storage Manager knows who could ever have written it (`pristine`), and the guest compares the disk
 * with what it remembers of it before it writes. When anything is not as it must be, the machine boots instead.
 */

/** What the state of this host's machines can be, to be compared with a saved one. */
export interface ResumeMeans {
  readonly engine: string;
  readonly form: string;
}

/** Further disks, after the boot disk. */
const furtherDisks = (machine: MachineSpecification): readonly ComposedDisk[] => {
  const [boot] = bootSequence(machine.disks);
  return machine.disks.filter((disk) => disk !== boot);
};

const savedOf = (machine: MachineSpecification): SavedState | undefined => {
  const boot = bootSequence(machine.disks)[0]?.desired.attachment.boot ?? null;
  return boot === null ? undefined : savedFor(boot, machine);
};
/** The form that its state must have. */
const formFor = (machine: MachineSpecification): SavedForm => {
  const { memoryMiB, cpus } = machine;
  return { memoryMiB, cpus, ...(savedOf(machine)?.readsOnly === true ? { readsOnly: true } : {}) };
};

const noState = ({ memoryMiB, cpus }: MachineSpecification, sizes: readonly SavedState[]): string =>
  sizes.length === 0
    ? "the image of its disk has no saved state"
    : `the image of its disk has no state for x.memory ${memoryMiB} and x.cpus ${cpus}, but for ${sizes
        .map((size) => `${size.memoryMiB} and ${size.cpus}`)
        .join(", ")}`;

/** Why this machine cannot go on from a saved state, as the rest of a sentence; null: it can. */
export const resumeObstacle = (machine: MachineSpecification, here: ResumeMeans): string | null => {
  const [disk] = bootSequence(machine.disks);
  if (disk === undefined) return "it has no disk to boot from";
  const { attachment } = disk.desired;
  const saved = savedOf(machine);
  if (disk.boot === null || saved === undefined) return noState(machine, attachment.boot?.savedSizes ?? []);
  if (attachment.pristine !== true && saved.readsOnly !== true)
    return "its disk may have been written since it was made from the image";
  if (saved.memoryMiB !== machine.memoryMiB || saved.cpus !== machine.cpus)
    return `the state was saved with x.memory ${saved.memoryMiB} and x.cpus ${saved.cpus}, and it has ${machine.memoryMiB} and ${machine.cpus}`;
  if (saved.readsOnly === true ? saved.diskMiB > attachment.sizeMiB : saved.diskMiB !== attachment.sizeMiB)
    return `the state was saved with a disk of ${saved.diskMiB} MiB, and its disk has ${attachment.sizeMiB} MiB`;
  if (saved.engine !== here.engine) return `the state was saved by ${saved.engine}, and this host has ${here.engine}`;
  if (saved.form !== here.form) return "the state was saved by another release of this software";
  if (disk.desired.readOnly) return "its disk is read-only";
  const { busType, busNumber, busSlot } = disk.desired;
  if (busType !== "virtio" || (busNumber ?? 0) !== 0 || busSlot !== null)
    return 'its boot disk must be on the bus "virtio" without a slot of its own';
  const others = furtherDisks(machine);
  if (others.some(({ desired }) => desired.busType !== "virtio" || desired.busSlot !== null))
    return 'its disks must be on the bus "virtio" without slots of their own';
  const plugs = others.length + machine.interfaces.length;
  if (plugs > plugPorts)
    return `it has ${plugs} further disks and network interfaces, and ${plugPorts} can be plugged in`;
  const files = disk.boot.saved;
  if (files === undefined) return "the saved state was not fetched";
  return "missing" in files ? files.missing : null;
};

/** The files of the state that a machine without an obstacle goes on from. */
const savedFilesOf = (machine: MachineSpecification): SavedFiles => {
  const files = bootSequence(machine.disks)[0]?.boot?.saved;
  if (files === undefined || "missing" in files) throw new Error("the machine has no saved state");
  return files;
};

/** QEMU's arguments for a machine that waits for its state. Cards and further disks have their other end here already. */
export const resumeArguments = (
  machine: MachineSpecification,
  accelerator: Accelerator,
  places: MachinePlaces,
  memoryDescriptor: number,
  identitySocket: string,
): readonly string[] => {
  const [disk] = bootSequence(machine.disks);
  if (disk === undefined || disk.boot === null) throw new Error("the machine has no recorded kernel");
  return [
    "qemu-system-x86_64",
    "-name",
    machineName(machine.vm, machine.incarnation),
    "-uuid",
    machineUuid(machine.vm),
    ...sandboxArguments,
    ...machine.disks.flatMap(({ objects, blockdevs }) => [
      ...objects.flatMap((object) => ["-object", object]),
      ...blockdevs.flatMap((blockdev) => ["-blockdev", blockdev]),
    ]),
    "-blockdev",
    JSON.stringify({
      driver: "raw",
      "node-name": "seed",
      "read-only": true,
      file: { driver: "file", filename: places.seedImage, "read-only": true },
    }),
    ...machine.interfaces.flatMap((_, index) => [
      "-netdev",
      `tap,id=net${index},fd=${places.tapDescriptors[index]},vhost=off`,
    ]),
    ...savedMachineArguments(machine, accelerator, {
      qmpSocket: places.qmpSocket,
      agentSocket: places.agentSocket,
      serialSocket: places.serialSocket,
      identitySocket,
      memoryFile: `/proc/self/fd/${memoryDescriptor}`,
      shared: false,
      kernel: `/proc/self/fd/${places.kernelDescriptor}`,
      initrd: `/proc/self/fd/${places.initrdDescriptor}`,
      commandLine: disk.boot.commandLine,
      bootNode: disk.node,
      seedNode: "seed",
      bootDevice: `disk-${disk.desired.connection}`,
      bootSerial: disk.desired.connection.slice(0, 20),
    }),
    "-incoming",
    "defer",
  ];
};

/** Saved memories that are kept for the next machine; the least recently used goes. */
const memoriesKept = 4;

/** What one driver needs to resume machines: what this host is, and the saved memories that it has used. */
export class Resumption {
  readonly #memories = new Map<string, number>();
  /** Machines that run and were resumed, by VM, and VMs whose last one ended by itself. */
  readonly #resumed = new Map<Uid, number>();
  readonly #failed = new Set<Uid>();
  #engine: { readonly program: string | null; readonly engine: Promise<string> } | null = null;

  /** Why this machine cannot be resumed, as the rest of a sentence; null: it can. */
  async obstacle(machine: MachineSpecification, accelerator: Accelerator): Promise<string | null> {
    if (this.#failed.delete(machine.vm)) return "its guest ended by itself when it last went on from it";
    return resumeObstacle(machine, {
      engine: await this.#here(accelerator),
      form: formOf(formFor(machine), accelerator),
    });
  }

  began({ vm, incarnation }: MachineSpecification): void {
    this.#resumed.set(vm, incarnation);
  }

  /** `byItself`: its guest turned itself off, or could not go on. The next one of that VM boots: a state may be to blame. */
  ended(vm: Uid, incarnation: number, byItself: boolean): void {
    if (this.#resumed.get(vm) !== incarnation) return;
    this.#resumed.delete(vm);
    if (byItself) this.#failed.add(vm);
  }

  /** Asked again when QEMU was upgraded while this process goes on. */
  async #here(accelerator: Accelerator): Promise<string> {
    const file = await stat("/usr/bin/qemu-system-x86_64").catch(() => null);
    const program = file === null ? null : `${file.ino} ${file.mtimeMs}`;
    if (program === null || this.#engine?.program !== program)
      this.#engine = { program, engine: engineOf(accelerator) };
    return this.#engine.engine;
  }

  /** The sealed memory and the state that this machine goes on from. */
  files(machine: MachineSpecification): { readonly memory: number; readonly state: string } {
    const { memory: path, state } = savedFilesOf(machine);
    const memory = this.#memories.get(path) ?? sealMemory(path);
    this.#memories.delete(path);
    this.#memories.set(path, memory);
    for (const [oldest, descriptor] of this.#memories) {
      if (this.#memories.size <= memoriesKept) break;
      this.#memories.delete(oldest);
      closeSync(descriptor);
    }
    return { memory, state };
  }

  /** Machines that run keep what they have of a memory. */
  close(): void {
    for (const descriptor of this.#memories.values()) closeSync(descriptor);
    this.#memories.clear();
  }
}

/** A guest that is resumed believes that its seed has the size that it had. Throws a sentence when it is larger. */
export const padSeed = async (file: string, machine: MachineSpecification): Promise<void> => {
  const seedBytes = seedBytesOf(formFor(machine));
  const { size } = await stat(file);
  if (size > seedBytes)
    throw new Error(`x.data makes a volume of ${size} bytes, and the saved state was made with one of ${seedBytes}`);
  await truncate(file, seedBytes);
};

/** From `cont` to the guest's word that it is itself. */
const becomeMs = 45_000;

/**
 * Loads the state from the descriptor that the process inherited, lets the guest become itself, then plugs in what it has
 * beyond its boot disk. Rejects with a sentence; the machine must then be ended, since its guest may be nobody.
 */
export const resume = async (
  machine: MachineSpecification,
  qmp: Qmp,
  identitySocket: string,
  stateDescriptor: number,
): Promise<void> => {
  // Open before there is a guest, as it was when the guest was saved.
  const port = await openIdentityPort(identitySocket);
  try {
    const capabilities = [{ capability: "x-ignore-shared", state: true }];
    await qmp.execute("migrate-set-capabilities", { capabilities });
    await qmp.execute("migrate-incoming", { uri: `fd:${stateDescriptor}` });
    // While the state is being loaded this says what shall be afterwards.
    await qmp.execute("cont");
    port.send(`${Math.round(Date.now() / 1000)} ${randomBytes(64).toString("hex")}`);
    const answer = await port.next(becomeMs);
    if (answer === "failed disk") throw new Error("its disk was written since the state was saved");
    if (answer !== "done") throw new Error(`its guest could not become itself: ${answer.slice(0, 300)}`);
  } finally {
    port.close();
  }
  const plugs: { readonly [key: string]: Json }[] = [
    ...machine.interfaces.map(({ desired }, index) => ({
      driver: "virtio-net-pci",
      id: `nic${index}`,
      netdev: `net${index}`,
      mac: desired.mac,
      romfile: "",
    })),
    ...furtherDisks(machine).map((disk) => ({
      driver: "virtio-blk-pci",
      id: `disk-${disk.desired.connection}`,
      drive: disk.node,
      serial: disk.desired.connection.slice(0, 20),
      werror: "stop",
      rerror: "stop",
    })),
  ];
  for (const [index, plug] of plugs.entries()) await qmp.execute("device_add", { ...plug, bus: `port${index}` });
};
