import { type HostOffer, InUse, type InUseReport } from "../ledger.ts";
import type { Arrival } from "../traces/arrival.ts";
import { Ends } from "../traces/ends.ts";

/*
 * Exhaustive best fit, for what a Placer that packs is compared with: each VM goes to the host with room for it that has the least memory left, all of them looked at,
 * the first of several alike. With groups: of those that have the fewest of its group. What finds no host is gone, and nothing is ever moved. It shares no code with a Placer.
 */
interface Standing extends Pick<Arrival, "group" | "cpus" | "memoryMiB"> {
  readonly host: number;
}

export class BestFit {
  private readonly memoryMiB: Int32Array;
  private readonly cpus: Int32Array;
  private readonly vms: Int32Array;
  /** How many of a group are at each host. */
  private readonly groups = new Map<number, Map<number, number>>();
  private readonly standing = new Map<number, Standing>();
  private readonly ends = new Ends();
  private readonly offer: HostOffer;
  private readonly spreads: boolean;
  private readonly looks = new InUse();
  private inUse = 0;
  private count = 0;
  refused = 0;

  constructor(hosts: number, offer: HostOffer, spreads: boolean) {
    this.offer = offer;
    this.spreads = spreads;
    this.memoryMiB = new Int32Array(hosts).fill(offer.memoryMiB);
    this.cpus = new Int32Array(hosts).fill(offer.cpus);
    this.vms = new Int32Array(hosts);
  }

  get report(): InUseReport {
    return this.looks.report;
  }

  arrive({ second, group, cpus, memoryMiB: asked, endsAt }: Arrival): void {
    for (const ended of this.ends.until(second)) this.end(ended);
    const memoryMiB = this.offer.takes(asked);
    const beside = this.spreads ? (this.groups.get(group) ?? new Map<number, number>()) : null;
    const host = this.find(memoryMiB, cpus, beside);
    if (host === null) this.refused += 1;
    else {
      this.count += 1;
      this.change(host, { memoryMiB, cpus }, 1);
      if (beside !== null) this.groups.set(group, beside.set(host, (beside.get(host) ?? 0) + 1));
      this.standing.set(this.count, { host, group, cpus, memoryMiB });
      if (endsAt !== null) this.ends.add(endsAt, this.count);
    }
    this.looks.look(this.inUse);
  }

  private find(memoryMiB: number, cpus: number, beside: ReadonlyMap<number, number> | null): number | null {
    let [best, fewest, least]: [number | null, number, number] = [null, 0, 0];
    for (let host = 0; host < this.memoryMiB.length; host += 1) {
      const left = this.memoryMiB[host] ?? 0;
      if (left < memoryMiB || (this.cpus[host] ?? 0) < cpus) continue;
      const there = beside === null || beside.size === 0 ? 0 : (beside.get(host) ?? 0);
      if (best !== null && (there > fewest || (there === fewest && left >= least))) continue;
      [best, fewest, least] = [host, there, left];
    }
    return best;
  }

  private end(vm: number): void {
    const there = this.standing.get(vm);
    if (there === undefined) return;
    this.standing.delete(vm);
    this.change(there.host, there, -1);
    const beside = this.groups.get(there.group);
    const left = (beside?.get(there.host) ?? 0) - 1;
    if (left > 0) beside?.set(there.host, left);
    else beside?.delete(there.host);
    if (beside?.size === 0) this.groups.delete(there.group);
  }

  private change(host: number, size: Pick<Arrival, "cpus" | "memoryMiB">, times: 1 | -1): void {
    const before = this.vms[host] ?? 0;
    this.vms[host] = before + times;
    this.inUse += before === 0 ? 1 : before + times === 0 ? -1 : 0;
    this.memoryMiB[host] = (this.memoryMiB[host] ?? 0) - times * size.memoryMiB;
    this.cpus[host] = (this.cpus[host] ?? 0) - times * size.cpus;
  }
}
