import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ServiceRole } from "../core/documents/service-roles.ts";
import { createAuthority } from "../runtime/identity/certificates.ts";
import type { ProcessConfiguration } from "../runtime/installation.ts";
import { heapOptionsOf } from "../runtime/life/heap.ts";
import { configurationOf, listenDescriptor, memberFiles, modesOf, modesOfMachine } from "./configuration.ts";
import { writeJson } from "./files.ts";
import { certify, giveGossipKey } from "./identity.ts";
import { memberDirectory, type Places, places } from "./places.ts";
import { type CellRecord, type InstallationRecord, readRecord, withCell, withoutCell, writeRecord } from "./record.ts";
import { bootstrapHost, bootstrapPart, firstPeers, ownPeersFile, writeFirstPeers } from "./self-hosted.ts";
import { compiledDirectory } from "./suite/compile-cache.ts";
import { makeCgroups } from "./supervisor/cgroups.ts";
import type { Instructions } from "./supervisor/instructions.ts";
import { controllerMember, doorsOf, isOutside, type Member, membersOf, peersOf } from "./supervisor/members.ts";
import { makeMember, makeUnderlay, removeMember } from "./supervisor/namespaces.ts";
import { type Launch, type MemberStatus, Supervised } from "./supervisor/supervised.ts";

const repository = fileURLToPath(new URL("..", import.meta.url));
const stopGraceMs = 5000;
const substrateLimitMs = 15_000;

/** All members of a running testbed. One change at a time: callers await. */
export class Installation {
  readonly #instructions: Instructions;
  readonly #at: Places;
  #record: InstallationRecord;
  readonly #members = new Map<string, Supervised>();
  /** Changes of cells follow one another. */
  #turn: Promise<unknown> = Promise.resolve();

  readonly #log: Launch["onEvent"];

  /** @param log told of every change of a member's process */
  constructor(instructions: Instructions, log: Launch["onEvent"]) {
    this.#instructions = instructions;
    this.#log = log;
    this.#at = places(instructions.directory);
    const record = readRecord(this.#at);
    if (record === undefined) throw new Error(`${this.#at.recordFile} is missing: start the testbed with \`cells up\``);
    this.#record = record;
  }

  /**
   * Makes the underlay and every member's machine, then starts hosts and storage servers, then the rest: a Placer that
   * starts after them knows all of them when it is asked for the first time. A host that does not come up holds the rest
   * up for a limited time only.
   */
  start(): Promise<void> {
    return this.#inTurn(async () => {
      await makeUnderlay();
      await createAuthority(this.#at.authority);
      mkdirSync(this.#at.shared, { recursive: true });
      this.#writePeers();
      const made = await Promise.all(membersOf(this.#record).map((member) => this.#make(member)));
      const isSubstrate = ({ member }: Supervised): boolean => member.role === "host" || member.role === "agent";
      const substrate = made.filter(isSubstrate);
      for (const supervised of substrate) supervised.start();
      await allAnswer(substrate, substrateLimitMs);
      for (const supervised of made) supervised.start();
    });
  }

  /** SIGTERM to all: whoever has something to say goodbye to does. */
  async stop(): Promise<void> {
    await Promise.all([...this.#members.values()].map((member) => member.stop(stopGraceMs)));
  }

  /** In the order of `membersOf`; those that are still being made are there too. */
  status(): readonly MemberStatus[] {
    return membersOf(this.#record).map(
      (member) => this.#members.get(member.name)?.status() ?? notYet(member, this.#logFile(member)),
    );
  }

  /** Its management runs in VMs, the gateway too; undefined: as processes. */
  get profile(): InstallationRecord["profile"] {
    return this.#record.profile;
  }

  /** What is passed on outside, in the order of its sockets. */
  outside(): readonly ServiceRole[] {
    return ["gateway", ...doorsOf(this.#record).map((door) => `personality.${door}` as const)];
  }

  cells(): readonly string[] {
    return Object.keys(this.#record.cells);
  }

  /** By short name or by peer name. */
  member(name: string): Supervised | undefined {
    return this.#members.get(name) ?? [...this.#members.values()].find(({ member }) => member.peer === name);
  }

  /** Makes the cell's controller; the same again when it is there. Resolves when its process is started. */
  addCell(cell: string, given?: CellRecord): Promise<MemberStatus> {
    return this.#inTurn(async () => {
      const known = this.#members.get(`controller.${cell}`);
      if (known !== undefined) return known.status();
      this.#record = withCell(this.#record, cell, given);
      writeRecord(this.#at, this.#record);
      this.#writePeers();
      const member = controllerMember(cell, this.#record.cells[cell]?.cellNumber ?? 0);
      const supervised = await this.#make(member);
      supervised.start();
      return supervised.status();
    });
  }

  /** Ends the controller and removes its data. False when there is no such cell. */
  removeCell(cell: string): Promise<boolean> {
    return this.#inTurn(async () => {
      const running = this.#members.get(`controller.${cell}`);
      if (running === undefined) return false;
      await running.stop(stopGraceMs);
      this.#members.delete(running.member.name);
      await removeMember(running.member);
      this.#record = withoutCell(this.#record, cell);
      writeRecord(this.#at, this.#record);
      this.#writePeers();
      rmSync(memberDirectory(this.#at, running.member.name), { recursive: true, force: true });
      return true;
    });
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work, work);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  #writePeers(): void {
    writeJson(`${this.#at.shared}/peers.json`, { peers: peersOf(membersOf(this.#record)) });
  }

  async #make(member: Member): Promise<Supervised> {
    const files = memberFiles(this.#at, member);
    mkdirSync(files.data, { recursive: true });
    mkdirSync(files.certificate, { recursive: true, mode: 0o700 });
    const { imagesDirectory, cacheDirectory, commands } = this.#instructions;
    const certificate = await certify(this.#at.authority, files.certificate, member);
    if (member.role === "host") {
      giveGossipKey(this.#at.authority, files.gossipKey);
      if (this.#record.networkModes !== undefined) this.#giveModes(member);
    }
    const limits = member.role === "host" || member.role === "agent";
    const cgroups = limits ? makeCgroups(this.#instructions.cgroupRoots, member.name) : [];
    const more = await this.#selfHosted(member);
    writeJson(
      files.configuration,
      configurationOf(this.#at, this.#record, member, certificate, imagesDirectory, cgroups, more),
    );
    const further =
      member.role === "agent" ? [imagesDirectory] : member.role === "gateway" ? [this.#at.run] : ([] as const);
    await makeMember(this.#at, cacheDirectory, member, further);
    const command = commands[member.role] ?? [
      "env",
      `NODE_COMPILE_CACHE=${compiledDirectory(this.#at)}`,
      process.execPath,
      ...heapOptionsOf(member.role),
      `${repository}${member.main}`,
    ];
    const supervised = new Supervised(member, {
      command: [...command, files.configuration],
      logFile: this.#logFile(member),
      onEvent: this.#log,
      ...(isOutside(member.role)
        ? { descriptor: listenDescriptor + this.outside().indexOf(member.role as ServiceRole) }
        : {}),
    });
    this.#members.set(member.name, supervised);
    return supervised;
  }

  #giveModes(member: Member): void {
    const { directory } = modesOf(this.#record, member);
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, "eucalyptus.conf"), modesOfMachine);
  }

  /** What a member's configuration has more where the management runs in VMs. */
  async #selfHosted(member: Member): Promise<Partial<ProcessConfiguration>> {
    const { profile } = this.#record;
    if (profile === undefined) return {};
    const members = membersOf(this.#record);
    writeFirstPeers(this.#at, member, await firstPeers(this.#at, profile, members));
    return {
      peersFile: ownPeersFile(this.#at, member),
      followPeers: true,
      ...(member.name === bootstrapHost.name ? { bootstrap: bootstrapPart(this.#at, profile, peersOf(members)) } : {}),
    };
  }

  #logFile(member: Member): string {
    return `${this.#at.logs}/${member.name}.log`;
  }
}

const allAnswer = async (members: readonly Supervised[], limitMs: number): Promise<void> => {
  const end = performance.now() + limitMs;
  while (members.some((member) => !member.status().answers) && performance.now() < end) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};

const notYet = ({ name, peer, address }: Member, logFile: string): MemberStatus => ({
  name,
  peer,
  address,
  logFile,
  running: false,
  answers: false,
  pid: null,
  restarts: 0,
  lastEnd: null,
  state: "stopped" as const,
  since: null,
  memoryMiB: null,
});
