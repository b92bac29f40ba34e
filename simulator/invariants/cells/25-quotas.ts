import type { Uid } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Invariant } from "../invariant.ts";

type Component = { readonly [key: string]: Json };
const isComponent = (json: Json | undefined): json is Component =>
  typeof json === "object" && json !== null && !Array.isArray(json);

/** Elements of a type anywhere in a document; what stands in an `x.` attribute is none of this cell. */
const count = (json: Json, of: (component: Component) => number): number => {
  if (!isComponent(json)) return 0;
  const below = Object.entries(json).filter(([name]) => !name.startsWith("x."));
  return of(json) + below.reduce((sum, [, each]) => sum + count(each, of), 0);
};
const measures: Readonly<Record<string, (component: Component) => number>> = {
  "x.limits.vms": (each) => Number(each["x.type"] === "VM"),
  "x.limits.memory": (each) => (each["x.type"] === "VM" ? Number(each["x.memory"]) : 0),
};

/** What the models in force of a cell and of all cells below it ask for, after every step, wherever they are kept. */
export const quotas: Invariant = {
  number: 25,
  title: "the quotas of all ancestors hold at every moment",
  watch: ({ kernel, installation }, verdict) => {
    /** Of each cell's controller, as it said last. */
    const uids = new Map<string, Uid>();
    const modelOf = (cell: string): Json => {
      const process = installation.controllers.get(cell);
      if (process === undefined) return null;
      if (process.state !== null) return process.state.model.document;
      const stored = process.disk.load().get("own/model");
      return isComponent(stored) ? (stored.document ?? null) : null;
    };
    /** Its parent, or one above that, lost its store and does not know it any more: nobody's quota has it until somebody ends it. */
    const isOrphan = (child: string, below: string): boolean => {
      const line = installation.lineOf(child);
      for (const [index, cell] of line.slice(0, line.indexOf(below)).entries()) {
        const parent = installation.controllers.get(line[index + 1] ?? "");
        const own = uids.get(cell);
        if (parent === undefined || own === undefined || !installation.losses.has(parent.name)) continue;
        if (parent.state?.elements.has(own) === false) return true;
      }
      return false;
    };
    kernel.watchers.push({
      stepped: (who, _input, effects) => {
        if (!who.startsWith("controller.")) return;
        const stepped = who.slice("controller.".length);
        const now = installation.controllers.get(stepped)?.state?.options.cellUid;
        if (now !== undefined) uids.set(stepped, now);
        if (!effects.some((effect) => effect.kind === "write" && effect.key === "model")) return;
        // Every cell that it is below, and itself.
        for (const cell of installation.lineOf(stepped)) {
          const [limits] = Object.values(modelOf(cell) ?? {}).filter(isComponent);
          for (const [name, measure] of Object.entries(measures)) {
            const limit = limits?.[name];
            if (typeof limit !== "number") continue;
            const family = [...installation.controllers.keys()].filter(
              (each) => each === cell || (installation.lineOf(each).includes(cell) && !isOrphan(each, cell)),
            );
            const used = family.reduce((sum, each) => sum + count(modelOf(each), measure), 0);
            verdict.check(
              used <= limit,
              () => `${cell} and the cells below it have ${used}, and its ${name} is ${limit}`,
            );
          }
        }
      },
    });
    return undefined;
  },
};
