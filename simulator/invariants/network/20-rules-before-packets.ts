import { isLearnt } from "../../../model/cell/network/modes.ts";
import type { Delivered } from "../../world/truth.ts";
import type { Invariant } from "../invariant.ts";

/**
 * An interface that can send or receive has the rules of its cell in force, a machine starts with its interfaces in place, and
 * every packet that arrives was permitted by some version of its cell; across cells, by some version of both, each of which
 * showed the other its end.
 */
export const rulesBeforePackets: Invariant = {
  number: 20,
  title: "no packet passes before its rules are in place, none crosses cells without consent",
  watch: ({ truth, users, installation }, verdict) => {
    const cellOf = (cellNumber: number): string => installation.cellOf(cellNumber);
    const shows = (cell: string, name: string): boolean =>
      (users.submitted.get(cell) ?? []).some(({ machines }) =>
        machines.some((machine) => machine.name === name && machine.shown === true),
      );
    const bothPermit = ({ from, to, fromCell, toCell, ...kind }: Delivered): boolean => {
      const [one, two] = [cellOf(fromCell), cellOf(toCell)];
      const sends = permits(fromCell, from.name, `${two}/${to.name}`, kind);
      return (
        sends && permits(toCell, `${one}/${from.name}`, to.name, kind) && shows(one, from.name) && shows(two, to.name)
      );
    };
    /** In a mode members of one group reach one another, and a rule is about groups. */
    const groupsPermit = ({ from, to, fromCell, ...kind }: Delivered): boolean => {
      const [one, two] = [groupOf(from.name), groupOf(to.name)];
      return one === two || permits(fromCell, one, two, kind);
    };
    type Kind = Pick<Delivered, "port" | "protocol">;
    const permits = (cellNumber: number, from: string, to: string, { port, protocol }: Kind): boolean =>
      (users.submitted.get(cellOf(cellNumber)) ?? []).some(({ rules }) =>
        rules.some(
          (rule) => rule.from === from && rule.to === to && rule.port === port && (rule.protocol ?? "tcp") === protocol,
        ),
      );
    truth.watchers.push({
      endpointOpened: (host, { cellNumber, desired }, { policies }) => {
        const hasRules = [...policies.values()].some((policy) => policy.cellNumber === cellNumber);
        verdict.check(hasRules, () => `${desired.path} opened at ${host} before the rules of its cell were there`);
      },
      machineStarted: ({ vm, host, interfaces }) => {
        const { taps, endpoints, mode } = truth.dataplane(host);
        for (const { uid, path, address, instance } of interfaces) {
          const isThere =
            instance === undefined
              ? taps.has(uid) && endpoints.get(address)?.desired.uid === uid
              : mode.view !== null && (isLearnt(mode.view.mode) || mode.addresses.get(address) === instance);
          verdict.check(isThere, () => `${vm} started at ${host} before its interface ${path} was in place`);
        }
      },
      delivered: (packet) => {
        const { from, to, fromCell, toCell, port } = packet;
        const isOfMode = packet.toInterface.instance !== undefined;
        const within = () => (isOfMode ? groupsPermit(packet) : permits(fromCell, from.name, to.name, packet));
        const isPermitted = fromCell === toCell ? within() : bothPermit(packet);
        verdict.check(
          isPermitted,
          () => `a packet from ${from.name} (cell ${fromCell}) reached port ${port} of ${to.name} (cell ${toCell})`,
        );
      },
    });
    return undefined;
  },
};

/** Of a machine by its name: cells have two subnets, in which their machines are by turns. */
const groupOf = (machine: string): string => `net${Number(/\d+$/.exec(machine)?.[0]) % 2}`;
