import assert from "node:assert/strict";
import { formatIpv4 } from "../../model/addresses/addresses.ts";
import { instancesOf, segmentOf } from "../../model/eucalyptus/addresses/segments.ts";
import type { InstanceAllocation } from "../../model/eucalyptus/allocation/allocation.ts";
import type { NetworkConfiguration } from "../../model/eucalyptus/configuration/configuration.ts";
import { below, seedOf } from "../random.ts";
import { addressKey, type Book, emptyBook, isInSegments, managedOf, placeOf } from "./book.ts";
import type { Answer, Request } from "./request.ts";
import { restoreBook } from "./restored.ts";
import { step } from "./step.ts";
import { viewOf } from "./view.ts";

/** What one host of the world has in place, which is the truth that the book is held against. */
interface Host {
  readonly name: string;
  readonly cluster: string;
  readonly peer: "node" | "network";
  /** Instance by address. */
  placed: Map<string, string>;
  /** Of the view that is in place whole; 0: none. */
  version: number;
  up: boolean;
}
/** A word of a host on its way. */
type Word = Extract<Request, { readonly kind: "heard" }>;

/** How often what an invariant is about was so: one whose premise never held says nothing. */
export interface Premises {
  grants: number;
  /** An address was given while others were being released. */
  besideReleasing: number;
  /** A word came that was older than what it was silent about. */
  staleWords: number;
  fences: number;
  crashes: number;
  moves: number;
  segments: number;
  elsewhere: number;
  /** A store was lost, and one was an older one. */
  lost: number;
  older: number;
  /** Something was given up that nobody else may have meanwhile. */
  waited: number;
  takeovers: number;
  /** A network host had elastic addresses. */
  carried: number;
  /** Another one might still be active. */
  stillActive: number;
}
export const noPremises = (): Premises => ({
  grants: 0,
  besideReleasing: 0,
  staleWords: 0,
  fences: 0,
  crashes: 0,
  moves: 0,
  segments: 0,
  elsewhere: 0,
  lost: 0,
  older: 0,
  waited: 0,
  takeovers: 0,
  carried: 0,
  stillActive: 0,
});

/** What owners want, by their own stores. */
interface Owned {
  readonly owner: string;
  readonly cluster: string;
  readonly node: string;
  readonly groups: readonly string[];
  /** That it was told. */
  readonly address: number;
}

/** The Network View Manager, its store, hosts that hear late or never, and words that overtake nothing but come late. */
export class BookWorld {
  readonly premises: Premises;
  readonly #random: { random: number };
  readonly #store = new Map<string, unknown>();
  readonly #hosts: readonly Host[];
  /** In order for each host; a host that went down loses none that it has sent. */
  readonly #words: Word[] = [];
  #book: Book = emptyBook();
  #next = 0;
  readonly #configuration: NetworkConfiguration;
  readonly #owned = new Map<string, Owned>();
  readonly #elasticOf = new Map<number, { readonly account: string; instance: string | null }>();
  /** A copy of the store from before. */
  #copy: ReadonlyMap<string, unknown> = new Map();
  /** Owners have yet to repeat what they want. */
  #isRepeating = false;
  #refusals: readonly string[] = [];
  readonly #accounts = ["alice", "bob"];

  constructor(seed: number, configuration: NetworkConfiguration, premises: Premises) {
    this.#random = { random: seedOf(seed) };
    this.premises = premises;
    this.#configuration = configuration;
    const names = ["a", "b", "c", "d", ...(isInSegments(configuration) ? ["n", "m", "o"] : [])];
    this.#hosts = names.map((name, index): Host => {
      const cluster = name === "d" || name === "o" ? "two" : "one";
      return { name, cluster, placed: new Map(), version: 0, up: true, peer: index < 4 ? "node" : "network" };
    });
    this.ask({ kind: "configure", configuration });
  }
  get book(): Book {
    return this.#book;
  }
  #below(limit: number): number {
    return below(this.#random, limit);
  }
  #one<T>(of: readonly T[]): T | undefined {
    return of[this.#below(Math.max(1, of.length))];
  }
  /** What is written is there when the answer is; a crash in between has both, or neither. */
  ask(request: Request): Answer {
    const { answer, writes } = step(this.#book, request);
    for (const { key, value } of writes)
      if (value === null) this.#store.delete(key);
      else this.#store.set(key, structuredClone(value));
    return answer;
  }

  /** One thing happens. */
  turn(): void {
    const acts: readonly (() => void)[] = [
      () => this.#run(),
      () => this.#run(),
      () => this.#terminate(),
      () => this.#move(),
      () => this.#elastic(),
      () => this.#elastic(),
      () => this.#apply(this.#host()),
      () => this.#apply(this.#host()),
      () => this.#deliver(),
      () => this.#deliver(),
      () => this.#deliver(),
      () => this.#fail(),
      () => this.#networkHost(),
      () => this.#repeat(),
      () => this.#lose(),
    ];
    this.#one(acts)?.();
    this.check();
  }
  #host(peer?: Host["peer"]): Host {
    return this.#one(this.#hosts.filter((host) => peer === undefined || host.peer === peer)) as Host;
  }
  #networkHost(): void {
    const host = this.#one(this.#hosts.filter(({ peer }) => peer === "network"));
    if (host === undefined) return;
    const isActive = this.#book.networkHosts.get(host.cluster)?.active === host.name;
    if (isActive && this.#below(4) > 0) return;
    const request = { kind: "network-host", cluster: host.cluster, host: isActive ? null : host.name } as const;
    const { refused } = this.ask(request);
    if (refused !== null) this.premises.stillActive += 1;
    else if (!isActive) this.premises.takeovers += 1;
  }
  /** The store is lost, or another one is put in its place that is older; the hosts are as they are. */
  #lose(): void {
    if (this.#below(8) > 0) return;
    if (this.#below(3) === 0) {
      this.#copy = structuredClone(this.#store);
      return;
    }
    const isOlder = this.#copy.size > 0 && this.#below(2) === 0;
    this.premises[isOlder ? "older" : "lost"] += 1;
    this.#store.clear();
    if (isOlder) for (const [key, value] of structuredClone(this.#copy)) this.#store.set(key, value);
    this.#book = restoreBook(structuredClone(this.#store));
    this.#isRepeating = true;
    // Which words were on their way does not come to another process.
    this.#words.length = 0;
    if (!isOlder) this.ask({ kind: "configure", configuration: this.#configuration });
    this.ask({ kind: "recover", hosts: this.#hosts.map(({ name }) => name) });
  }
  /** Owners say again what they want, as they do after a start. */
  #repeat(): void {
    if (!this.#isRepeating) return;
    const refusals: string[] = [];
    const end = (): void => {
      for (const id of [...this.#book.instances.keys()]) if (!this.#owned.has(id)) this.ask({ kind: "terminate", id });
    };
    const isFirst = this.#below(2) === 0;
    if (isFirst) end();
    for (const [id, { address, ...instance }] of this.#owned) {
      const said = this.ask({ kind: "run", instance: { id, ...instance } });
      if (said.refused !== null) {
        // One that is in place nowhere may wait for room that comes once hosts have a view again.
        const isInPlace = this.#hosts.some(({ placed }) => placed.get(addressKey("private", address)) === id);
        if (isInPlace || said.refused.includes("has yet to say")) refusals.push(said.refused);
      } else if (said.address !== address) {
        // None that is in place becomes another one.
        const key = addressKey("private", address);
        assert.ok(!this.#hosts.some(({ placed }) => placed.get(key) === id), `${id} had ${key}, and is given another`);
        this.#owned.set(id, { ...instance, address: said.address ?? 0 });
      }
      const now = this.#book.instances.get(id);
      if (now !== undefined && now.node !== instance.node) {
        const { cluster, node } = instance;
        const { refused } = this.ask({ kind: "move", id, cluster, node });
        if (refused !== null) refusals.push(refused);
      }
    }
    if (!isFirst) end();
    // With instances that are no more: they are the accounts' again once what nobody has named has gone.
    const later: [has: number, account: string][] = [];
    for (const [has, { account, instance }] of this.#elasticOf) {
      const { address, refused } = this.ask({ kind: "allocate", account, has });
      if (refused?.includes("its owner has yet to say so") === true) later.push([has, account]);
      else if (address !== has) refusals.push(refused ?? `another elastic address than ${has}`);
      else if (instance !== null) {
        const why = this.ask({ kind: "associate", address, account, id: instance }).refused;
        if (why?.includes("has yet to say") === true) refusals.push(why);
      }
    }
    this.#refusals = refusals;
    if (refusals.length > 0 || this.ask({ kind: "settled" }).refused !== null) return;
    this.#isRepeating = false;
    for (const [has, account] of later)
      assert.equal(this.ask({ kind: "allocate", account, has }).address, has, `lost: ${has} of ${account}`);
  }

  #run(): void {
    const host = this.#host("node");
    const id = `i-${(this.#next++).toString(16).padStart(8, "0")}`;
    const groups = [`sg-${this.#below(4)}`];
    const owner = this.#one(this.#accounts) as string;
    const { configuration } = this.#book;
    const isFresh = configuration !== null && isInSegments(configuration) && !this.#book.segments.has(groups[0] ?? "");
    const { refused, address } = this.ask({
      kind: "run",
      instance: { id, owner, cluster: host.cluster, node: host.name, groups },
    });
    if (refused?.includes("yet to say") === true) this.premises.waited += 1;
    if (refused !== null || address === undefined) return;
    this.#owned.set(id, { owner, cluster: host.cluster, node: host.name, groups, address });
    this.premises.grants += 1;
    if (isFresh) this.premises.segments += 1;
    if ([...this.#book.addresses.values()].some(({ instance }) => instance === null))
      this.premises.besideReleasing += 1;
    this.#nobodyElse(addressKey("private", address), id, null);
  }
  /** What is given is in place for nobody else, but at a host that will be told of both in one view. */
  #nobodyElse(key: string, id: string, at: string | null): void {
    for (const { name, placed } of this.#hosts) {
      const before = placed.get(key);
      if (before !== undefined && before !== id && name !== at)
        assert.fail(`reuse: ${key} is given to ${id} while ${name} has it for ${before}`);
    }
  }
  #terminate(): void {
    const instance = this.#one([...this.#book.instances.values()]);
    if (instance === undefined) return;
    this.ask({ kind: "terminate", id: instance.id });
    this.#owned.delete(instance.id);
    for (const lease of this.#elasticOf.values()) if (lease.instance === instance.id) lease.instance = null;
  }
  #move(): void {
    const instance = this.#one([...this.#book.instances.values()]);
    const host = this.#one(this.#hosts.filter(({ up, peer }) => up && peer === "node"));
    const owned = this.#owned.get(instance?.id ?? "");
    if (instance === undefined || host === undefined || owned === undefined) return;
    const { name: node, cluster } = host;
    if (this.ask({ kind: "move", id: instance.id, cluster, node }).refused !== null) return;
    this.#owned.set(instance.id, { ...owned, cluster, node });
    this.premises.moves += 1;
  }
  #elastic(): void {
    const account = this.#one(this.#accounts) as string;
    const own = [...this.#book.elastic.values()].filter((lease) => lease.account === account);
    const address = this.#one(own)?.address;
    switch (this.#below(4)) {
      case 0: {
        if (this.#isRepeating) return;
        const given = this.ask({ kind: "allocate", account }).address;
        if (given !== undefined) this.#elasticOf.set(given, { account, instance: null });
        return;
      }
      case 1: {
        const lease = this.#elasticOf.get(address ?? -1);
        if (address === undefined || lease === undefined) return;
        if (this.ask({ kind: "disassociate", address, account }).refused === null) lease.instance = null;
        return;
      }
      case 2:
        if (address === undefined) return;
        if (this.ask({ kind: "return", address, account }).refused === null) this.#elasticOf.delete(address);
        return;
      default: {
        const instance = this.#one([...this.#book.instances.values()].filter(({ owner }) => owner === account));
        const lease = this.#elasticOf.get(address ?? -1);
        if (address === undefined || instance === undefined || lease === undefined) return;
        const { refused } = this.ask({ kind: "associate", address, account, id: instance.id });
        if (refused?.includes("still in place") === true) this.premises.elsewhere += 1;
        if (refused !== null) return;
        for (const other of this.#elasticOf.values()) if (other.instance === instance.id) other.instance = null;
        lease.instance = instance.id;
        const place = placeOf(this.#book, "elastic", instance);
        this.#nobodyElse(addressKey("elastic", address), instance.id, place);
      }
    }
  }

  /** What the present view tells a host. */
  #told(host: Host): ReadonlyMap<string, string> | null {
    const view = viewOf(this.#book, {
      clusters: ["one", "two"].map((name, index) => ({
        name,
        ccIp: index + 1,
        nodes: this.#hosts.filter(({ cluster }) => cluster === name).map((each) => each.name),
      })),
      clcIp: 9,
      dnsDefault: [9],
      securityGroups: [],
    });
    if (view === null) return null;
    const isActive = this.#book.networkHosts.get(host.cluster)?.active === host.name;
    const ids = new Set(
      view.clusters
        .filter(({ name }) => host.peer === "node" || (isActive && name === host.cluster))
        .flatMap(({ nodes }) => nodes.filter(({ name }) => host.peer === "network" || name === host.name))
        .flatMap(({ instances }) => instances),
    );
    const own = view.instances.filter(({ id }) => ids.has(id));
    const hasElastic = host.peer === "network" || !isInSegments(this.#configuration);
    return new Map(
      own.flatMap(({ id, privateIp, publicIp }) => [
        ...(privateIp === undefined || host.peer === "network"
          ? []
          : [[addressKey("private", privateIp), id] as const]),
        ...(publicIp === undefined || !hasElastic ? [] : [[addressKey("elastic", publicIp), id] as const]),
      ]),
    );
  }
  /** A host puts the present view in place, or a part of it, and says so. */
  #apply(host: Host, wholly = false): void {
    if (!host.up) return;
    const view = this.#told(host);
    // Before all is known again there is none: who has one keeps it.
    const told = view ?? new Map<string, string>();
    const isWhole = wholly || this.#below(4) > 0;
    if (view !== null && isWhole) {
      if (host.peer === "network" && view.size > 0) this.premises.carried += 1;
      // A store that was lost takes nothing from who runs.
      if (this.#book.recovery !== null)
        for (const [key, id] of host.placed)
          assert.ok(!this.#owned.has(id) || view.has(key), `taken away: ${key} of ${id} at ${host.name}`);
      host.placed = new Map(told);
      host.version = this.#book.version;
    } else for (const [key, id] of told) if (this.#below(2) === 0 && !host.placed.has(key)) host.placed.set(key, id);
    // What it has not taken away yet it names, too: nobody else knows of that where this store is lost.
    const named = new Map([...[...host.placed].map(([key, id]) => [key, id] as const), ...told]);
    const carries = host.peer === "network" && named.size > 0 ? { carries: host.cluster } : {};
    const instances = this.#said(host, named);
    this.#words.push({ kind: "heard", host: host.name, version: host.version, instances, ...carries });
    if (this.#words.length > 30) this.#words.shift();
  }
  #said(host: Host, told: ReadonlyMap<string, string>): readonly InstanceAllocation[] {
    return [...told].flatMap(([key, id]) => {
      const [kind, text] = key.split("/");
      const is = host.placed.get(key) === id;
      const address = { address: Number(text), state: is ? ("assigned" as const) : ("failed" as const) };
      return [kind === "private" ? { id, privateIp: address } : { id, publicIp: address }];
    });
  }
  #deliver(): void {
    const [word] = this.#words.splice(this.#below(Math.max(1, this.#words.length)), 1);
    if (word === undefined) return;
    const isStale = [...this.#book.addresses.values()].some(({ hosts }) => {
      const until = hosts.get(word.host)?.until ?? null;
      return until !== null && word.version < until;
    });
    if (isStale) this.premises.staleWords += 1;
    this.ask(word);
  }

  #fail(): void {
    const host = this.#host();
    switch (this.#below(3)) {
      case 0:
        this.premises.crashes += 1;
        this.#book = restoreBook(structuredClone(this.#store));
        return;
      case 1:
        host.up = !host.up;
        return;
      default:
        this.fence(host.name);
    }
  }
  /** Nothing runs there any more, and what it has said before is not on its way any more. */
  fence(name: string): void {
    const host = this.#hosts.find((each) => each.name === name) as Host;
    host.placed = new Map();
    host.up = false;
    this.premises.fences += 1;
    for (let at = this.#words.length - 1; at >= 0; at -= 1)
      if (this.#words[at]?.host === name) this.#words.splice(at, 1);
    this.ask({ kind: "fenced", host: name });
  }

  check(): void {
    const { instances, addresses, segments, configuration } = this.#book;
    for (const [key, entry] of addresses) {
      assert.ok(entry.segment === null || segments.has(entry.segment), `segment: ${key} is in one that is free`);
      const isClaimed = this.#book.recovery !== null && !instances.has(entry.instance ?? "");
      if (entry.kind === "private" && entry.instance !== null && !isClaimed)
        assert.equal(instances.get(entry.instance)?.privateIp, entry.address, `owner: ${key}`);
    }
    const owners = new Map<string, string>();
    for (const { id, privateIp } of instances.values()) {
      const before = owners.get(addressKey("private", privateIp));
      assert.equal(before, undefined, `two owners of ${formatIpv4(privateIp)}: ${before} and ${id}`);
      owners.set(addressKey("private", privateIp), id);
    }
    // What is in place somewhere is not free, once all hosts were heard; before, nothing is given.
    if (this.#book.recovery === null || this.#book.recovery.unheard.size === 0)
      for (const { name, placed } of this.#hosts)
        for (const [key] of placed)
          assert.ok(addresses.has(key), `free: ${name} has ${key} in place, and the book has it not`);
    const carriers = new Map<string, string>();
    for (const { name, cluster, peer, placed } of this.#hosts) {
      if (peer !== "network" || placed.size === 0) continue;
      assert.equal(carriers.get(cluster), undefined, `two network hosts carry ${cluster}: ${name} is one`);
      carriers.set(cluster, name);
    }
    assert.equal(new Set(segments.values()).size, segments.size, "two groups have one segment");
    const managed = configuration === null ? null : managedOf(configuration);
    if (managed !== null)
      for (const { groups, privateIp } of instances.values()) {
        const tag = segments.get(groups[0] ?? "");
        assert.ok(tag !== undefined, `segment: an active group has none`);
        const { first, last } = instancesOf(segmentOf(managed, tag));
        assert.ok(first <= privateIp && privateIp <= last, "segment: a member has an address of another one");
      }
    for (const { id, ready, node, privateIp } of instances.values())
      if (ready) {
        const host = this.#hosts.find(({ name }) => name === node);
        const told = addresses.get(addressKey("private", privateIp))?.hosts.get(node ?? "");
        assert.ok(host !== undefined && told !== undefined, `ready: ${id} without a host`);
        assert.ok(
          host.version >= told.since || host.placed.get(addressKey("private", privateIp)) === id,
          `ready: ${id} is not in place`,
        );
      }
  }

  /** All instances end, hosts come back or are fenced, all words arrive: nothing is lost. */
  settle(): void {
    for (const host of this.#hosts) {
      host.up = true;
      this.#apply(host, true);
    }
    while (this.#words.length > 0) this.#deliver();
    for (let tries = 0; tries < 3 && this.#isRepeating; tries += 1) {
      this.#repeat();
      for (const host of this.#hosts) this.#apply(host, true);
      while (this.#words.length > 0) this.#deliver();
    }
    assert.ok(!this.#isRepeating, `what owners repeat is not taken: ${this.#refusals.join("; ")}`);
    for (const cluster of ["one", "two"]) this.ask({ kind: "network-host", cluster, host: null });
    for (const id of [...this.#book.instances.keys()]) this.ask({ kind: "terminate", id });
    for (const { address, account } of [...this.#book.elastic.values()]) {
      this.ask({ kind: "disassociate", address, account });
      this.ask({ kind: "return", address, account });
    }
    for (const host of this.#hosts) {
      if (!host.up) {
        this.fence(host.name);
        continue;
      }
      host.placed = new Map(this.#told(host) ?? []);
      host.version = this.#book.version;
      this.ask({ kind: "heard", host: host.name, version: host.version, instances: [] });
    }
    const { addresses, elastic, segments } = this.#book;
    assert.deepEqual([[...addresses.keys()], [...elastic.keys()], [...segments.keys()]], [[], [], []], "lost for good");
    const left = [...this.#store.keys()].filter((key) => key !== "configuration" && key !== "version");
    assert.deepEqual(left, [], "records are left");
  }
}
