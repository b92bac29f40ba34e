import { sendPacket } from "./dataplane.ts";
import type { Installation } from "./installation.ts";
import type { MachineTruth } from "./truth.ts";

const everyMs = 400;
const ports = [22, 80, 443] as const;

/** Guests that try, all the time, whom they can reach: in their own cell and in others. */
export const beginTraffic = ({ kernel, truth }: Installation): void => {
  const random = kernel.random.fork("traffic");
  const turn = (): void => {
    kernel.clock.after(everyMs, turn);
    const machines = [...truth.machines];
    if (machines.length < 2) return;
    const [from, to] = [random.pick(machines), random.pick(machines)];
    if (from !== to) attempt(from, to, random.pick(ports));
  };
  const attempt = (from: MachineTruth, to: MachineTruth, port: number): void => {
    const [fromInterface] = from.interfaces;
    const [toInterface] = to.interfaces;
    if (fromInterface === undefined || toInterface === undefined) return;
    sendPacket(kernel, truth, { from, to, fromInterface, toInterface, protocol: "tcp", port });
  };
  turn();
};

/** Rules of accepted cells by which packets do not pass although both machines run, in sentences. */
export const deafRules = ({ kernel, truth, cells }: Installation, accepted: ReadonlyMap<string, Accepted | null>) => {
  const faults: string[] = [];
  cells.forEach((cell, index) => {
    const machineOf = (name: string): MachineTruth | undefined =>
      [...truth.machines].find((machine) => machine.name === name && machine.vm.startsWith(`cell${index + 1}-`));
    for (const rule of accepted.get(cell)?.rules ?? []) {
      const [from, to] = [machineOf(rule.from), machineOf(rule.to)];
      const [fromInterface, toInterface] = [from?.interfaces[0], to?.interfaces[0]];
      if (from === undefined || to === undefined || fromInterface === undefined || toInterface === undefined) continue;
      const packet = { from, to, fromInterface, toInterface, protocol: "tcp", port: rule.port } as const;
      if (!sendPacket(kernel, truth, packet)) faults.push(`${cell}: no packet passes from ${rule.from} to ${rule.to}`);
    }
  });
  return faults;
};
interface Accepted {
  readonly rules: readonly { readonly from: string; readonly to: string; readonly port: number }[];
}
