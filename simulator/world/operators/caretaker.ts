import { type IsThere, instanceOf, type Leftovers, leftoversOf } from "../../../core/distribution/node/release.ts";
import { sentenceOf } from "../../../model/cause/sentence.ts";
import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { AnyProcess, Installation } from "../installation.ts";

/**
 * An operator who does what the documentation says of lost stores, some time after each of them: looks at `cells orphans list`,
 * lets a store count that nobody brings a newer one for (`cells orphans release`), ends what nobody wants any more (`cells
 * orphans end`), takes what an older storage server has (`cells server adopt`), brings files back from bins or empties them
 * where a volume waits for that, and has whoever stands still over older disks started anew. The users of a cell whose controller has an older store then say once more what they want.
 *
 * Before a host's word counts again he looks at its machines, and ends by hand what is no controller's. While faults go on he
 * does now this and now that; afterwards he sees to everything.
 */
const lookEveryMs = 3000;
/** Of what could be done, at one look, while faults go on. */
const willing = 0.3;
/** After healing: until everybody is in step again, so that nothing is ended which was not heard of yet. */
const graceMs = 15_000;
/** A guest that stood still for so long does not go on by itself. */
const stalledMs = 30_000;

/** What the caretaker is told of the history, and asks of it. */
export interface CaredFor {
  /** All faults have ended. */
  readonly isHealing: boolean;
  /** The cell's users say once more what they want. */
  wishAgain(cell: string): void;
}

export const beginCare = (installation: Installation, steps: CaredFor): void => {
  const care = new Care(installation, steps);
  const look = (): void => {
    installation.kernel.clock.after(lookEveryMs, look);
    care.look();
  };
  installation.kernel.clock.after(lookEveryMs, look);
};

class Care {
  readonly #installation: Installation;
  readonly #steps: CaredFor;
  readonly #random;
  #healedMs: number | null = null;
  /** Since when a machine stands still. */
  readonly #stalled = new Map<number, number>();

  constructor(installation: Installation, steps: CaredFor) {
    this.#installation = installation;
    this.#steps = steps;
    this.#random = installation.kernel.random.fork("operator of stores");
  }

  look(): void {
    const { losses, kernel } = this.#installation;
    if (losses.size === 0) return;
    if (this.#steps.isHealing) this.#healedMs ??= kernel.clock.nowMs;
    this.#adopt();
    const leftovers = this.#list();
    for (const peer of forkedIn(leftovers)) if (this.#isWilling()) this.#release(peer);
    if (!this.#isCalm()) return;
    for (const [service, { clients }] of leftovers)
      for (const { client, forked, keys } of clients) if (!forked) this.#end(service, client, keys);
    this.#emptyOrRestore();
    this.#wake();
  }

  #isWilling(): boolean {
    return this.#steps.isHealing || this.#random.chance(willing);
  }
  /** Everybody has had time to say all that there is to say. */
  #isCalm(): boolean {
    return this.#healedMs !== null && this.#installation.kernel.clock.nowMs - this.#healedMs >= graceMs;
  }
  #say(verb: string, words: string): void {
    this.#installation.kernel.log("operator", verb, { words });
  }

  readonly #isThere: IsThere = (peer, instance) => {
    const process = this.#installation.processes.get(peer);
    const now = process?.distribution?.instance;
    return process !== undefined && (instance === null || now === undefined || now === instance);
  };

  /** `cells orphans list`: of the services that answer. */
  #list(): ReadonlyMap<AnyProcess, Leftovers> {
    const found = new Map<AnyProcess, Leftovers>();
    for (const process of this.#installation.processes.values())
      if (process.isRunning && !process.isPaused && process.distribution !== null)
        found.set(process, leftoversOf(process.distribution, this.#isThere));
    return found;
  }

  #adopt(): void {
    for (const name of this.#installation.losses) {
      const process = this.#installation.processes.get(name);
      if (!name.startsWith("agent.") || process === undefined || !this.#isWilling()) continue;
      void process.request({ kind: "adopt" })?.then((answer) => {
        if (JSON.stringify(answer) !== '{"adopted":null}') this.#say("adopts", name);
      });
    }
  }

  #release(peer: PeerName): void {
    const process = this.#installation.processes.get(peer);
    if (peer.startsWith("controller.") && process !== undefined && !isInStep(process)) return;
    // Whoever has a machine there can say so: one that is ended by hand and wished for all the same would start once more.
    if (peer.startsWith("host.") && !this.#areThere([peer, ...this.#controllers()])) return;
    if (peer.startsWith("host.")) this.#lookAt(peerName(peer));
    this.#say("releases", peer);
    for (const each of this.#installation.processes.values()) each.tell({ kind: "release", peer });
    if (peer.startsWith("controller.")) this.#steps.wishAgain(peer.slice("controller.".length));
  }

  #controllers(): readonly PeerName[] {
    return [...this.#installation.controllers.values()].map(({ name }) => name);
  }
  #areThere(names: readonly PeerName[]): boolean {
    return names.every((name) => this.#installation.processes.get(name)?.isRunning === true);
  }

  /** What runs on a host and is no controller's is ended there. */
  #lookAt(peer: PeerName): void {
    const { processes, hosts } = this.#installation;
    const documents = [...(processes.get(peer)?.distribution?.clients.values() ?? [])];
    const wishes = this.#controllers().map((name) => processes.get(name)?.distribution?.targets.get(peer)?.documents);
    for (const { machine } of hosts.values()) {
      const { host } = machine;
      if (peer !== `host.${host}`) continue;
      for (const { vm } of machine.machines) {
        const key = `vm/${vm}`;
        if (documents.some((client) => client.documents.has(key))) continue;
        if (wishes.some((desired) => (desired?.get(key)?.value ?? null) !== null)) continue;
        this.#say("ends a machine", `${vm} at ${host}`);
        machine.end(vm, "crashed", "ended by hand");
      }
    }
  }

  #end(service: AnyProcess, client: PeerName, keys: readonly string[]): void {
    // What a service desires of others follows from what they say, and it takes it back itself.
    if (!client.startsWith("controller.") || keys.length === 0) return;
    this.#say("ends", `${service.name} ${client} ${keys.join(" ")}`);
    const instance = instanceOf(service.distribution?.clients.get(client));
    for (const key of keys) this.#installation.endedByHand.add(key.split("/").slice(1).join("/"));
    service.tell({ kind: "release", peer: client, keys, isGone: !this.#isThere(client, instance) });
  }

  /** What `cells why` says of a volume whose former file is in a bin: the one or the other. */
  #emptyOrRestore(): void {
    const { controllers, servers, executors } = this.#installation;
    const elements = [...controllers.values()].flatMap(({ state }) => [...(state?.elements.values() ?? [])]);
    const named = elements.map(({ causes }) => /`cells bin restore ([^/`]+)\/([^`]+)`/.exec(sentenceOf(causes) ?? ""));
    for (const [file, server] of new Map(named.flatMap((found) => (found ? [[found[2] ?? "", found[1] ?? ""]] : [])))) {
      const executor = executors.get(peerName(`agent.${server}`));
      const machine = [...servers.values()].find((each) => each.machine === server);
      if (executor === undefined || machine === undefined) continue;
      const verb = this.#random.chance(0.5) ? "restores" : "empties";
      this.#say(verb, `${server}/${file}`);
      if (verb === "restores") machine.offer(file);
      void (verb === "restores" ? executor.reportBin() : executor.emptyBin([file]));
    }
  }

  /** Who has stood still for long over the disks of a server that is older is started anew. */
  #wake(): void {
    const { hosts, kernel } = this.#installation;
    for (const { machine } of hosts.values()) {
      for (const { vm, pid, stalled } of machine.machines) {
        if (!stalled) {
          this.#stalled.delete(pid);
          continue;
        }
        const since = this.#stalled.get(pid) ?? kernel.clock.nowMs;
        this.#stalled.set(pid, since);
        if (kernel.clock.nowMs - since < stalledMs) continue;
        this.#say("starts anew", vm);
        machine.end(vm, "crashed", "its disks were put back");
      }
    }
  }
}

/** Peers whose store is named as lost or older anywhere, by themselves or by others. */
const forkedIn = (leftovers: ReadonlyMap<AnyProcess, Leftovers>): ReadonlySet<PeerName> => {
  const forked = new Set<PeerName>();
  for (const [service, { clients, receivers }] of leftovers) {
    for (const each of clients) if (each.forked) forked.add(each.client);
    for (const each of receivers) {
      if (each.itForked) forked.add(each.receiver);
      if (each.forked) forked.add(service.name);
    }
  }
  return forked;
};

/** It has heard everybody of whom it desires something, and so what they hold. */
const isInStep = ({ isRunning, distribution }: AnyProcess): boolean =>
  isRunning && [...(distribution?.targets.values() ?? [])].every(({ reachable }) => reachable !== false);
