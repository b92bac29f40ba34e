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
export const deafRules = (installation: Installation, accepted: ReadonlyMap<string, Accepted | null>) => {
  const { kernel, truth, controllers } = installation;
  const faults: string[] = [];
  [...accepted.keys()].forEach((cell) => {
    const machineOf = (named: string): MachineTruth | undefined => {
      const [name = "", other = cell] = named.split("/").reverse();
      const uids = `${controllers.get(other)?.state?.options.cellUid ?? "?"}-`;
      return [...truth.machines].find((machine) => machine.name === name && machine.vm.startsWith(uids));
    };
    for (const rule of accepted.get(cell)?.rules ?? []) {
      if (!isAgreed(cell, rule, accepted)) continue;
      const [from, to] = [machineOf(rule.from), machineOf(rule.to)];
      const [fromInterface, toInterface] = [from?.interfaces[0], to?.interfaces[0]];
      if (from === undefined || to === undefined || fromInterface === undefined || toInterface === undefined) continue;
      const packet = { from, to, fromInterface, toInterface, protocol: "tcp", port: rule.port } as const;
      if (!sendPacket(kernel, truth, packet)) faults.push(`${cell}: no packet passes from ${rule.from} to ${rule.to}`);
    }
  });
  return faults;
};
interface Rule {
  readonly from: string;
  readonly to: string;
  readonly port: number;
}
interface Accepted {
  readonly rules: readonly Rule[];
  readonly machines: readonly { readonly name: string; readonly shown?: true }[];
}

/** Between cells only what both have a rule for passes, with ends that both show. */
export const isAgreed = (cell: string, rule: Rule, accepted: ReadonlyMap<string, Accepted | null>): boolean => {
  const foreign = [rule.from, rule.to].find((end) => end.includes("/"));
  if (foreign === undefined) return true;
  const [other = "", name] = foreign.split("/");
  const own = foreign === rule.from ? rule.to : rule.from;
  const seen = {
    from: foreign === rule.from ? name : `${cell}/${own}`,
    to: foreign === rule.to ? name : `${cell}/${own}`,
  };
  const shows = (where: string, what: string | undefined): boolean =>
    accepted.get(where)?.machines.some((machine) => machine.name === what && machine.shown === true) === true;
  const answers = accepted
    .get(other)
    ?.rules.some(({ from, to, port }) => from === seen.from && to === seen.to && port === rule.port);
  return answers === true && shows(cell, own) && shows(other, name);
};
