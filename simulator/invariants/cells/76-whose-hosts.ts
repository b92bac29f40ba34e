import type { Json } from "../../../model/json/json.ts";
import type { Invariant } from "../invariant.ts";

interface Fields {
  readonly [name: string]: Json | undefined;
}
interface Asked {
  readonly by: string;
  readonly groups: readonly string[];
  readonly isStrict: boolean;
  /** It asks for a pool. */
  readonly pool: boolean;
  readonly offering: string;
}
/** Of a host of a flavour: accounts that may use it now, and of what its VMs have to be; null: of anything. */
interface Users {
  readonly accounts: readonly string[];
  readonly offerings: readonly string[] | null;
  readonly images: readonly string[] | null;
}
/** What every VM of a history boots from, and the offering that asks for a host alone, whatever the VM does. */
const [onlyImage, strictOffering] = ["tiny", "alone"];
interface Placed extends Asked {
  readonly host: string;
}
/** What a Placer was told and has promised, by its own inputs and logs. */
interface Known {
  readonly hosts: Map<string, Fields>;
  readonly pooled: Map<string, Users>;
  readonly accounts: Map<string, string>;
  readonly asked: Map<string, Asked>;
  readonly placed: Map<string, Placed>;
}
const fieldsOf = (value: Json | undefined): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
const textsOf = (value: Json | undefined): readonly string[] =>
  (Array.isArray(value) ? value : [value]).filter((text) => typeof text === "string");
const listOf = (value: Json | undefined): readonly string[] | null => (value === undefined ? null : textsOf(value));

const noUsers: Pick<Users, "offerings" | "images"> = { offerings: null, images: null };

/** What a Placer is told. */
function hear({ hosts, pooled, accounts, asked }: Known, from: string, key: string, value: Json): void {
  const [kind = "", name = ""] = key.split("/");
  const fields = fieldsOf(value);
  if (kind === "dedicated" && value === null) hosts.delete(name);
  else if (kind === "dedicated") hosts.set(name, fieldsOf(fields.to));
  else if (kind === "pooled" && value === null) pooled.delete(name);
  else if (kind === "pooled") {
    const { enabled, authorised, offerings, images } = fieldsOf(fields.pool);
    const accounts = enabled === true ? textsOf(authorised) : [];
    pooled.set(name, { accounts, offerings: listOf(offerings), images: listOf(images) });
  } else if (kind === "owner" && value === null) accounts.delete(name);
  else if (kind === "owner") accounts.set(name, String(fields.account));
  else if (kind === "placement" && value !== null) {
    const wishes = fieldsOf(fields.placement);
    const by = from.replace("controller.", "");
    const groups = textsOf(wishes.groups).filter((group) => group.startsWith("DedicatedGrp-"));
    const pool = typeof wishes.pool === "string";
    const offering = typeof wishes.offering === "string" ? wishes.offering : "";
    const isStrict = wishes.dedication === "strict" || offering === strictOffering;
    asked.set(name, { by, groups, isStrict, pool, offering });
  }
}

/**
 * A Placer that has heard whose a host is places nobody else's VM there anew, nor one of the owner's that does not ask for it, and one that asks for
 * such hosts nowhere else; the same of a host of a flavour and the accounts of the pool that it is in, which takes what is of its offerings and images alone; and beside a VM that asks for that strictly nobody's but its account's. The cloud's own VMs stand anywhere.
 * The premise is a placement while some host is dedicated or of a flavour, or one beside a strict VM. It knows accounts as owners alone, and no zones.
 */
export const whoseHosts: Invariant = {
  number: 76,
  title:
    "a dedicated host takes its owner's VMs that ask for it alone, and a strict VM stands beside no other account's",
  watch: ({ kernel }, verdict) => {
    const all = new Map<string, Known>();
    const before = new Set<string>();
    const knownTo = (who: string): Known => {
      const known = all.get(who) ?? {
        hosts: new Map(),
        pooled: new Map(),
        accounts: new Map(),
        asked: new Map(),
        placed: new Map(),
      };
      all.set(who, known);
      return known;
    };
    const accountOf = ({ accounts }: Known, cell: string): string =>
      accounts.get(cell.split(".").at(-1) ?? "") ?? `of ${cell}`;
    const check = (known: Known, vm: string, { by, groups, isStrict, pool, offering, host }: Placed): void => {
      if (by === "root") return;
      const owner = known.hosts.get(host);
      const account = accountOf(known, by);
      const group = groups.find((name) => name === `DedicatedGrp-${account.split("/").at(-1)}`);
      if (known.hosts.size > 0 || groups.length > 0)
        verdict.check(
          owner === undefined ? groups.length === 0 : owner.path === account && group !== undefined,
          () => `${vm} of ${account} is placed at ${host}, which is ${String(owner?.path ?? "everybody")}'s`,
        );
      const users = known.pooled.get(host);
      if (known.pooled.size > 0 || pool)
        verdict.check(
          users === undefined ? !pool : pool && users.accounts.includes(account),
          () =>
            `${vm} of ${account} is placed at ${host}, which ${users === undefined ? "is in no pool" : `is ${JSON.stringify(users)}'s`}`,
        );
      const said = (): string => `${vm} of "${offering}" is placed at ${host}, which is ${JSON.stringify(users)}'s`;
      const { offerings, images } = users ?? noUsers;
      if (offerings !== null) verdict.check(offerings.includes(offering), said);
      if (images !== null) verdict.check(images.includes(onlyImage), said);
      for (const [other, there] of known.placed) {
        if (there.host !== host || other === vm || !(isStrict || there.isStrict) || there.by === "root") continue;
        verdict.check(
          accountOf(known, there.by) === account,
          () => `${vm} of ${account} is placed beside ${other} of ${there.by}`,
        );
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
          if (isNews) check(known, vm, { ...asked, host });
          known.placed.set(vm, { ...asked, host });
        }
      },
    });
    return undefined;
  },
};
