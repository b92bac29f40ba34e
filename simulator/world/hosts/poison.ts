import type { Uid } from "../../../model/cell/identifiers.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { MachineTruth, Truth } from "../truth.ts";

/** So long a machine that takes its host down runs there, at least and at most, and so long its host is away. */
const [soonestMs, latestMs] = [1500, 6000];
const [shortestMs, longestMs] = [15_000, 40_000];

/** VMs whose machines take their hosts' power, wherever they start. */
export class Poisons {
  readonly #vms = new Set<Uid>();
  readonly #kernel: Kernel;
  readonly #truth: Truth;
  readonly #powerOff: (host: string, awayMs: number) => void;

  constructor(kernel: Kernel, truth: Truth, powerOff: (host: string, awayMs: number) => void) {
    this.#kernel = kernel;
    this.#truth = truth;
    this.#powerOff = powerOff;
    truth.watchers.push({ machineStarted: (machine) => this.#started(machine) });
  }

  begin(vm: Uid): void {
    this.#vms.add(vm);
    for (const machine of [...this.#truth.machines]) this.#started(machine);
  }
  end(vm: Uid): void {
    this.#vms.delete(vm);
  }

  #started(machine: MachineTruth): void {
    const { vm, incarnation, host } = machine;
    if (!this.#vms.has(vm)) return;
    const random = this.#kernel.random.fork(`poison ${vm} ${incarnation}`);
    this.#kernel.clock.after(random.between(soonestMs, latestMs), () => {
      if (!this.#vms.has(vm) || !this.#truth.machines.has(machine)) return;
      this.#kernel.log(`machine.${host}`, "takes its host down", { vm, incarnation });
      this.#powerOff(host, random.between(shortestMs, longestMs));
    });
  }
}
