import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Invariant } from "../invariant.ts";

type Component = { readonly [key: string]: Json };
const isComponent = (json: Json | undefined): json is Component =>
  typeof json === "object" && json !== null && !Array.isArray(json);
const root = "controller.root";

/**
 * The machines in the models in force of all cells whose account, or a domain above it, may have so many: never are there more, from when the
 * root controller has heard of the limit; what was promised before that stays. Whose a cell is is what the root cell's model says.
 */
export const accountLimits: Invariant = {
  number: 71,
  title: "no account and no domain has more than it may",
  watch: ({ kernel, installation }, verdict) => {
    /** By path: how many machines there may be. */
    const most = new Map<string, number>();
    /** Heard in a step that may not have been committed: the next one follows it, unless there is a new life. */
    const heard = new Map<string, number>();
    const modelOf = (cell: string): Json => {
      const process = installation.controllers.get(cell);
      if (process === undefined) return null;
      if (process.state !== null) return process.state.model.document;
      const stored = process.disk.load().get("own/model");
      return isComponent(stored) ? (stored.document ?? null) : null;
    };
    const cellIn = (document: Json): Component => {
      const [cell = {}] = Object.values(isComponent(document) ? document : {}).filter(isComponent);
      return cell;
    };
    const machinesIn = (cell: string): number =>
      Object.values(cellIn(modelOf(cell))).filter((each) => isComponent(each) && each["x.type"] === "VM").length;
    const below = (path: string): readonly string[] =>
      Object.entries(cellIn(modelOf("root"))).flatMap(([name, each]) => {
        const account = isComponent(each) ? each["x.account"] : undefined;
        return typeof account === "string" && `${account}/`.startsWith(`${path}/`) ? [name] : [];
      });
    const has = (path: string): number => below(path).reduce((sum, cell) => sum + machinesIn(cell), 0);
    kernel.watchers.push({
      began: (who) => {
        if (who === root) heard.clear();
      },
      stepped: (who, input, effects) => {
        if (who === root) {
          for (const [path, vms] of heard) most.set(path, vms);
          heard.clear();
        }
        if (who === root && input.kind === "desired" && input.key.startsWith("limits/")) {
          const { path, limits } = (isComponent(input.value) ? input.value : {}) as {
            readonly path?: string;
            readonly limits?: { readonly vms?: number };
          };
          // What cells were promised and have not taken yet is theirs, too.
          const promised = [...(installation.controllers.get("root")?.state?.grants.values() ?? [])];
          const before = promised.reduce((sum, { amount }) => sum + amount.vms, 0);
          if (path !== undefined && limits?.vms !== undefined) heard.set(path, Math.max(limits.vms, before));
        }
        // Over an older store of the root controller cells keep what they were granted before, which it has yet to hear.
        if (!who.startsWith("controller.") || installation.losses.has(peerName(root))) return;
        if (!effects.some((effect) => effect.kind === "write" && effect.key === "model")) return;
        for (const [path, vms] of most)
          verdict.check(has(path) <= vms, () => `the cells of ${path} have ${has(path)} VMs, and it may have ${vms}`);
      },
    });
    return undefined;
  },
};
