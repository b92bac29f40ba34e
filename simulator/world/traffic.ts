import type { Ipv4 } from "../../model/cell/identifiers.ts";
import { type RuleText, subnetOf } from "./cell-text.ts";
import { sendPacket } from "./dataplane.ts";
import type { Installation } from "./installation.ts";
import { beginGroups, everybody, isOfSubnet } from "./memberships.ts";
import { sendToMany } from "./to-many.ts";
import type { MachineTruth, Packet } from "./truth.ts";

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
  beginGroups(kernel, truth);
  const toMany = kernel.random.fork("traffic to many");
  const everyone = (): void => {
    kernel.clock.after(everyMs, everyone);
    const groups = [...new Set([...truth.machines].flatMap((machine) => [...machine.groups]))];
    if (groups.length === 0) return;
    const from = toMany.pick([...truth.machines]);
    const [fromInterface] = from.interfaces;
    const group = toMany.pick([everybody, ...groups]);
    if (fromInterface !== undefined)
      sendToMany(kernel, truth, { from, fromInterface, group, port: toMany.pick(ports) });
  };
  everyone();
};

/** Of a rule's end that has joined: groups of which no copy comes from its other end. */
const deafGroups = (
  { kernel, truth }: Installation,
  { from, to, fromInterface, toInterface, port }: Packet,
): readonly Ipv4[] => {
  const isOfOneSubnet = fromInterface.subnetIdentity === toInterface.subnetIdentity;
  return [everybody, ...to.groups].filter(
    (group) =>
      (isOfOneSubnet || !isOfSubnet(group)) &&
      !sendToMany(kernel, truth, { from, fromInterface, group, port }).includes(to),
  );
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
    faults.push(...deafGroupRules(installation, cell, accepted.get(cell)?.rules ?? []));
    for (const rule of accepted.get(cell)?.rules ?? []) {
      if (!isAgreed(cell, rule, accepted)) continue;
      const [from, to] = [machineOf(rule.from), machineOf(rule.to)];
      const [fromInterface, toInterface] = [from?.interfaces[0], to?.interfaces[0]];
      if (from === undefined || to === undefined || fromInterface === undefined || toInterface === undefined) continue;
      const { protocol = "tcp", port } = rule;
      const packet: Packet = { from, to, fromInterface, toInterface, protocol, port };
      if (!sendPacket(kernel, truth, packet)) faults.push(`${cell}: no packet passes from ${rule.from} to ${rule.to}`);
      // What is for many stays in its cell.
      if (protocol !== "udp" || `${rule.from}${rule.to}`.includes("/")) continue;
      for (const group of deafGroups(installation, packet))
        faults.push(`${cell}: no copy for ${group} passes from ${rule.from} to ${rule.to}`);
    }
  });
  return faults;
};
/** Of a cell on a mode, whose rules are about groups. */
const deafGroupRules = (
  { kernel, truth, controllers }: Installation,
  cell: string,
  rules: readonly RuleText[],
): readonly string[] => {
  const uids = `${controllers.get(cell)?.state?.options.cellUid ?? "?"}-`;
  const own = [...truth.machines].filter(
    ({ vm, interfaces }) => vm.startsWith(uids) && interfaces[0]?.instance !== undefined,
  );
  const isOf = (machine: MachineTruth, group: string): boolean => subnetOf(machine.name, 0) === group;
  return rules.flatMap(({ from, to, port, protocol = "tcp" as const }) =>
    own
      .filter((machine) => isOf(machine, from))
      .flatMap((source) =>
        own.flatMap((target) => {
          const [fromInterface, toInterface] = [source.interfaces[0], target.interfaces[0]];
          if (source === target || !isOf(target, to) || fromInterface === undefined || toInterface === undefined)
            return [];
          const packet: Packet = { from: source, to: target, fromInterface, toInterface, protocol, port };
          return sendPacket(kernel, truth, packet)
            ? []
            : [`${cell}: no packet passes from ${source.name} to ${target.name} of its groups ${from} and ${to}`];
        }),
      ),
  );
};

interface Accepted {
  readonly rules: readonly RuleText[];
  readonly machines: readonly { readonly name: string; readonly shown?: true }[];
}

/** Between cells only what both have a rule for passes, with ends that both show. */
export const isAgreed = (cell: string, rule: RuleText, accepted: ReadonlyMap<string, Accepted | null>): boolean => {
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
    ?.rules.some(
      ({ from, to, port, protocol }) =>
        from === seen.from && to === seen.to && port === rule.port && protocol === rule.protocol,
    );
  return answers === true && shows(cell, own) && shows(other, name);
};
