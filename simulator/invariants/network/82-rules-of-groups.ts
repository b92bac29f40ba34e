import { isObject } from "../../../core/outbox.ts";
import type { HostName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { LogFields } from "../../kernel/kernel.ts";
import type { MachineTruth, ModeTruth } from "../../world/truth.ts";
import { incarnationOf, watchHa } from "../ha/said-over.ts";
import type { Invariant } from "../invariant.ts";

/** As `ruleName` of the cells' texts has it: from a subnet to a subnet, at a port. */
interface NamedRule {
  readonly from: string;
  readonly to: string;
  readonly port: number;
  readonly protocol: number;
}
const named = (path: string): NamedRule | null => {
  const [, from = "", to = "", port = "", udp] = /\/(net\d)To(net\d)At(\d+)(Udp)?$/.exec(path) ?? [];
  return from === "" ? null : { from, to, port: Number(port), protocol: udp === undefined ? 6 : 17 };
};

/**
 * Of a cell on a mode of Eucalyptus: a rule that is said to be ready is in the view that is in force wherever one of its machines
 * runs, and where its cluster is carried to the outside, and one that was removed is in none of these. What is looked at are rules about members that the view itself names.
 */
export const rulesOfGroups: Invariant = {
  number: 82,
  title: "in a mode a rule that is said to be ready is in force, and one that was removed is not",
  watch: ({ kernel, truth, installation }, verdict) => {
    const said = watchHa(kernel);
    const machinesOf = (cell: string): readonly MachineTruth[] => {
      const known = installation.controllers.get(cell)?.state?.elements;
      return [...truth.machines].filter(
        ({ vm, incarnation, interfaces }) =>
          known?.has(vm) === true &&
          interfaces[0]?.instance !== undefined &&
          !said.over.has(incarnationOf({ vm, incarnation })),
      );
    };
    /** In the MANAGED modes rules are asked there. */
    const carriers = (cell: string): readonly HostName[] =>
      [...truth.dataplanes].flatMap(
        ([
          host,
          {
            mode: { view, carries },
          },
        ]) => (carries !== null && view?.instances.some(({ owner }) => owner === cell) === true ? [host] : []),
      );
    /** Null: the view has no members of one of the two. */
    const isInForce = ({ view }: ModeTruth, machines: readonly MachineTruth[], rule: NamedRule): boolean | null => {
      const groupsOf = (net: string): readonly string[] => {
        const members = machines.filter(({ name }) => `net${Number(/\d+$/.exec(name)?.[0]) % 2}` === net);
        const ids = new Set(members.map(({ interfaces }) => interfaces[0]?.instance));
        return (view?.instances ?? []).flatMap(({ id, securityGroups }) => (ids.has(id) ? securityGroups : []));
      };
      const [froms, tos] = [groupsOf(rule.from), groupsOf(rule.to)];
      if (froms.length === 0 || tos.length === 0) return null;
      return (view?.securityGroups ?? []).some(
        ({ id, ingress }) =>
          tos.includes(id) &&
          ingress.some(
            ({ group = "", protocol, fromPort, toPort }) =>
              froms.includes(group) && protocol === rule.protocol && fromPort <= rule.port && rule.port <= toPort,
          ),
      );
    };
    const look = (cell: string, event: string, fields: LogFields): void => {
      const path = String(fields.path);
      const rule = named(path);
      const isReady = event === "element/state" && fields.phase === "ready";
      const model = installation.controllers.get(cell)?.state?.model.document ?? null;
      if (rule === null || !(isReady || (event === "element/removed" && model !== null && !has(model, path)))) return;
      const machines = machinesOf(cell);
      for (const host of new Set([...machines.map((machine) => machine.host), ...carriers(cell)])) {
        const is = isInForce(truth.dataplane(host).mode, machines, rule);
        if (is !== null)
          verdict.check(
            is === isReady,
            () => `${path} is ${isReady ? "ready and not" : "removed and"} in force at ${host}`,
          );
      }
    };
    kernel.watchers.push({
      stepped: (who, _input, effects) => {
        if (!who.startsWith("controller.")) return;
        const cell = who.slice("controller.".length);
        for (const effect of effects)
          if (effect.kind === "log" && effect.fields.type === "NetworkRule") look(cell, effect.event, effect.fields);
      },
    });
    return undefined;
  },
};

/** Is there an element at this path of the model? */
const has = (model: Json, path: string): boolean => {
  let at: Json | undefined = model;
  for (const name of path.split("/")) at = isObject(at) ? at[name] : undefined;
  return at !== undefined;
};
