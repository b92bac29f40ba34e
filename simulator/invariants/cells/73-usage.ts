import type { Json } from "../../../model/json/json.ts";
import { epochMs } from "../../kernel/process.ts";
import type { Invariant } from "../invariant.ts";
import { Outages } from "./outages.ts";

type Component = { readonly [key: string]: Json };
const isComponent = (json: Json | undefined): json is Component =>
  typeof json === "object" && json !== null && !Array.isArray(json);
/** A change is on its way for a moment, and waits while somebody is started again. */
const lateMs = 3_000;
/** Whoever grants, has, passes on and counts. */
const isTelling = (name: string): boolean => /^(tenancy|cell-manager|controller\.(root|i|j|k\d+))$/.test(name);

/**
 * What accounts are said to have had is what the models in force of their cells had, for as long as they had it: counted here by the clock of the world,
 * over everything that crashes. Each change may be heard a little later than it is made.
 */
export const usage: Invariant = {
  number: 73,
  title: "an account has had what its cells had, for as long as they had it",
  watch: ({ kernel, installation }, verdict) => {
    const cellOf = (document: Json | undefined): Component => {
      const [cell = {}] = Object.values(isComponent(document) ? document : {}).filter(isComponent);
      return cell;
    };
    const modelOf = (cell: string): Component => {
      const stored = installation.controllers.get(cell)?.disk.load().get("own/model");
      return cellOf(isComponent(stored) ? stored.document : undefined);
    };
    const machinesIn = (cell: string): number =>
      Object.values(modelOf(cell)).filter((each) => isComponent(each) && each["x.type"] === "VM").length;
    /** By account: since when how many machines. */
    const had = new Map<string, { readonly atMs: number; readonly vms: number }[]>();
    /** Those that are there: a cell that is said to be another's is the operator's. */
    const there = new Set<string>();
    const sample = (): void => {
      const now = new Map<string, number>([...had.keys()].map((account) => [account, 0]));
      for (const [name, each] of Object.entries(modelOf("root"))) {
        const account = isComponent(each) ? each["x.account"] : undefined;
        if (typeof account === "string" && there.has(account))
          now.set(account, (now.get(account) ?? 0) + machinesIn(name));
      }
      for (const [account, vms] of now) {
        const all = had.get(account) ?? [];
        had.set(account, all);
        if (all.at(-1)?.vms !== vms) all.push({ atMs: kernel.clock.nowMs, vms });
      }
    };
    const outages = new Outages(installation, () =>
      [...installation.processes.values()].filter(({ name }) => isTelling(name)),
    );
    kernel.watchers.push({
      stepped: (who, _input, effects) => {
        for (const effect of effects)
          if (who === "tenancy" && effect.kind === "log" && effect.fields.verb === "addAccount") {
            there.add(String(effect.fields.target));
            kernel.clock.after(100, sample);
          }
        if (
          who.startsWith("controller.") &&
          effects.some((effect) => effect.kind === "write" && effect.key === "model")
        )
          // Not before it is durable.
          kernel.clock.after(100, sample);
      },
    });
    return () => {
      const tenancy = [...installation.processes.values()].find(({ name }) => name === "tenancy");
      if (tenancy === undefined || had.size === 0) return;
      // Over an older store of theirs, what was granted and what the models have are apart until an operator has looked.
      if ([...installation.losses].some(isTelling)) return;
      for (const [account, all] of had) {
        const records = [...tenancy.disk.load()].flatMap(([key, value]) =>
          key.startsWith("own/usage/") && isComponent(value) && value.account === account ? [value] : [],
        );
        const untilMs = Math.max(0, ...records.map((each) => Number(each.untilMs) - epochMs));
        if (untilMs === 0) continue;
        const said = records.reduce(
          (sum, { amounts }) => sum + (isComponent(amounts) ? Number(amounts.vms ?? 0) : 0),
          0,
        );
        const were = all.reduce((sum, { atMs, vms }, index) => {
          const endMs = Math.min(untilMs, all[index + 1]?.atMs ?? untilMs);
          return sum + vms * Math.max(0, endMs - atMs);
        }, 0);
        const late = all.reduce(
          (sum, { atMs, vms }, index) =>
            sum + (lateMs + outages.delayOf(atMs, lateMs)) * Math.abs(vms - (all[index - 1]?.vms ?? 0)),
          0,
        );
        if (were > 0)
          verdict.check(
            Math.abs(said - were) <= late,
            () => `${account} is said to have had ${said} VM·ms until ${untilMs}, and had ${were}`,
          );
      }
    };
  },
};
