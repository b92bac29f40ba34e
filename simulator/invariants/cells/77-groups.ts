import type { Json } from "../../../model/json/json.ts";
import type { Invariant } from "../invariant.ts";

interface Fields {
  readonly [name: string]: Json | undefined;
}
interface Member {
  readonly by: string;
  readonly groups: readonly string[];
  readonly host: string;
}
/** What a Placer was told and has promised, by its own inputs and logs. */
interface Known {
  readonly accounts: Map<string, string>;
  /** Kinds by UID, with whose they are. */
  readonly groups: Map<string, { readonly by: string; readonly name: string; readonly kind: string }>;
  readonly asked: Map<string, Omit<Member, "host"> & { readonly isKnown: boolean }>;
  readonly placed: Map<string, Member>;
  /** Hosts that the operator ever closed, or that were ever declared dead: nobody is held there. */
  readonly left: Set<string>;
}
const fieldsOf = (value: Json | undefined): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
const textsOf = (value: Json | undefined): readonly string[] =>
  (Array.isArray(value) ? value : [value]).filter((text) => typeof text === "string");

/**
 * A Placer places no VM anew where another of a strict anti-affinity group of its account has a place, in whichever cell, or has been
 * stopped and is still spoken of; and one of a strict affinity group where none is, only if none has a place anywhere. The premise is a
 * placement of a VM in such a group.
 */
export const affinityGroups: Invariant = {
  number: 77,
  title: "VMs of a strict affinity group stand at one host, of a strict anti-affinity group at different ones",
  watch: ({ kernel }, verdict) => {
    const all = new Map<string, Known>();
    const before = new Set<string>();
    const knownTo = (who: string): Known => {
      const empty = {
        accounts: new Map(),
        groups: new Map(),
        asked: new Map(),
        placed: new Map(),
        left: new Set<string>(),
      };
      const known = all.get(who) ?? empty;
      all.set(who, known);
      return known;
    };
    const hear = (known: Known, from: string, key: string, value: Json): void => {
      const [kind = "", name = ""] = key.split("/");
      const fields = fieldsOf(value);
      const by = from.replace("controller.", "");
      if (kind === "owner" && value === null) known.accounts.delete(name);
      else if (kind === "owner") known.accounts.set(name, String(fields.account));
      else if (kind === "group" && value === null) known.groups.delete(name);
      else if (kind === "group") known.groups.set(name, { by, name: String(fields.name), kind: String(fields.kind) });
      else if (kind === "host" && value !== null) known.left.add(name);
      else if (kind === "placement" && value !== null)
        known.asked.set(name, {
          by,
          groups: textsOf(fieldsOf(fields.placement).groups),
          isKnown: fields.at !== undefined,
        });
    };
    const accountOf = ({ accounts }: Known, cell: string): string => {
      const around = cell.split(".").at(-1) ?? "";
      return accounts.get(around) ?? `of ${around}`;
    };
    const check = (known: Known, vm: string, { by, groups, host }: Member): void => {
      const account = accountOf(known, by);
      for (const name of groups) {
        const ours = [...known.groups.values()].filter(
          (group) => group.name === name && accountOf(known, group.by) === account,
        );
        const kinds = new Set(ours.map(({ kind }) => kind));
        const others = [...known.placed].filter(
          ([other, there]) => other !== vm && there.groups.includes(name) && accountOf(known, there.by) === account,
        );
        const said = (): string =>
          `${vm} of the group ${name} of ${account} is placed at ${host}, and the others are at ${others.map(([other, there]) => `${there.host} (${other})`).join(", ")}`;
        if (kinds.has("host anti-affinity")) verdict.check(!others.some(([, there]) => there.host === host), said);
        else if (kinds.has("host affinity") && !others.some(([, there]) => known.left.has(there.host)))
          verdict.check(others.length === 0 || others.some(([, there]) => there.host === host), said);
      }
    };
    kernel.watchers.push({
      log: (who, event) => {
        if (event === "store/taken") all.delete(who);
      },
      stepped: (who, input, effects) => {
        if (who !== "placer" && !who.startsWith("placer.")) return;
        const known = knownTo(who);
        if (input.kind === "desired") hear(known, input.from, input.key, input.value);
        if (input.kind === "actual" && input.key.startsWith("dead/")) known.left.add(input.key.slice("dead/".length));
        for (const effect of effects) {
          if (effect.kind !== "log") continue;
          const { event, fields } = effect;
          const [vm, host] = [String(fields.vm), String(fields.host)];
          if (event === "placement/released") known.placed.delete(vm);
          if (event !== "placement/reserved") continue;
          const asked = known.asked.get(vm);
          const key = `${vm} ${fields.incarnation} ${host}`;
          const isNews = !before.has(key);
          before.add(key);
          if (asked === undefined) continue;
          const member = { by: asked.by, groups: asked.groups, host };
          if (isNews && !asked.isKnown) check(known, vm, member);
          known.placed.set(vm, member);
        }
      },
    });
    return undefined;
  },
};
