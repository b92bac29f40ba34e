import assert from "node:assert/strict";
import { formatIpv4 } from "../../model/addresses/addresses.ts";
import { instancesOf, segmentOf } from "../../model/eucalyptus/addresses/segments.ts";
import type { InstanceAllocation } from "../../model/eucalyptus/allocation/allocation.ts";
import type { NetworkConfiguration } from "../../model/eucalyptus/configuration/configuration.ts";
import { below, seedOf } from "../random.ts";
import { addressKey, type Book, emptyBook, isInSegments, managedOf } from "./book.ts";
import { type Answer, type Request, restoreBook, step } from "./step.ts";
import { viewOf } from "./view.ts";

/** What one host of the world has in place, which is the truth that the book is held against. */
interface Host {
  readonly name: string;
  readonly cluster: string;
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
}
export const noPremises = (): Premises => ({
  ...{ grants: 0, besideReleasing: 0, staleWords: 0, fences: 0, crashes: 0, moves: 0, segments: 0, elsewhere: 0 },
});

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
  readonly #accounts = ["alice", "bob"];

  constructor(seed: number, configuration: NetworkConfiguration, premises: Premises) {
    this.#random = { random: seedOf(seed) };
    this.premises = premises;
    this.#hosts = ["a", "b", "c", "d"].map((name, index): Host => {
      return { name, cluster: index < 3 ? "one" : "two", placed: new Map(), version: 0, up: true };
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
      () => this.#fail(),
    ];
    this.#one(acts)?.();
    this.check();
  }
  #host(): Host {
    return this.#one(this.#hosts) as Host;
  }

  #run(): void {
    const host = this.#host();
    const id = `i-${(this.#next++).toString(16).padStart(8, "0")}`;
    const groups = [`sg-${this.#below(4)}`];
    const owner = this.#one(this.#accounts) as string;
    const { configuration } = this.#book;
    const isFresh = configuration !== null && isInSegments(configuration) && !this.#book.segments.has(groups[0] ?? "");
    const { refused, address } = this.ask({
      kind: "run",
      instance: { id, owner, cluster: host.cluster, node: host.name, groups },
    });
    if (refused !== null || address === undefined) return;
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
    if (instance !== undefined) this.ask({ kind: "terminate", id: instance.id });
  }
  #move(): void {
    const instance = this.#one([...this.#book.instances.values()]);
    const host = this.#one(this.#hosts.filter(({ up }) => up));
    if (instance === undefined || host === undefined) return;
    if (this.ask({ kind: "move", id: instance.id, cluster: host.cluster, node: host.name }).refused === null)
      this.premises.moves += 1;
  }
  #elastic(): void {
    const account = this.#one(this.#accounts) as string;
    const own = [...this.#book.elastic.values()].filter((lease) => lease.account === account);
    const address = this.#one(own)?.address;
    switch (this.#below(4)) {
      case 0:
        this.ask({ kind: "allocate", account });
        return;
      case 1:
        if (address !== undefined) this.ask({ kind: "disassociate", address, account });
        return;
      case 2:
        if (address !== undefined) this.ask({ kind: "return", address, account });
        return;
      default: {
        const instance = this.#one([...this.#book.instances.values()].filter(({ owner }) => owner === account));
        if (address === undefined || instance === undefined) return;
        const { refused } = this.ask({ kind: "associate", address, account, id: instance.id });
        if (refused?.includes("still in place") === true) this.premises.elsewhere += 1;
        if (refused === null) this.#nobodyElse(addressKey("elastic", address), instance.id, instance.node);
      }
    }
  }

  /** What the present view tells a host. */
  #told(host: Host): ReadonlyMap<string, string> {
    const view = viewOf(this.#book, {
      clusters: ["one", "two"].map((name, index) => ({
        ...{ name, ccIp: index + 1 },
        nodes: this.#hosts.filter(({ cluster }) => cluster === name).map((each) => each.name),
      })),
      ...{ clcIp: 9, dnsDefault: [9], securityGroups: [] },
    });
    const ids = new Set(
      view?.clusters
        .flatMap(({ nodes }) => nodes.filter(({ name }) => name === host.name))
        .flatMap(({ instances }) => instances),
    );
    const own = view?.instances.filter(({ id }) => ids.has(id)) ?? [];
    return new Map(
      own.flatMap(({ id, privateIp, publicIp }) => [
        ...(privateIp === undefined ? [] : [[addressKey("private", privateIp), id] as const]),
        ...(publicIp === undefined ? [] : [[addressKey("elastic", publicIp), id] as const]),
      ]),
    );
  }
  /** A host puts the present view in place, or a part of it, and says so. */
  #apply(host: Host): void {
    if (!host.up) return;
    const told = this.#told(host);
    const isWhole = this.#below(4) > 0;
    if (isWhole) {
      host.placed = new Map(told);
      host.version = this.#book.version;
    } else for (const [key, id] of told) if (this.#below(2) === 0 && !host.placed.has(key)) host.placed.set(key, id);
    this.#words.push({ kind: "heard", host: host.name, version: host.version, instances: this.#said(host, told) });
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
      if (entry.kind === "private" && entry.instance !== null)
        assert.equal(instances.get(entry.instance)?.privateIp, entry.address, `owner: ${key}`);
    }
    const owners = new Map<string, string>();
    for (const { id, privateIp } of instances.values()) {
      const before = owners.get(addressKey("private", privateIp));
      assert.equal(before, undefined, `two owners of ${formatIpv4(privateIp)}: ${before} and ${id}`);
      owners.set(addressKey("private", privateIp), id);
    }
    // What is in place somewhere is not free.
    for (const { name, placed } of this.#hosts)
      for (const [key] of placed)
        assert.ok(addresses.has(key), `free: ${name} has ${key} in place, and the book has it not`);
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
      host.placed = new Map(this.#told(host));
      host.version = this.#book.version;
      this.ask({ kind: "heard", host: host.name, version: host.version, instances: [] });
    }
    const { addresses, elastic, segments } = this.#book;
    assert.deepEqual([[...addresses.keys()], [...elastic.keys()], [...segments.keys()]], [[], [], []], "lost for good");
    const left = [...this.#store.keys()].filter((key) => key !== "configuration" && key !== "version");
    assert.deepEqual(left, [], "records are left");
  }
}
