import { noUsage, shortages, sumOf, type Usage } from "../../model/check/check-limits.ts";

/*
 * What accounts may have, and have. A quota is decided by a cell's controller before a Placer is asked, by these sums; here they are made for each VM, beside what a Placer does.
 * A controller makes them once for a whole change of its cell, and not for each VM.
 */
interface Size {
  readonly memoryMiB: number;
  readonly cpus: number;
}
const usageOf = ({ memoryMiB, cpus }: Size): Usage => ({ ...noUsage, vms: 1, memoryMiB, cpus });
const negative = ({ memoryMiB, cpus }: Size): Usage => ({ ...noUsage, vms: -1, memoryMiB: -memoryMiB, cpus: -cpus });

export class Quotas {
  private readonly used: Usage[];
  private readonly limit: Partial<Usage>;

  constructor(accounts: number, limit: Partial<Usage>) {
    this.used = Array.from({ length: accounts }, () => noUsage);
    this.limit = limit;
  }

  /** @returns what it would have too much of, in sentences; none: it has it now */
  take(of: number, size: Size): readonly string[] {
    const wanted = sumOf([this.used[of] ?? noUsage, usageOf(size)]);
    const short = shortages(wanted, this.limit);
    if (short.length === 0) this.used[of] = wanted;
    return short;
  }

  give(of: number, size: Size): void {
    this.used[of] = sumOf([this.used[of] ?? noUsage, negative(size)]);
  }
}
