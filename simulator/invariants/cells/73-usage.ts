import type { Json } from "../../../model/json/json.ts";
import { epochMs } from "../../kernel/process.ts";
import type { Invariant, View } from "../invariant.ts";
import { Outages } from "./outages.ts";

type Component = { readonly [key: string]: Json };
const isComponent = (json: Json | undefined): json is Component =>
  typeof json === "object" && json !== null && !Array.isArray(json);
/** A change is on its way for a moment, and waits while somebody is started again; what is in use is said every few seconds. */
const lateMs = { had: 3_000, used: 8_000 } as const;
type Count = keyof typeof lateMs;
const counts = ["had", "used"] as const satisfies readonly Count[];
/** As a record of a day names it. */
const fields: Readonly<Record<Count, string>> = { had: "amounts", used: "used" };
/** Whoever grants, has, passes on and counts. */
const isTelling = (name: string): boolean =>
  /^(tenancy|cell-manager|controller\.(root|i|j|([a-z]+\.)*k\d+))$/.test(name);

/**
 * What accounts are said to have had is what the models in force of their cells had, for as long as they had it, and what was in use what the controllers' stores
 * say that hosts ran: counted here by the clock of the world, over everything that crashes. Each change may be heard a little later than it is made.
 */
export const usage: Invariant = {
  number: 73,
  title: "an account has had what its cells had, and used what ran in them, for as long as they did",
  watch: ({ kernel, installation }, verdict) => {
    const { modelOf, amountsOf } = storesOf(installation);
    /** By account: since when how many machines. */
    const were = new Map<string, Record<Count, { readonly atMs: number; readonly vms: number }[]>>();
    /** Those that are there: a cell that is said to be another's is the operator's. */
    const there = new Set<string>();
    const sample = (): void => {
      const now = new Map([...were.keys()].map((account) => [account, { had: 0, used: 0 }]));
      for (const [name, each] of Object.entries(modelOf("root"))) {
        const account = isComponent(each) ? each["x.account"] : undefined;
        if (typeof account !== "string" || !there.has(account)) continue;
        const before = now.get(account) ?? { had: 0, used: 0 };
        // With its own child cells.
        const cells = [...installation.controllers.keys()].filter((cell) => cell === name || cell.endsWith(`.${name}`));
        now.set(
          account,
          cells.map(amountsOf).reduce((sum, more) => ({ had: sum.had + more.had, used: sum.used + more.used }), before),
        );
      }
      for (const [account, vms] of now) {
        const all = were.get(account) ?? { had: [], used: [] };
        were.set(account, all);
        for (const count of counts)
          if (all[count].at(-1)?.vms !== vms[count]) all[count].push({ atMs: kernel.clock.nowMs, vms: vms[count] });
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
          there.size > 0 &&
          who.startsWith("controller.") &&
          effects.some((effect) => effect.kind === "write" && (effect.key === "model" || effect.key.startsWith("vm/")))
        )
          // Not before it is durable.
          kernel.clock.after(100, sample);
      },
    });
    return () => {
      const tenancy = [...installation.processes.values()].find(({ name }) => name === "tenancy");
      if (tenancy === undefined || were.size === 0) return;
      // Over an older store of theirs, what was granted and what the models have are apart until an operator has looked.
      if ([...installation.losses].some(isTelling)) return;
      for (const [account, each] of were) {
        const records = [...tenancy.disk.load()].flatMap(([key, value]) =>
          key.startsWith("own/usage/") && isComponent(value) && value.account === account ? [value] : [],
        );
        const untilMs = Math.max(0, ...records.map((record) => Number(record.untilMs) - epochMs));
        if (untilMs === 0) continue;
        for (const count of counts) {
          const all = each[count];
          const said = records.reduce((sum, record) => sum + vmsIn(record[fields[count]]), 0);
          const real = all.reduce((sum, { atMs, vms }, index) => {
            const endMs = Math.min(untilMs, all[index + 1]?.atMs ?? untilMs);
            return sum + vms * Math.max(0, endMs - atMs);
          }, 0);
          const late = all.reduce(
            (sum, { atMs, vms }, index) =>
              sum + (lateMs[count] + outages.delayOf(atMs, lateMs[count])) * Math.abs(vms - (all[index - 1]?.vms ?? 0)),
            0,
          );
          if (real > 0)
            verdict.check(
              Math.abs(said - real) <= late,
              () => `${account} is said to have ${count} ${said} VM·ms until ${untilMs}, and ${count} ${real}`,
            );
        }
      }
    };
  },
};
/** What the stores of the controllers say, now. */
const storesOf = ({ controllers }: View["installation"]) => {
  const recordsOf = (cell: string): ReadonlyMap<string, Json> => controllers.get(cell)?.disk.load() ?? new Map();
  const modelIn = (records: ReadonlyMap<string, Json>): Component => {
    const stored = records.get("own/model");
    const document = isComponent(stored) ? stored.document : undefined;
    const [cell = {}] = Object.values(isComponent(document) ? document : {}).filter(isComponent);
    return cell;
  };
  return {
    modelOf: (cell: string): Component => modelIn(recordsOf(cell)),
    amountsOf: (cell: string): Readonly<Record<Count, number>> => {
      const records = recordsOf(cell);
      const machines = Object.values(modelIn(records)).filter((each) => isComponent(each) && each["x.type"] === "VM");
      const running = [...records].filter(
        ([key, vm]) => key.startsWith("own/vm/") && isComponent(vm) && isHandedOver(vm.run),
      );
      return { had: machines.length, used: running.length };
    },
  };
};
const isHandedOver = (run: Json | undefined): boolean => isComponent(run) && run.handedOver === true;
const vmsIn = (amounts: Json | undefined): number => (isComponent(amounts) ? Number(amounts.vms ?? 0) : 0);
