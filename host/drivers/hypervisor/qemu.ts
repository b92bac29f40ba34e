import { existsSync } from "node:fs";
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Uid, uid } from "../../../model/cell/identifiers.ts";
import { machineIdentity, qemuIdentity } from "../unix-users.ts";
import { type DiskCounts, hasWritten, octetsOfDisks } from "./block-stats.ts";
import { type ConditionWatch, watchCondition } from "./condition.ts";
import type {
  Accelerator,
  FoundMachine,
  HypervisorDriver,
  MachineCondition,
  MachineEnd,
  MachineSpecification,
  RunningConsole,
  RunningDisplay,
} from "./driver.ts";
import { openConsole, type RecordedConsole, readRecord } from "./guest/console.ts";
import { createGuestAgent, type GuestAgent, type GuestResult } from "./guest/guest-agent.ts";
import { type GuestCommand, type GuestOutput, type GuestRun, runInGuest } from "./guest/guest-command.ts";
import { type Incarnation, KeptConsoles } from "./guest/kept-consoles.ts";
import { writeSeed } from "./guest/seed.ts";
import {
  handOver,
  handOverSecrets,
  howItEnded,
  lastWords,
  launch,
  type MachineFiles,
  machineFiles,
  processOf,
  readMachineRecord,
  stateDescriptor,
  writeRecord,
} from "./launch.ts";
import { boundLog, type LogBound } from "./log-bound.ts";
import { timeToPowerOff } from "./powering-off.ts";
import { kvmGroup, probeAccelerator } from "./process/accelerator.ts";
import { type Identity, machineName } from "./process/arguments.ts";
import { makeCgroups, removeCgroups } from "./process/cgroup.ts";
import { asRecord } from "./process/lines.ts";
import { connectPlain } from "./process/plain-socket.ts";
import {
  findByArgument,
  hasArgument,
  identify,
  isAlive,
  isExiting,
  NotConfirmedGone,
  type ProcessControl,
  type ProcessIdentity,
  processControl,
} from "./process/process.ts";
import { connectQmp, inTime, type Qmp } from "./qmp.ts";
import { padSeed, Resumption, resume } from "./resume/resume.ts";

/** From the launch to QEMU's answer; opening a chain of 16 layers over a busy network is in it. */
const launchDeadlineMs = 60_000;
/** From SIGTERM, at which QEMU flushes its disks, to SIGKILL. */
const flushMs = 2000;
/** A killed process that is still there after this is stuck in the kernel: its end cannot be confirmed. */
const killDeadlineMs = 30_000;
/** One that a guest has taken over, or whose storage hangs, may never answer: others wait for their turn meanwhile. */
const silentMs = 5000;

export interface QemuOptions {
  /** Volatile; every directory above it must be passable (mode x) for QEMU's user. Short: socket paths end at 107 bytes. */
  readonly runDirectory: string;
  /** Absent: a user for each machine (`host/drivers/unix-users.ts`); null: QEMU runs as we do. */
  readonly identity?: Identity | null;
  /** Parent cgroup directories; none: no limits. */
  readonly cgroups?: readonly string[];
  /** Is told why guests are emulated, where KVM is there and may yet work. */
  readonly onDoubt?: (why: string) => void;
  /** For tests. */
  readonly processes?: ProcessControl;
  readonly launchDeadlineMs?: number;
}

interface Watched {
  readonly vm: Uid;
  readonly incarnation: number;
  readonly cell: string | null;
  readonly process: ProcessIdentity;
  readonly files: MachineFiles;
  readonly agent: GuestAgent;
  qmp: Qmp | null;
  console: RecordedConsole | null;
  condition: ConditionWatch | null;
  readonly log: LogBound;
  /** The guest powered itself off. */
  guestOff: boolean;
  /** Why the guest could not go on, when it was that. */
  dead: string | null;
  stopping: boolean;
  /** Killed, since its start failed; its process is not confirmed gone. */
  ending: boolean;
  finished: boolean;
  finishing: Promise<void> | null;
}

/**
 * Runs machines in QEMU, one unprivileged process each. What is needed to find a machine again lies in `<runDirectory>/vms/<uid>/`; the process
 * itself, checked by start time and command line, is the only proof that it runs.
 */
export const createQemuDriver = (options: QemuOptions): HypervisorDriver & DiskCounts => new QemuDriver(options);

class QemuDriver implements HypervisorDriver, DiskCounts {
  readonly #runDirectory: string;
  readonly #machines: string;
  readonly #identityOf: (vm: Uid) => Identity | null;
  readonly #probeIdentity: Identity | null;
  readonly #cgroups: readonly string[];
  readonly #processes: ProcessControl;
  readonly #launchDeadlineMs: number;
  readonly #onDoubt: (why: string) => void;
  readonly #watched = new Map<Uid, Watched>();
  readonly #resumption = new Resumption();
  readonly #kept: KeptConsoles;
  readonly #listeners: ((end: MachineEnd) => void)[] = [];
  readonly #conditionListeners: ((condition: MachineCondition) => void)[] = [];
  #accelerator: Promise<Accelerator> | null = null;
  #closing = false;
  #closed = false;

  constructor(options: QemuOptions) {
    this.#runDirectory = options.runDirectory;
    this.#machines = join(options.runDirectory, "vms");
    this.#kept = new KeptConsoles(join(options.runDirectory, "consoles"));
    const { identity } = options;
    this.#identityOf = (vm) => (identity === undefined ? machineIdentity(vm) : identity);
    this.#probeIdentity = identity === undefined ? qemuIdentity : identity;
    this.#cgroups = options.cgroups ?? [];
    this.#processes = options.processes ?? processControl;
    this.#launchDeadlineMs = options.launchDeadlineMs ?? launchDeadlineMs;
    this.#onDoubt = options.onDoubt ?? (() => undefined);
  }

  accelerator(): Promise<Accelerator> {
    this.#accelerator ??= probeAccelerator(this.#runDirectory, this.#probeIdentity).then(({ accelerator, doubt }) => {
      if (doubt !== undefined) this.#onDoubt(doubt);
      return accelerator;
    });
    return this.#accelerator;
  }

  diskOctets(): Promise<ReadonlyMap<Uid, number>> {
    return octetsOfDisks([...this.#watched.values()]);
  }

  async list(): Promise<readonly FoundMachine[]> {
    const names = await readdir(this.#machines).catch(() => []);
    const unknown = names.map((name) => uid(name)).filter((vm) => !this.#watched.has(vm));
    await Promise.all(unknown.map((vm) => this.#adopt(vm)));
    return [...this.#watched.values()]
      .filter((watched) => !watched.ending || isAlive(watched.process))
      .map(({ vm, incarnation, process, ending }) => ({
        vm,
        incarnation,
        pid: process.pid,
        ...(ending ? { ending: true as const } : {}),
      }));
  }

  async start(machine: MachineSpecification): Promise<string | null> {
    const files = machineFiles(this.#machines, machine.vm);
    const existing = this.#watched.get(machine.vm) ?? (await this.#adopt(machine.vm));
    if (existing !== null && isAlive(existing.process))
      throw new Error(
        `incarnation ${existing.incarnation} of ${machine.vm} still runs: stop it before starting ${machine.incarnation}`,
      );
    if (machine.start !== "resume") {
      await this.#launch(machine, files, false);
      return null;
    }
    const obstacle = await this.#resumption
      .obstacle(machine, await this.accelerator())
      .then((why) => (why === null ? this.#launch(machine, files, true).then(() => null) : why))
      .catch((error: Error) => {
        if (error instanceof NotConfirmedGone) throw error;
        return error.message;
      });
    if (obstacle === null) return null;
    // Nothing of the attempt is left, and what its guest may have written is a disk that one can boot from.
    await this.#launch(machine, files, false);
    return `it booted, since it could not go on from the saved state of its image: ${obstacle}`;
  }

  /**
   * Resolves when the guest's CPUs run; a resumed guest is itself then. Rejects with a sentence, leaving nothing, or with
   * `NotConfirmedGone`, and then it is known as a machine that is ending.
   */
  async #launch(machine: MachineSpecification, files: MachineFiles, resumed: boolean): Promise<void> {
    await this.#keepLeft(machine.vm, files);
    await rm(files.directory, { recursive: true, force: true });
    await mkdir(files.directory, { recursive: true, mode: 0o711 });
    let launched: ProcessIdentity | null = null;
    let log: LogBound | null = null;
    try {
      const accelerator = await this.accelerator();
      await writeSeed(machine, files.seed);
      if (resumed) await padSeed(files.seed, machine);
      const identity = this.#identityOf(machine.vm);
      handOver(files, identity);
      for (const directory of machine.disks.flatMap((disk) => disk.secretDirectories))
        handOverSecrets(directory, identity);
      // Before the process exists, so that a starter that dies in between leaves nothing that cannot be found.
      await writeRecord(files, machine, null, resumed);
      const child = launch({
        machine,
        files,
        accelerator,
        identity,
        kvmGroup: await kvmGroup(accelerator),
        cgroupDirectories: await makeCgroups(this.#cgroups, machine.vm, machine),
        resume: resumed ? this.#resumption.files(machine) : null,
      });
      launched = await processOf(child);
      await writeRecord(files, machine, launched, resumed);
      const watched = this.#newWatched(machine, launched, files);
      log = watched.log;
      await this.#connect(watched, this.#launchDeadlineMs);
      if (resumed && watched.qmp !== null) await resume(machine, watched.qmp, files.identity, stateDescriptor);
      if (watched.finished) throw new Error("QEMU ended at once");
      if (resumed) {
        await writeRecord(files, machine, launched, false);
        this.#resumption.began(machine);
      }
      this.#watched.set(machine.vm, watched);
    } catch (error) {
      log?.close();
      const words = await lastWords(files);
      const why = error instanceof Error ? error.message : String(error);
      const failed = `${machine.name} did not start: ${launched === null ? why : `${why}; QEMU said: ${words}`}`;
      if (launched !== null) {
        this.#processes.signal(launched, "SIGKILL");
        if (!(await this.#processes.waitGone(launched, killDeadlineMs))) {
          await this.#keepEnding(machine, launched, files);
          throw new NotConfirmedGone(`${failed}; its process ${launched.pid} does not end when killed`);
        }
      }
      await removeCgroups(this.#cgroups, machine.vm);
      await rm(files.directory, { recursive: true, force: true });
      throw new Error(failed);
    }
  }

  /** Its record stays, so that whoever comes next finds it, and nothing of it is let run. */
  async #keepEnding(machine: MachineSpecification, process: ProcessIdentity, files: MachineFiles): Promise<void> {
    const watched = this.#newWatched(machine, process, files);
    watched.ending = true;
    this.#watched.set(machine.vm, watched);
    await writeRecord(files, machine, process, true);
  }

  async stop(vm: Uid, graceMs: number): Promise<void> {
    const files = machineFiles(this.#machines, vm);
    const watched = this.#watched.get(vm) ?? (await this.#adopt(vm));
    if (watched !== null) {
      watched.stopping = true;
      if (graceMs > 0 && !watched.ending && watched.qmp !== null) {
        const patienceMs = Math.min(graceMs, silentMs);
        const { qmp } = watched;
        const hasGuest = watched.agent.hasAnswered() || (await inTime(hasWritten(qmp), patienceMs).catch(() => true));
        const deadline = performance.now() + timeToPowerOff(graceMs, hasGuest);
        await inTime(qmp.execute("system_powerdown"), patienceMs).catch(() => undefined);
        // Small guests have nobody who listens to the power button.
        watched.agent.exec(["/sbin/poweroff"], Math.min(2000, graceMs)).catch(() => undefined);
        const goesOn = (): boolean => !watched.guestOff && watched.dead === null && isAlive(watched.process);
        while (goesOn() && performance.now() < deadline) await sleep(20);
      }
      this.#processes.signal(watched.process, watched.ending ? "SIGKILL" : "SIGTERM");
      if (!(await this.#processes.waitGone(watched.process, flushMs))) {
        this.#processes.signal(watched.process, "SIGKILL");
        if (!(await this.#processes.waitGone(watched.process, killDeadlineMs)))
          throw new NotConfirmedGone(
            `${vm} cannot be confirmed stopped: its process ${watched.process.pid} does not end when killed`,
          );
      }
      await this.#finish(watched);
    } else await this.#keepLeft(vm, files);
    await rm(files.directory, { recursive: true, force: true });
  }

  async grow(vm: Uid, node: string, sizeMiB: number): Promise<void> {
    const qmp = this.#watched.get(vm)?.qmp;
    if (qmp == null) throw new Error(`the machine of ${vm} cannot be spoken to`);
    const answer = await inTime(qmp.execute("query-named-block-nodes", { flat: true }), silentMs);
    const nodes = answer as readonly unknown[];
    const found = nodes.map(asRecord).find((each) => each["node-name"] === node);
    if (found === undefined) throw new Error(`the machine of ${vm} has no disk of that lease`);
    const bytes = sizeMiB * 1024 * 1024;
    if (Number(asRecord(found.image)["virtual-size"]) >= bytes) return;
    await inTime(qmp.execute("block_resize", { "node-name": node, size: bytes }), silentMs);
  }

  onEnd(listener: (end: MachineEnd) => void): void {
    this.#listeners.push(listener);
  }

  onCondition(listener: (condition: MachineCondition) => void): void {
    this.#conditionListeners.push(listener);
  }

  async answers(vm: Uid, incarnation: number, timeoutMs: number): Promise<boolean> {
    const watched = this.#watched.get(vm);
    if (watched?.incarnation !== incarnation) return false;
    const answer = watched.agent.call("guest-ping", {}, timeoutMs);
    return answer.then(
      () => true,
      () => false,
    );
  }

  async exec(vm: Uid, command: readonly string[], timeoutMs: number): Promise<GuestResult> {
    const watched = this.#watched.get(vm);
    if (watched === undefined) throw new Error(`${vm} does not run on this host`);
    return watched.agent.exec(command, timeoutMs);
  }

  console(vm: Uid): RunningConsole | null {
    const watched = this.#watched.get(vm);
    return watched?.console == null ? null : { incarnation: watched.incarnation, console: watched.console };
  }

  kept(of: Incarnation): Promise<Buffer | null> {
    return this.#kept.read(of);
  }
  /** Of one that ended while nobody watched. */
  async #keepLeft(vm: Uid, files: MachineFiles): Promise<void> {
    const { cell = null, incarnation = 0 } = (await readMachineRecord(files)) ?? {};
    if (cell !== null) await this.#kept.keep({ cell, vm, incarnation }, await readRecord(files.console));
  }

  display(vm: Uid): RunningDisplay | null {
    const watched = this.#watched.get(vm);
    if (watched === undefined || watched.ending || !existsSync(watched.files.display)) return null;
    return { incarnation: watched.incarnation, connect: () => connectPlain(watched.files.display) };
  }

  run(vm: Uid, command: GuestCommand, output: GuestOutput): GuestRun {
    const watched = this.#watched.get(vm);
    if (watched === undefined) throw new Error(`${vm} does not run on this host`);
    return runInGuest(watched.agent, command, output);
  }

  async close(): Promise<void> {
    // What powers off from now on is kept for the next one to look at; where a process is gone it cannot tell how it ended.
    this.#closing = true;
    await this.#announceSeen();
    this.#closed = true;
    this.#resumption.close();
    this.#kept.close();
    for (const watched of this.#watched.values()) {
      letGo(watched);
      watched.qmp?.close();
    }
    this.#watched.clear();
  }

  #newWatched(
    { vm, incarnation, cell }: Pick<MachineSpecification, "vm" | "incarnation" | "cell">,
    process: ProcessIdentity,
    files: MachineFiles,
  ): Watched {
    const watched: Watched = {
      vm,
      incarnation,
      cell: cell ?? null,
      process,
      files,
      agent: createGuestAgent(files.agent),
      qmp: null,
      console: null,
      condition: null,
      log: boundLog(files.log),
      guestOff: false,
      dead: null,
      stopping: false,
      ending: false,
      finished: false,
      finishing: null,
    };
    watched.condition = this.#watchCondition(watched);
    return watched;
  }

  /** Takes over a machine that an earlier process started, if its record is true; else null. */
  async #adopt(vm: Uid): Promise<Watched | null> {
    const files = machineFiles(this.#machines, vm);
    const record = await readMachineRecord(files);
    if (record === null) return null;
    const { incarnation, cell, unfinished } = record;
    const name = machineName(vm, incarnation);
    const process = record.process ?? findByArgument(`socket,id=qmp,path=${files.qmp},server=on,wait=off`);
    if (process === null || identify(process.pid)?.startTime !== process.startTime) return null;
    const exiting = isExiting(process);
    if (!isAlive(process) || !(exiting || hasArgument(process.pid, name))) return null;
    const ending = exiting || unfinished;
    if (ending) {
      // Nobody knows what its guest is, if it still has one. It counts as ended once it is gone, and its next incarnation boots.
      this.#processes.signal(process, "SIGKILL");
      if (await this.#processes.waitGone(process, killDeadlineMs)) return null;
    }
    const watched = this.#newWatched({ vm, incarnation, ...(cell === null ? {} : { cell }) }, process, files);
    watched.ending = ending;
    this.#watched.set(vm, watched);
    // Connecting would let its CPUs run.
    if (ending) return watched;
    // Watched even if its control socket does not answer now: what lives must be known. The others do not wait for it.
    const connected = this.#connect(watched, silentMs).catch(() => this.#reconnect(watched));
    await inTime(connected, silentMs).catch(() => undefined);
    return watched;
  }

  /** Connects the control socket and the console; lets the CPUs run if they never did. */
  async #connect(watched: Watched, timeoutMs: number): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      try {
        watched.qmp = await connectQmp(
          watched.files.qmp,
          (event) => watched.condition?.event(event),
          () => this.#disconnected(watched),
        );
        break;
      } catch (error) {
        if (!isAlive(watched.process)) throw new Error("QEMU ended at once");
        if (performance.now() >= deadline)
          throw new Error(
            `QEMU did not answer within ${timeoutMs} ms (${error instanceof Error ? error.message : error})`,
          );
        await sleep(20);
      }
    }
    watched.console ??= await openConsole(watched.files.serial, watched.files.console);
    await watched.condition?.connected(watched.qmp);
  }

  #watchCondition(watched: Watched): ConditionWatch {
    // QEMU stays after a power-off or a panic (`-no-shutdown`) until it was seen here.
    const quit = (): void => {
      if (!watched.stopping && !this.#closing) watched.qmp?.execute("quit").catch(() => undefined);
    };
    const tell = (news: Omit<MachineCondition, "vm" | "incarnation">): void => {
      const { vm, incarnation } = watched;
      for (const listener of this.#conditionListeners) listener({ vm, incarnation, ...news });
    };
    return watchCondition({
      tell,
      poweredOff: () => {
        watched.guestOff = true;
        quit();
      },
      dead: (why) => {
        watched.dead = why;
        tell({ condition: "panicked", detail: why });
        quit();
      },
    });
  }

  #disconnected(watched: Watched): void {
    watched.qmp = null;
    if (this.#closed || watched.finished) return;
    this.#processes
      .waitGone(watched.process, flushMs)
      .then((gone) => (gone ? this.#finish(watched) : this.#reconnect(watched)));
  }

  async #reconnect(watched: Watched): Promise<void> {
    while (!this.#closed && !watched.finished && isAlive(watched.process)) {
      try {
        await this.#connect(watched, 5000);
        return;
      } catch {
        await sleep(1000);
      }
    }
    if (!this.#closed) await this.#finish(watched);
  }

  /** Once per machine, after its process is confirmed gone. Whoever comes second waits until the end was announced, too. */
  #finish(watched: Watched): Promise<void> {
    watched.finishing ??= this.#announceEnd(watched);
    return watched.finishing;
  }

  async #announceSeen(): Promise<void> {
    const seen = [...this.#watched.values()].filter((each) => each.finishing ?? (each.guestOff || each.dead !== null));
    const isGone = (each: Watched): Promise<boolean> => this.#processes.waitGone(each.process, flushMs);
    await Promise.all(seen.map(async (each) => (await isGone(each)) && this.#finish(each)));
  }

  async #announceEnd(watched: Watched): Promise<void> {
    // A machine whose start failed is never announced: its starter is told.
    watched.finished = true;
    const { cell, vm, incarnation, console } = watched;
    const said = (await console?.last()) ?? null;
    letGo(watched);
    if (cell !== null && said !== null) await this.#kept.keep({ cell, vm, incarnation }, said);
    if (this.#watched.get(vm) !== watched) return;
    await rm(watched.files.record, { force: true });
    await removeCgroups(this.#cgroups, vm);
    this.#resumption.ended(vm, incarnation, !watched.stopping && (watched.guestOff || watched.dead !== null));
    const how = await howItEnded(watched);
    // Not before: whoever lists meanwhile would take it for lost, and how it ended would be heard by nobody.
    if (this.#watched.get(vm) === watched) this.#watched.delete(vm);
    for (const listener of this.#listeners) listener({ vm, incarnation, ...how });
  }
}

const letGo = ({ condition, console, log, agent }: Watched): void => {
  condition?.close();
  console?.close();
  log.close();
  agent.close();
};
