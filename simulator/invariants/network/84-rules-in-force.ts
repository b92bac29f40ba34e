import { isObject } from "../../../core/outbox.ts";
import type { HostName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { LogFields } from "../../kernel/kernel.ts";
import { incarnationOf, watchHa } from "../ha/said-over.ts";
import type { Invariant } from "../invariant.ts";

/**
 * A rule that is said to be ready is met by packets at each host where a machine of its cell runs, and one that is said to be
 * removed by none any more. Of a machine that a controller without its newer store does not know it says nothing, nor of one that
 * the HA Manager has said to be over: it may run on where nobody reaches it.
 */
export const rulesInForce: Invariant = {
  number: 84,
  title: "a rule that is said to be ready is in force where its cell's machines run, and one that was removed is not",
  watch: ({ kernel, truth, installation }, verdict) => {
    const said = watchHa(kernel);
    const hostsOf = (cell: string): ReadonlySet<HostName> => {
      const hosts = new Set<HostName>();
      const known = installation.controllers.get(cell)?.state?.elements;
      for (const { vm, incarnation, host, interfaces } of truth.machines)
        if (said.over.has(incarnationOf({ vm, incarnation }))) continue;
        else if (known?.has(vm) === true && interfaces.some(({ address }) => cellAt(host, address) === cell))
          hosts.add(host);
      return hosts;
    };
    const cellAt = (host: HostName, address: string): string | null => {
      const endpoint = truth.dataplane(host).endpoints.get(address);
      return endpoint === undefined ? null : installation.cellOf(endpoint.cellNumber);
    };
    const isInForce = (host: HostName, cell: string, path: unknown): boolean =>
      truth
        .dataplane(host)
        .policies.get(cell)
        ?.rules.some((rule) => rule.path === path) === true;
    /** Of the cell's machines at a host. */
    const identitiesAt = (host: HostName, cell: string): readonly number[] =>
      [...truth.dataplane(host).endpoints.values()]
        .filter(({ cellNumber }) => installation.cellOf(cellNumber) === cell)
        .flatMap(({ desired: { identity, vmIdentity, subnetIdentity } }) => [identity, vmIdentity, subnetIdentity]);
    /**
     * In force where a machine has its identities. A host that is told in slices may have had the cell's rules as one document, and
     * goes on with that until slices of its own machines change: others' rules meet no packet there.
     */
    const isMetByMachine = (host: HostName, cell: string, path: unknown): boolean => {
      const here = identitiesAt(host, cell);
      return (truth.dataplane(host).policies.get(cell)?.rules ?? []).some(
        ({ path: of, from, to }) => of === path && (here.includes(from) || here.includes(to)),
      );
    };
    /**
     * In slices a host has the rules of machines there, and no others. It may still go on with one document of before, while its
     * slices are as they were then.
     */
    const isNothingTo = (host: HostName, cell: string, path: unknown): boolean => {
      const { identities } = truth.dataplane(host).policies.get(cell) ?? {};
      const here = identities ?? (installation.history.slices ? identitiesAt(host, cell) : undefined);
      const rules = installation.controllers.get(cell)?.state?.derived.policy.peek("")?.rules ?? [];
      return (
        here !== undefined &&
        !rules.some(({ path: of, from, to }) => of === path && (here.includes(from) || here.includes(to)))
      );
    };
    const look = (cell: string, event: string, fields: LogFields): void => {
      if (event === "element/state" && fields.phase === "ready") {
        for (const host of hostsOf(cell))
          verdict.check(
            isInForce(host, cell, fields.path) || isNothingTo(host, cell, fields.path),
            () => `${fields.path} is ready and not in force at ${host}`,
          );
      }
      // With its cell a rule ends when the last machine does. A model that the disk refused is in force nowhere.
      const model = installation.controllers.get(cell)?.state?.model.document ?? null;
      if (event !== "element/removed" || model === null || has(model, String(fields.path))) return;
      for (const host of hostsOf(cell))
        verdict.check(
          !isMetByMachine(host, cell, fields.path),
          () => `${fields.path} is removed and in force at ${host}`,
        );
    };
    // By step and not by the log: several steps may share a commit, and the next one of them may be of another model.
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
