import type { Socket } from "node:net";
import type { DesiredInterface } from "../../../core/documents/vocabulary.ts";
import type { Uid } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { ComposedDisk } from "../storage/driver.ts";
import type { MachineConsole } from "./guest/console.ts";
import type { GuestResult } from "./guest/guest-agent.ts";
import type { GuestCommand, GuestOutput, GuestRun } from "./guest/guest-command.ts";
import type { Incarnation } from "./guest/kept-consoles.ts";

export type Accelerator = "kvm" | "tcg";

/** Everything that a machine is started from. */
export interface MachineSpecification {
  readonly vm: Uid;
  readonly incarnation: number;
  /** Whose it is: what it said last is kept for this cell. Absent: nothing of it is kept. */
  readonly cell?: string;
  readonly name: string;
  readonly memoryMiB: number;
  readonly cpus: number;
  readonly disks: readonly ComposedDisk[];
  readonly interfaces: readonly { readonly tap: string; readonly desired: DesiredInterface }[];
  /** Shown to the guest as a mounted file system. */
  readonly data: Json;
  /**
   * More files for the guest, by their paths on that file system: stores that a service VM is born with (`birth/<role>/…`).
   * They hold keys: they are never logged and nowhere but there.
   */
  readonly files?: Readonly<Record<string, Buffer>>;
  /** "resume": from the saved state of its image, where that can be. Absent: "boot". */
  readonly start?: "boot" | "resume";
  /** A screen, a keyboard and a pointer. Absent: none. */
  readonly display?: "vga";
  /** Names of its nice wishes that are so at this host; absent: none, and its guest is told nothing of them. */
  readonly nice?: readonly string[];
}

/** A machine found on this host, whoever started it. */
export interface FoundMachine {
  readonly vm: Uid;
  readonly incarnation: number;
  readonly pid: number;
  /** It was killed, since its start failed, and is not confirmed gone. */
  readonly ending?: true;
}
/** `exited`: the guest powered itself off; `crashed`: its process ended any other way; `stopped`: on request. */
export interface MachineEnd {
  readonly vm: Uid;
  readonly incarnation: number;
  readonly ended: "exited" | "crashed" | "stopped";
  readonly detail: string;
}
/**
 * News of a machine that goes on existing. `stalled`: its CPUs were stopped because a disk gave an error (a storage server
 * gone, no space); `running`: they run again; `rebooted`: the guest reset itself; `panicked`: the guest's kernel said that
 * it cannot go on.
 */
export interface MachineCondition {
  readonly vm: Uid;
  readonly incarnation: number;
  readonly condition: "running" | "stalled" | "rebooted" | "panicked";
  /** A sentence, or of a disk its error in the system's words. */
  readonly detail: string;
  /** Of a stalled machine: the connections whose disks gave errors. */
  readonly connections?: readonly string[];
}

export interface RunningConsole {
  readonly incarnation: number;
  readonly console: MachineConsole;
}

export interface RunningDisplay {
  readonly incarnation: number;
  /** A connection of one viewer, which speaks RFB; fails as `net.connect` does. */
  connect(): Socket;
}

/** Runs machines. Machines outlive the process that started them: `list` finds them again after a restart. */
export interface HypervisorDriver {
  /** Boots a tiny payload with a deadline; the device file's existence proves nothing. The answer is remembered. */
  accelerator(): Promise<Accelerator>;
  /** Machines that run now, or whose end is still to be announced; also starts watching each for its end. */
  list(): Promise<readonly FoundMachine[]>;
  /**
   * Resolves when the guest's CPUs run, with a sentence if it had to boot though "resume" was desired, else null; a resumed
   * guest then has its own identity. Rejects with a sentence, and then nothing of it is left; with `NotConfirmedGone` where
   * its process was killed and does not end: `list` names it and `stop` tries again.
   */
  start(machine: MachineSpecification): Promise<string | null>;
  /**
   * Resolves when the process is confirmed gone. `graceMs` 0: at once; else ACPI power-off first. How long that is, says
   * `host/service/planner.ts`; a machine in which nobody ever answered gets less (`qemu.ts`).
   */
  stop(vm: Uid, graceMs: number): Promise<void>;
  /**
   * Makes a block node of a running machine larger, and its guest sees that; nothing happens to one that is large enough.
   * Rejects with a sentence.
   */
  grow(vm: Uid, node: string, sizeMiB: number): Promise<void>;
  onEnd(listener: (end: MachineEnd) => void): void;
  /** News of machines that go on, of those found again too. A panic is followed by the machine's end. */
  onCondition(listener: (condition: MachineCondition) => void): void;
  /** Does the agent of this incarnation's guest answer within the time? */
  answers(vm: Uid, incarnation: number, timeoutMs: number): Promise<boolean>;
  exec(vm: Uid, command: readonly string[], timeoutMs: number): Promise<GuestResult>;
  /** The serial console of a machine; null when it does not run here. */
  console(vm: Uid): RunningConsole | null;
  /** What an incarnation that has ended here said last on its console; null: nothing is kept of it, or it was another cell's. */
  kept(of: Incarnation): Promise<Buffer | null>;
  /** The screen of a machine, whoever has started it; null when it has none, or does not run here. */
  display(vm: Uid): RunningDisplay | null;
  /** Runs a command and gives its output as it comes. Throws a sentence when the machine does not run here. */
  run(vm: Uid, command: GuestCommand, output: GuestOutput): GuestRun;
  /** Forgets watchers; machines keep running. */
  close(): Promise<void>;
}
