import { formatIpv4 } from "../../model/addresses/addresses.ts";
import { firstFree } from "../../model/eucalyptus/addresses/allocators.ts";
import type { InstanceAllocation } from "../../model/eucalyptus/allocation/allocation.ts";
import type { NetworkConfiguration } from "../../model/eucalyptus/configuration/configuration.ts";
import { macPrefixOf } from "../../model/eucalyptus/configuration/effective.ts";
import {
  type AddressKind,
  addressKey,
  type Book,
  type BookedAddress,
  type BookedInstance,
  emptyBook,
  endedAt,
  isInSegments,
  privateRanges,
  segmentFor,
  toldAt,
  without,
} from "./book.ts";
import { whatWouldMove } from "./in-use.ts";

/*
 * The Network View Manager as a step function over its book. What a step writes is durable before anybody is told of it: whoever runs it
 * stores the writes, and only then gives out the answer and the new view.
 */

export type Request =
  /** Another configuration: one that would move what is in use is refused, naming the instances. */
  | { readonly kind: "configure"; readonly configuration: NetworkConfiguration }
  /** An instance is to start at a host: it gets a private address. */
  | {
      readonly kind: "run";
      readonly instance: Pick<BookedInstance, "id" | "owner" | "cluster" | "groups"> & { readonly node: string };
    }
  /** Its owner ends it. Addresses stay until its host says that they are gone. */
  | { readonly kind: "terminate"; readonly id: string }
  /** It goes on at another host, with its addresses. */
  | { readonly kind: "move"; readonly id: string; readonly cluster: string; readonly node: string }
  /** An account wants an elastic address; answered with it. */
  | { readonly kind: "allocate"; readonly account: string }
  /** It gives it back; refused while an instance has it. */
  | { readonly kind: "return"; readonly address: number; readonly account: string }
  | { readonly kind: "associate"; readonly address: number; readonly account: string; readonly id: string }
  | { readonly kind: "disassociate"; readonly address: number; readonly account: string }
  /** What a host says of the view that it has put in place (NRA). */
  | {
      readonly kind: "heard";
      readonly host: string;
      /** Of the latest view that it has put in place whole: one of which something failed is none. */
      readonly version: number;
      readonly instances: readonly InstanceAllocation[];
    }
  /** Nothing of the host runs any more, for certain. */
  | { readonly kind: "fenced"; readonly host: string };

/** A record by its key, null where it ends; `restoreBook` takes them. */
export interface Write {
  readonly key: string;
  readonly value: unknown;
}
export interface Answer {
  /** A sentence; null: it was done. */
  readonly refused: string | null;
  /** Of `run` and `allocate`. */
  readonly address?: number;
}
export interface Stepped {
  readonly answer: Answer;
  readonly writes: readonly Write[];
}

/** The answer, and what is to be durable before it is given; the book is changed. */
export function step(book: Book, request: Request): Stepped {
  const turn = new Turn(book);
  const said = turn.take(request);
  return { answer: typeof said === "string" ? { refused: said } : { refused: null, ...said }, writes: turn.writes() };
}

type Said = string | { readonly address?: number };
const done: Said = {};

class Turn {
  readonly #book: Book;
  readonly #writes = new Map<string, unknown>();
  /** Of the view that this step makes, should it change anything in it. */
  readonly #next: number;
  #changed = false;

  constructor(book: Book) {
    this.#book = book;
    this.#next = book.version + 1;
  }
  writes(): readonly Write[] {
    if (this.#changed) {
      this.#book.version = this.#next;
      this.#writes.set("version", this.#next);
    }
    return [...this.#writes].map(([key, value]) => ({ key, value }));
  }

  take(request: Request): Said {
    switch (request.kind) {
      case "configure":
        return this.#configure(request.configuration);
      case "run":
        return this.#run(request.instance);
      case "terminate":
        return this.#terminate(request.id);
      case "move":
        return this.#move(request.id, request.cluster, request.node);
      case "allocate":
        return this.#allocate(request.account);
      case "return":
        return this.#giveBack(request.address, request.account);
      case "associate":
        return this.#associate(request.address, request.account, request.id);
      case "disassociate":
        return this.#disassociate(request.address, request.account);
      case "heard":
        return this.#heard(request.host, request.version, request.instances);
      case "fenced":
        return this.#fenced(request.host);
    }
  }

  #putInstance(instance: BookedInstance): void {
    this.#book.instances.set(instance.id, instance);
    this.#writes.set(`instance/${instance.id}`, instance);
  }
  /** One that is at no host and belongs to nobody is free; with the last of a group its segment is, too. */
  #putAddress(entry: BookedAddress): void {
    const key = addressKey(entry.kind, entry.address);
    if (entry.instance !== null || entry.hosts.size > 0) {
      this.#book.addresses.set(key, entry);
      this.#writes.set(`address/${key}`, { ...entry, hosts: [...entry.hosts] });
      return;
    }
    this.#book.addresses.delete(key);
    this.#writes.set(`address/${key}`, null);
    const { segment } = entry;
    if (segment === null || [...this.#book.addresses.values()].some((other) => other.segment === segment)) return;
    this.#book.segments.delete(segment);
    this.#writes.set(`segment/${segment}`, null);
  }
  #address(kind: AddressKind, address: number): BookedAddress | undefined {
    return this.#book.addresses.get(addressKey(kind, address));
  }
  #of(id: string): readonly BookedAddress[] {
    return [...this.#book.addresses.values()].filter(({ instance }) => instance === id);
  }

  #configure(configuration: NetworkConfiguration): Said {
    const moved = whatWouldMove(this.#book, configuration);
    if (moved !== null) return moved;
    this.#book.configuration = configuration;
    this.#writes.set("configuration", configuration);
    this.#changed = true;
    return done;
  }

  #run({ id, owner, cluster, node, groups }: Extract<Request, { readonly kind: "run" }>["instance"]): Said {
    const { configuration } = this.#book;
    if (configuration === null) return "there is no network configuration yet";
    const known = this.#book.instances.get(id);
    // Asked for again: what it has.
    if (known !== undefined) return { address: known.privateIp };
    const [group] = groups;
    if (group === undefined) return `the instance ${id} is in no security group`;
    const hasSegment = isInSegments(configuration);
    if (hasSegment && groups.length > 1)
      return `the instance ${id} is in ${groups.length} security groups, and in mode ${configuration.mode} an instance is in one`;
    const segment = segmentFor(this.#book, configuration, group);
    if (hasSegment && segment === null)
      return `no segment is free for the security group ${group}: all ${this.#book.segments.size} are in use`;
    const ranges = privateRanges(configuration, cluster, segment);
    const address = firstFree(ranges, (each) => this.#address("private", each) !== undefined);
    if (address === null)
      return segment === null
        ? `no private address is free in the cluster ${cluster}`
        : `no private address is free in the segment of the security group ${group}`;
    if (segment !== null) {
      this.#book.segments.set(group, segment.tag);
      this.#writes.set(`segment/${group}`, segment.tag);
    }
    const mac = macOf(configuration, id);
    this.#putInstance({ ...{ id, owner, cluster, node, groups, mac }, privateIp: address, ready: false });
    const entry = { kind: "private", address, instance: id, hosts: new Map(), segment: segment && group } as const;
    this.#putAddress(toldAt(entry, node, this.#next));
    this.#changed = true;
    return { address };
  }

  #terminate(id: string): Said {
    if (!this.#book.instances.delete(id)) return done;
    this.#writes.set(`instance/${id}`, null);
    for (const entry of this.#of(id)) this.#putAddress(endedAt({ ...entry, instance: null }, this.#next));
    this.#changed = true;
    return done;
  }

  #hasSegments(): boolean {
    const { configuration } = this.#book;
    return configuration !== null && isInSegments(configuration);
  }
  #move(id: string, cluster: string, node: string): Said {
    const instance = this.#book.instances.get(id);
    if (instance === undefined) return `there is no instance ${id}`;
    if (instance.node === node) return done;
    if (instance.cluster !== cluster && !this.#hasSegments())
      return `the instance ${id} has an address of the cluster ${instance.cluster}, and cannot go to ${cluster}`;
    this.#putInstance({ ...instance, cluster, node, ready: false });
    for (const entry of this.#of(id)) this.#putAddress(toldAt(endedAt(entry, this.#next, node), node, this.#next));
    this.#changed = true;
    return done;
  }

  #allocate(account: string): Said {
    const ranges = this.#book.configuration?.publicIps ?? [];
    const isTaken = (address: number): boolean =>
      this.#book.elastic.has(address) || this.#address("elastic", address) !== undefined;
    const address = firstFree(ranges, isTaken);
    if (address === null) return "no elastic address is free";
    const lease = { address, account };
    this.#book.elastic.set(address, lease);
    this.#writes.set(`elastic/${address}`, lease);
    return { address };
  }
  /** Null: the account has it. */
  #notOf(address: number, account: string): string | null {
    return this.#book.elastic.get(address)?.account === account
      ? null
      : `the account ${account} does not have the address ${formatIpv4(address)}`;
  }
  #giveBack(address: number, account: string): Said {
    const why = this.#notOf(address, account);
    if (why !== null) return why;
    const user = this.#address("elastic", address)?.instance ?? null;
    if (user !== null) return `the instance ${user} has the address ${formatIpv4(address)}`;
    this.#book.elastic.delete(address);
    this.#writes.set(`elastic/${address}`, null);
    return done;
  }
  #associate(address: number, account: string, id: string): Said {
    const why = this.#notOf(address, account);
    if (why !== null) return why;
    const instance = this.#book.instances.get(id);
    if (instance === undefined || instance.owner !== account) return `the account ${account} has no instance ${id}`;
    const entry = this.#address("elastic", address);
    if (entry?.instance === id) return done;
    const others = this.#of(id).filter(({ kind }) => kind === "elastic");
    // What another host may still have in place would be answered for by two.
    const elsewhere = [...(entry?.hosts.keys() ?? [])].filter((host) => host !== instance.node);
    if (elsewhere.length > 0)
      return `the address ${formatIpv4(address)} is still in place at ${elsewhere.join(", ")}, which has to say that it is gone`;
    for (const other of others) this.#putAddress(endedAt({ ...other, instance: null }, this.#next));
    const fresh: BookedAddress = { kind: "elastic", address, instance: id, hosts: new Map(), segment: null };
    const owned = { ...(entry ?? fresh), instance: id };
    this.#putAddress(instance.node === null ? owned : toldAt(owned, instance.node, this.#next));
    this.#changed = true;
    return done;
  }
  #disassociate(address: number, account: string): Said {
    const why = this.#notOf(address, account);
    if (why !== null) return why;
    const entry = this.#address("elastic", address);
    if (entry === undefined || entry.instance === null) return done;
    this.#putAddress(endedAt({ ...entry, instance: null }, this.#next));
    this.#changed = true;
    return done;
  }

  #heard(host: string, version: number, allocated: readonly InstanceAllocation[]): Said {
    const named = new Set(
      allocated.flatMap(({ privateIp, publicIp }) => [
        ...(privateIp === undefined ? [] : [addressKey("private", privateIp.address)]),
        ...(publicIp === undefined ? [] : [addressKey("elastic", publicIp.address)]),
      ]),
    );
    for (const entry of [...this.#book.addresses.values()]) {
      const told = entry.hosts.get(host);
      if (told === undefined || told.until === null) continue;
      // What it said before it was told counts for nothing, and neither does silence about what it still names.
      if (version >= told.until && !named.has(addressKey(entry.kind, entry.address)))
        this.#putAddress(without(entry, host));
    }
    for (const { id, privateIp } of allocated) {
      const instance = this.#book.instances.get(id);
      if (instance === undefined || instance.node !== host || instance.privateIp !== privateIp?.address) continue;
      const told = this.#address("private", instance.privateIp)?.hosts.get(host);
      if (told === undefined || version < told.since) continue;
      const ready = privateIp.state === "assigned";
      if (ready !== instance.ready) this.#putInstance({ ...instance, ready });
    }
    return done;
  }

  /** Its instances keep what they have, and are told to the host to which they go. */
  #fenced(host: string): Said {
    for (const entry of [...this.#book.addresses.values()])
      if (entry.hosts.has(host)) this.#putAddress(without(entry, host));
    for (const instance of [...this.#book.instances.values()])
      if (instance.node === host) {
        this.#putInstance({ ...instance, node: null, ready: false });
        this.#changed = true;
      }
    return done;
  }
}

/** By the paper: a prefix, and the instance's number. */
const macOf = (configuration: NetworkConfiguration, id: string): string =>
  `${macPrefixOf(configuration)}:${(/[0-9a-f]{8}$/i.exec(id)?.[0] ?? "00000000").replace(/..(?=.)/g, "$&:")}`.toUpperCase();

/** A book from the records that steps have written. */
export function restoreBook(records: ReadonlyMap<string, unknown>): Book {
  const book = emptyBook();
  for (const [key, value] of records) {
    const [kind = "", ...rest] = key.split("/");
    const name = rest.join("/");
    if (kind === "configuration") book.configuration = value as NetworkConfiguration;
    else if (kind === "version") book.version = value as number;
    else if (kind === "instance") book.instances.set(name, value as BookedInstance);
    else if (kind === "elastic") book.elastic.set(Number(name), value as { address: number; account: string });
    else if (kind === "segment") book.segments.set(name, value as number);
    else if (kind === "address") {
      const stored = value as Omit<BookedAddress, "hosts"> & {
        readonly hosts: [string, { since: number; until: null }][];
      };
      book.addresses.set(name, { ...stored, hosts: new Map(stored.hosts) });
    }
  }
  return book;
}
