import { formatIpv4 } from "../../model/addresses/addresses.ts";
import { firstFree } from "../../model/eucalyptus/addresses/allocators.ts";
import { segmentAt } from "../../model/eucalyptus/addresses/segments.ts";
import type { InstanceAllocation } from "../../model/eucalyptus/allocation/allocation.ts";
import type { NetworkConfiguration } from "../../model/eucalyptus/configuration/configuration.ts";
import {
  type AddressKind,
  addressKey,
  type Book,
  type BookedAddress,
  type BookedInstance,
  elasticAt,
  endedAt,
  givesNone,
  instanceKey,
  isElasticTold,
  isInSegments,
  keysOf,
  managedOf,
  placeOf,
  privateKeys,
  privateRanges,
  segmentFor,
  toldAt,
  whyForgotten,
  whyUnsettled,
  without,
} from "./book.ts";
import { isIn, whatWouldMove } from "./in-use.ts";
import { macOf, readyBy } from "./instances/readiness.ts";
import {
  type CarrierRequest,
  carriedOn,
  carriersAfter,
  type NetworkHosts,
  nobodyBound,
  noNetworkHost,
  storedCarriers,
  withoutCarrier,
  withoutLeaving,
} from "./network-hosts/carriers.ts";
import type { Request, Stepped, Write } from "./request.ts";

/*
 * The Network View Manager as a step function over its book. What a step writes is durable before anybody is told of it: whoever runs it
 * stores the writes, and only then gives out the answer and the new view.
 */

/** The answer, and what is to be durable before it is given; the book is changed. */
export function step(book: Book, request: Request): Stepped {
  const turn = new Turn(book);
  const said = turn.take(request);
  return { answer: typeof said === "string" ? { refused: said } : { refused: null, ...said }, writes: turn.writes() };
}

/** Changes by which a book that was lost may be behind what a host has in place: a thousand a second for 34 years. */
const mostAhead = 2 ** 40;

type Said = string | { readonly address?: number };
const done: Said = {};

class Turn {
  readonly #book: Book;
  readonly #writes = new Map<string, unknown>();
  /** Of the view that this step makes, should it change anything in it. */
  #next: number;
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
      case "regrouped":
        this.#changed = true;
        return done;
      case "terminate":
        return this.#terminate(request.id);
      case "move":
        return this.#move(request.id, request.cluster, request.node);
      case "allocate":
        return this.#allocate(request);
      case "return":
        return this.#giveBack(request.address, request.account);
      case "associate":
        return this.#associate(request.address, request.account, request.id);
      case "disassociate":
        return this.#disassociate(request.address, request.account);
      case "network-host":
      case "lease":
      case "bound":
      case "lapsed":
        return this.#carry(request);
      case "recover":
        return this.#recover(request.hosts);
      case "settled":
        return this.#settled();
      case "heard":
        return this.#heard(request);
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
    if (entry.segment !== null) this.#endSegment(entry.segment);
  }
  /** Unless an address is in it. */
  #endSegment(group: string): void {
    if ([...this.#book.addresses.values()].some(({ segment }) => segment === group)) return;
    this.#book.segments.delete(group);
    this.#writes.set(`segment/${group}`, null);
  }
  #address(kind: AddressKind, address: number): BookedAddress | undefined {
    return this.#book.addresses.get(addressKey(kind, address));
  }
  #of(id: string): readonly BookedAddress[] {
    return [...this.#book.addresses.values()].filter(({ instance }) => instance === id);
  }

  #putNetworkHosts(cluster: string, hosts: NetworkHosts): void {
    const stored = storedCarriers(hosts);
    if (stored === null) this.#book.networkHosts.delete(cluster);
    else this.#book.networkHosts.set(cluster, hosts);
    this.#writes.set(`network-host/${cluster}`, stored);
  }

  #configure(configuration: NetworkConfiguration): Said {
    const forgotten = whyForgotten(this.#book);
    if (forgotten !== null && this.#book.configuration !== null) return forgotten;
    const moved = whatWouldMove(this.#book, configuration);
    if (moved !== null) return moved;
    this.#book.configuration = configuration;
    this.#writes.set("configuration", configuration);
    for (const key of givesNone(configuration) ? privateKeys(this.#book) : []) {
      // Hosts have named them before it was known that the site gives them: they are nobody's to give.
      this.#book.addresses.delete(key);
      this.#writes.set(`address/${key}`, null);
    }
    this.#changed = true;
    return done;
  }

  #run({ id, owner, cluster, node, groups, before }: Extract<Request, { readonly kind: "run" }>["instance"]): Said {
    const { configuration } = this.#book;
    if (configuration === null) return "there is no network configuration yet";
    const known = this.#book.instances.get(id);
    // Asked for again: what it has.
    if (known !== undefined) return this.#regroup(known, groups);
    const [group] = groups;
    if (group === undefined) return `the instance ${id} is in no security group`;
    const mac = macOf(configuration, id);
    if (givesNone(configuration)) {
      const unheard = whyForgotten(this.#book);
      if (unheard !== null) return unheard;
      this.#putInstance({ id, owner, cluster, node, groups, mac, privateIp: 0, ready: false, since: this.#next });
      this.#changed = true;
      return done;
    }
    const hasSegment = isInSegments(configuration);
    if (hasSegment && groups.length > 1)
      return `the instance ${id} is in ${groups.length} security groups, and in mode ${configuration.mode} an instance is in one`;
    // A host has it in place already, as it said when this store knew nothing of it.
    const found = this.#of(id).find(({ kind }) => kind === "private") ?? this.#leftAt(node, before);
    const forgotten = found === undefined ? whyUnsettled(this.#book) : whyForgotten(this.#book);
    if (forgotten !== null) return forgotten;
    if (hasSegment && found !== undefined) this.#clearSegmentOf(configuration, found.address, group);
    const segment = segmentFor(this.#book, configuration, group, found?.address);
    if (hasSegment && segment === null)
      return `no segment is free for the security group ${group}: all ${this.#book.segments.size} are in use`;
    const ranges = privateRanges(configuration, cluster, segment);
    const isTaken = (each: number): boolean => this.#address("private", each) !== undefined;
    const isBefore = before !== undefined && isIn(ranges, before) && !isTaken(before);
    const address = found?.address ?? (isBefore ? before : firstFree(ranges, isTaken));
    if (address === null)
      return segment === null
        ? `no private address is free in the cluster ${cluster}`
        : `no private address is free in the segment of the security group ${group}`;
    if (segment !== null) {
      this.#book.segments.set(group, segment.tag);
      this.#writes.set(`segment/${group}`, segment.tag);
    }
    this.#putInstance({ id, owner, cluster, node, groups, mac, privateIp: address, ready: false });
    const fresh = { kind: "private", address, instance: id, hosts: new Map() } as const;
    const entry = { ...(found ?? fresh), instance: id, segment: segment && group };
    this.#putAddress(toldAt(endedAt(entry, this.#next, node), node, this.#next));
    for (const other of this.#of(id)) if (other.kind === "elastic") this.#tellElastic(other, { node, cluster });
    this.#changed = true;
    return { address };
  }

  /** It is in other groups from now on. Its address is of its segment, where there are such. */
  #regroup(known: BookedInstance, groups: readonly string[]): Said {
    const has: Said = known.privateIp === 0 ? done : { address: known.privateIp };
    if (groups.join() === known.groups.join()) return has;
    if (this.#hasSegments())
      return `the instance ${known.id} has an address in the segment of ${known.groups.join(", ")}, and has to be off before it is in another group`;
    this.#putInstance({ ...known, groups });
    this.#changed = true;
    return has;
  }

  /** An address that belongs to nobody and may stand at this host alone. */
  #leftAt(node: string, address: number | undefined): BookedAddress | undefined {
    const entry = address === undefined || this.#hasSegments() ? undefined : this.#address("private", address);
    const isLeft = entry?.instance === null && [...entry.hosts.keys()].every((host) => host === node);
    return isLeft ? entry : undefined;
  }
  #terminate(id: string): Said {
    if (!this.#book.instances.delete(id)) return done;
    this.#writes.set(`instance/${id}`, null);
    for (const entry of this.#of(id)) this.#putAddress(endedAt({ ...entry, instance: null }, this.#next));
    this.#changed = true;
    return done;
  }
  #hasSegments(): boolean {
    return this.#book.configuration !== null && isInSegments(this.#book.configuration);
  }
  #move(id: string, cluster: string, node: string): Said {
    const instance = this.#book.instances.get(id);
    if (instance === undefined) return `there is no instance ${id}`;
    if (instance.node === node) return done;
    if (instance.cluster !== cluster && instance.privateIp !== 0 && !this.#hasSegments())
      return `the instance ${id} has an address of the cluster ${instance.cluster}, and cannot go to ${cluster}`;
    const held = this.#of(id);
    const elastic = held.find((entry) => entry.kind === "elastic");
    if (instance.cluster !== cluster && elastic !== undefined)
      return `the instance ${id} has the address ${formatIpv4(elastic.address)} at the network host of ${instance.cluster}, and cannot go to ${cluster} with it`;
    const since = instance.since === undefined ? {} : { since: this.#next };
    this.#putInstance({ ...instance, cluster, node, ready: false, ...since });
    for (const entry of held)
      if (entry.kind === "elastic") this.#tellElastic(entry, { node, cluster });
      else this.#putAddress(toldAt(endedAt(entry, this.#next, node), node, this.#next));
    this.#changed = true;
    return done;
  }
  #tellElastic(entry: BookedAddress, instance: Pick<BookedInstance, "node" | "cluster">): void {
    this.#putAddress(elasticAt(this.#book, entry, instance, this.#next));
  }
  #carry(request: CarrierRequest): Said {
    const { cluster } = request;
    const hosts = this.#book.networkHosts.get(cluster) ?? noNetworkHost;
    const next = carriersAfter(hosts, request, this.#next, () => whyUnsettled(this.#book));
    if (typeof next === "string") return next;
    if (next === hosts) return done;
    if (request.kind === "lapsed")
      for (const entry of [...this.#book.addresses.values()])
        if (entry.kind === "elastic" && entry.hosts.has(request.host)) this.#putAddress(without(entry, request.host));
    this.#putNetworkHosts(cluster, next);
    if (request.kind !== "bound") this.#tellCluster(cluster);
    return done;
  }
  #tellCluster(cluster: string): void {
    for (const entry of [...this.#book.addresses.values()]) {
      const instance = entry.instance === null ? undefined : this.#book.instances.get(entry.instance);
      if (entry.kind === "elastic" && instance?.cluster === cluster) this.#tellElastic(entry, instance);
    }
    this.#changed = true;
  }

  #recover(hosts: readonly string[]): Said {
    this.#book.recovery = { hosts, unheard: new Set(hosts), found: new Set(), carriers: new Map() };
    this.#writes.set("recovery", hosts);
    if (hosts.length === 0) this.#recovered(new Set());
    return done;
  }
  /** A host has said what it has in place, or nothing of it runs. */
  #spoke(host: string, version: number, allocated: readonly InstanceAllocation[], carries?: string): void {
    const { recovery } = this.#book;
    if (recovery?.unheard.has(host) !== true) return;
    const found = new Set([...recovery.found, ...this.#find(host, version, allocated)]);
    const unheard = new Set([...recovery.unheard].filter((each) => each !== host));
    const carriers = new Map(recovery.carriers);
    if (carries !== undefined) carriers.set(host, carries);
    this.#book.recovery = { ...recovery, unheard, found, carriers };
    if (unheard.size > 0) return;
    this.#recovered(found);
    for (const cluster of new Set(carriers.values())) this.#carried(cluster);
  }
  /** What a host has in place of which this store knows nothing, or another owner: the host knows better. */
  #find(host: string, version: number, allocated: readonly InstanceAllocation[]): readonly string[] {
    // Whatever it is told from now on is later than anything that it was told.
    this.#next = Math.max(this.#next, version + 1);
    this.#changed = true;
    const keys: string[] = [];
    const first = new Set<string>();
    const isBare = this.#book.configuration !== null && givesNone(this.#book.configuration);
    for (const { id, privateIp, publicIp } of allocated) {
      keys.push(instanceKey(id));
      for (const [kind, said] of [
        ["private", isBare ? undefined : privateIp],
        ["elastic", publicIp],
      ] as const) {
        if (said === undefined) continue;
        // Another one of the same instance may still stand there, and is nobody's.
        const isLeft = first.has(`${kind} ${id}`);
        first.add(`${kind} ${id}`);
        if (!isLeft) keys.push(addressKey(kind, said.address));
        const fresh: BookedAddress = { kind, address: said.address, instance: null, hosts: new Map(), segment: null };
        const entry = this.#address(kind, said.address) ?? fresh;
        const isAnother = !isLeft && entry.instance !== id;
        if (isAnother && entry.instance !== null) this.#dropInstance(entry.instance);
        const told = entry.hosts.get(host) ?? { since: 0, until: this.#next };
        const hosts = new Map([...entry.hosts, [host, told]]);
        const instance = isLeft ? entry.instance : id;
        this.#putAddress({ ...entry, instance, hosts, segment: isAnother ? null : entry.segment });
      }
    }
    return keys;
  }
  /** A member of a group is in place in a segment that by an older store is another group's, or not this one's: one without members gives it up. */
  #clearSegmentOf(configuration: NetworkConfiguration, address: number, group: string): void {
    const subnet = managedOf(configuration);
    const tag = subnet === null ? undefined : segmentAt(subnet, address)?.tag;
    for (const [former, its] of [...this.#book.segments]) {
      if ((former === group) === (its === tag)) continue;
      const entries = [...this.#book.addresses.values()].filter(({ segment }) => segment === former);
      if (entries.some(({ instance }) => instance !== null)) continue;
      for (const entry of entries) this.#putAddress({ ...entry, segment: null });
      this.#endSegment(former);
    }
  }
  #dropInstance(id: string): void {
    if (this.#book.instances.delete(id)) this.#writes.set(`instance/${id}`, null);
    for (const entry of this.#of(id)) this.#putAddress(endedAt({ ...entry, instance: null }, this.#next));
  }
  /** All hosts have spoken: who carries a cluster does so on. Of several none does, before all of them have said that they do not. */
  #carried(cluster: string): void {
    const { carriers = new Map<string, string>(), hosts = [] } = this.#book.recovery ?? {};
    const now = [...carriers].flatMap(([host, its]) => (its === cluster ? [host] : []));
    this.#putNetworkHosts(
      cluster,
      carriedOn(this.#book.networkHosts.get(cluster) ?? noNetworkHost, now, hosts, this.#next),
    );
    this.#tellCluster(cluster);
  }
  /** All hosts have spoken: what none of them has is nobody's by the word of this store alone. */
  #recovered(found: ReadonlySet<string>): void {
    for (const instance of [...this.#book.instances.values()])
      if (!found.has(instance.privateIp === 0 ? instanceKey(instance.id) : addressKey("private", instance.privateIp)))
        this.#dropInstance(instance.id);
      // It may have moved since.
      else if (instance.ready) this.#putInstance({ ...instance, ready: false });
    for (const [key, entry] of [...this.#book.addresses]) {
      const instance = entry.instance === null ? undefined : this.#book.instances.get(entry.instance);
      if (!found.has(key)) this.#putAddress(endedAt({ ...entry, instance: null }, this.#next));
      else if (entry.kind === "elastic" && instance !== undefined) this.#tellElastic(entry, instance);
    }
    for (const address of [...this.#book.elastic.keys()]) this.#endLease(address);
    for (const group of [...this.#book.segments.keys()]) this.#endSegment(group);
    for (const [cluster, hosts] of this.#book.networkHosts) {
      const unbound = nobodyBound(hosts, this.#next);
      if (unbound !== hosts) this.#putNetworkHosts(cluster, unbound);
    }
    this.#changed = true;
  }
  /** What hosts have of instances that nobody has: it belongs to nobody, and goes when they say so. */
  #settled(): Said {
    const forgotten = whyForgotten(this.#book);
    if (forgotten !== null) return forgotten;
    // It was lost with the rest. Until it is there nobody can say what is his, and all would be nobody's.
    if (this.#book.configuration === null) return "there is no network configuration yet";
    for (const entry of [...this.#book.addresses.values()])
      if (entry.instance !== null && !this.#book.instances.has(entry.instance)) {
        this.#putAddress(endedAt({ ...entry, instance: null }, this.#next));
        this.#changed = true;
      }
    this.#book.recovery = null;
    this.#writes.set("recovery", null);
    return done;
  }
  #endLease(address: number): void {
    this.#book.elastic.delete(address);
    this.#writes.set(`elastic/${address}`, null);
  }

  #allocate({ account, has, instance }: Extract<Request, { readonly kind: "allocate" }>): Said {
    if (has !== undefined && this.#book.elastic.get(has)?.account === account) return { address: has };
    const forgotten = whyForgotten(this.#book);
    if (forgotten !== null) return forgotten;
    const ranges = this.#book.configuration?.publicIps ?? [];
    const user = has === undefined ? null : (this.#address("elastic", has)?.instance ?? null);
    const userIs = user === null ? undefined : this.#book.instances.get(user);
    // It stands with an instance, whose owner alone can say whose address that is.
    if (has !== undefined && user !== null && userIs?.owner !== account)
      return userIs === undefined
        ? `${user} has the address ${formatIpv4(has)}, and its owner has yet to say so`
        : `${user} of ${userIs.owner} has the address ${formatIpv4(has)}`;
    const isTaken = (address: number): boolean =>
      this.#book.elastic.has(address) || (address !== has && this.#address("elastic", address) !== undefined);
    const isPublic = has !== undefined && isIn(ranges, has);
    const isGranted = isPublic && !isTaken(has);
    const unsettled = isGranted ? null : whyUnsettled(this.#book);
    if (unsettled !== null) return unsettled;
    const address = isGranted ? has : firstFree(ranges, isTaken);
    if (address === null) return "no elastic address is free";
    const lease = { address, account, ...(instance === undefined ? {} : { instance }) };
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
    this.#endLease(address);
    return done;
  }
  #associate(address: number, account: string, id: string): Said {
    const why = this.#notOf(address, account);
    if (why !== null) return why;
    const instance = this.#book.instances.get(id);
    if (instance === undefined || instance.owner !== account) return `the account ${account} has no instance ${id}`;
    const entry = this.#address("elastic", address);
    if (entry?.instance === id && isElasticTold(this.#book, entry, instance)) return done;
    const forgotten = whyForgotten(this.#book);
    if (forgotten !== null) return forgotten;
    const others = this.#of(id).filter((each) => each.kind === "elastic" && each.address !== address);
    // What another host may still have in place would be answered for by two.
    const place = placeOf(this.#book, "elastic", instance);
    const elsewhere = [...(entry?.hosts.keys() ?? [])].filter((host) => host !== place);
    if (elsewhere.length > 0)
      return `the address ${formatIpv4(address)} is still in place at ${elsewhere.join(", ")}, which has to say that it is gone`;
    for (const other of others) this.#putAddress(endedAt({ ...other, instance: null }, this.#next));
    const fresh: BookedAddress = { kind: "elastic", address, instance: id, hosts: new Map(), segment: null };
    this.#tellElastic({ ...(entry ?? fresh), instance: id }, instance);
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

  #heard({ host, version, instances: allocated, carries }: Extract<Request, { readonly kind: "heard" }>): Said {
    // The book's own grows to what a host says after a loss: by one that cannot be it would stand still, and what is in place be free.
    if (!Number.isSafeInteger(version) || version < 0 || version - this.#book.version > mostAhead)
      return `${host} says that it has view ${version} in place, which there can never have been`;
    this.#spoke(host, version, allocated, carries);
    for (const [cluster, hosts] of this.#book.networkHosts) {
      const until = hosts.leaving.get(host);
      if (until !== undefined && version >= until) this.#putNetworkHosts(cluster, withoutLeaving(hosts, host));
    }
    const named = keysOf(allocated);
    for (const entry of [...this.#book.addresses.values()]) {
      const told = entry.hosts.get(host);
      if (told === undefined || told.until === null) continue;
      // What it said before it was told counts for nothing, and neither does silence about what it still names.
      if (version >= told.until && !named.has(addressKey(entry.kind, entry.address)))
        this.#putAddress(without(entry, host));
    }
    for (const named of allocated) {
      const instance = this.#book.instances.get(named.id);
      const ready = instance === undefined ? null : readyBy(this.#book, instance, { host, version, named });
      if (instance !== undefined && ready !== null && ready !== instance.ready)
        this.#putInstance({ ...instance, ready });
    }
    return done;
  }

  /** Its instances keep what they have, and are told to the host to which they go. */
  #fenced(host: string): Said {
    for (const entry of [...this.#book.addresses.values()])
      if (entry.hosts.has(host)) this.#putAddress(without(entry, host));
    const { recovery } = this.#book;
    const carriers = new Map([...(recovery?.carriers ?? [])].filter(([name]) => name !== host));
    if (recovery !== null) this.#book.recovery = { ...recovery, carriers };
    this.#spoke(host, 0, []);
    for (const [cluster, hosts] of this.#book.networkHosts)
      if (hosts.active === host || hosts.leaving.has(host)) {
        this.#putNetworkHosts(cluster, withoutCarrier(hosts, host));
        this.#changed = true;
      }
    for (const instance of [...this.#book.instances.values()])
      if (instance.node === host) {
        this.#putInstance({ ...instance, node: null, ready: false });
        this.#changed = true;
      }
    return done;
  }
}
