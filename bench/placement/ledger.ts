/*
 * What stands at each host, added up from what a Placer answers, with none of its code: memory and processors, how many hosts have anything, and whether one has more
 * than it offers. Hosts of one size.
 */
export interface HostOffer {
  /** For guests and what each machine takes besides. */
  readonly memoryMiB: number;
  readonly cpus: number;
  /** What a machine takes, of the memory of its guest. */
  takes(guestMiB: number): number;
}
interface Size {
  readonly memoryMiB: number;
  readonly cpus: number;
}

export class Ledger {
  private readonly hosts: Map<string, { memoryMiB: number; cpus: number; vms: number }>;
  private readonly offer: HostOffer;
  inUse = 0;

  constructor(names: readonly string[], offer: HostOffer) {
    this.offer = offer;
    this.hosts = new Map(names.map((name) => [name, { memoryMiB: offer.memoryMiB, cpus: offer.cpus, vms: 0 }]));
  }

  /** @returns whether the host is one, and had room for it */
  add(host: string, vm: Size): boolean {
    const left = this.hosts.get(host);
    if (left === undefined) return false;
    const hadRoom = this.hasRoom(left, vm);
    this.inUse += left.vms === 0 ? 1 : 0;
    left.vms += 1;
    left.memoryMiB -= this.offer.takes(vm.memoryMiB);
    left.cpus -= vm.cpus;
    return hadRoom;
  }

  remove(host: string, vm: Size): void {
    const left = this.hosts.get(host);
    if (left === undefined) return;
    left.vms -= 1;
    this.inUse -= left.vms === 0 ? 1 : 0;
    left.memoryMiB += this.offer.takes(vm.memoryMiB);
    left.cpus += vm.cpus;
  }

  /** Whether any host has room for it. */
  hasAnywhere(vm: Size): boolean {
    return [...this.hosts.values()].some((left) => this.hasRoom(left, vm));
  }

  private hasRoom(left: Size, vm: Size): boolean {
    return left.memoryMiB >= this.offer.takes(vm.memoryMiB) && left.cpus >= vm.cpus;
  }
}

/** Hosts in use, looked at after each arrival. */
export class InUse {
  private sum = 0;
  private looks = 0;
  most = 0;

  look(inUse: number): void {
    this.looks += 1;
    this.sum += inUse;
    this.most = Math.max(this.most, inUse);
  }

  get report(): InUseReport {
    return { mean: this.looks === 0 ? 0 : this.sum / this.looks, most: this.most, arrivals: this.looks };
  }
}
export interface InUseReport {
  readonly mean: number;
  readonly most: number;
  readonly arrivals: number;
}
