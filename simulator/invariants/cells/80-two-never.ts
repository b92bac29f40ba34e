import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Invariant } from "../invariant.ts";

interface Fields {
  readonly [name: string]: Json | undefined;
}
/** What a machine's cell has asked for it, of one incarnation. */
interface Wish {
  readonly cell: string;
  readonly groups: readonly string[];
  readonly isStrict: boolean;
  readonly pool: boolean;
}
/** Whose a host is, by the last word that it has taken. */
interface Whose {
  readonly owner: string | null;
  readonly pool: readonly string[] | null;
}
const fieldsOf = (value: Json | undefined): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
const textsOf = (value: Json | undefined): readonly string[] =>
  (Array.isArray(value) ? value : [value]).filter((text) => typeof text === "string");
const groupPrefix = "DedicatedGrp-";
/** What the operator offers by this name has a host alone, whatever the VM itself asks for. */
const strictOffering = "alone";

/** What was asked for, and what is whose. */
class Known {
  readonly wishes = new Map<string, Wish>();
  readonly accounts = new Map<string, string>();
  /** Names of strict anti-affinity groups, of each cell. */
  readonly apart = new Map<string, { readonly cell: string; readonly name: string }>();
  readonly whose = new Map<string, Whose>();
  readonly epochs = new Map<string, number>();

  accountOf(cell: string): string {
    const around = cell.split(".").at(-1) ?? "";
    return this.accounts.get(around) ?? `of ${around}`;
  }
  noteRoot(value: Json): void {
    const [root] = Object.values(fieldsOf(fieldsOf(value).document));
    for (const [name, each] of Object.entries(fieldsOf(root))) {
      const account = fieldsOf(each)["x.account"];
      if (typeof account === "string") this.accounts.set(name, account);
    }
  }
  noteClaim(host: string, value: Json): void {
    const { epoch, rule, pooled } = fieldsOf(value);
    if (value === null) this.whose.delete(host);
    if (value === null || Number(epoch) < (this.epochs.get(host) ?? 0)) return;
    this.epochs.set(host, Number(epoch));
    const { path } = fieldsOf(fieldsOf(rule).to);
    const { enabled, authorised } = fieldsOf(fieldsOf(pooled).pool);
    const users = enabled === true ? textsOf(authorised) : [];
    const owner = typeof path === "string" ? path : null;
    this.whose.set(host, { owner, pool: fieldsOf(pooled).flavor === undefined ? null : users });
  }
  /** What a controller desires of its Placer. */
  noteDesire(from: string, key: string, value: Json): void {
    const [kind, uid = ""] = key.split("/");
    const { placement, incarnation, name, kind: of } = fieldsOf(value);
    const cell = from.replace("controller.", "");
    if (kind === "group" && of === "host anti-affinity") this.apart.set(uid, { cell, name: String(name) });
    else if (kind === "group") this.apart.delete(uid);
    if (kind !== "placement" || value === null) return;
    const asked = fieldsOf(placement);
    const isStrict = asked.dedication === "strict" || asked.offering === strictOffering;
    const pool = typeof asked.pool === "string";
    this.wishes.set(`${uid} ${incarnation}`, { cell, groups: textsOf(asked.groups), isStrict, pool });
  }
  isLawful({ cell, groups, pool }: Wish, { owner, pool: users }: Whose): boolean {
    const account = this.accountOf(cell);
    const isPooled = users === null ? !pool : pool && users.includes(account);
    const asks = groups.filter((name) => name.startsWith(groupPrefix));
    const isGroup = asks.includes(`${groupPrefix}${account.split("/").at(-1)}`);
    return isPooled && (owner === null ? asks.length === 0 : owner === account && isGroup);
  }
  areApart(one: Wish, other: Wish): boolean {
    const account = this.accountOf(one.cell);
    const ours = [...this.apart.values()].filter(({ cell }) => this.accountOf(cell) === account);
    return one.groups.some((name) => other.groups.includes(name) && ours.some((group) => group.name === name));
  }
}

/**
 * What runs at a host, whichever Placers have placed it: no machine of another account beside one that was asked for strictly, no two of one account's strict
 * anti-affinity group, and nothing starts at a host that is an account's, or in a pool, but what may: by the word that this host has taken. Whose cells are is
 * what the root cell's model says. The cloud's own machines stand anywhere. It knows accounts as owners of hosts alone, and no zones.
 */
export const twoNeverHaveOneHost: Invariant = {
  number: 80,
  title: "two accounts never have a host that one of them has alone",
  watch: ({ kernel, truth, installation }, verdict) => {
    const known = new Known();
    const { wishes, whose, epochs } = known;
    kernel.watchers.push({
      // What is durable is said once more.
      began: (who) => {
        if (who.startsWith("host.")) whose.delete(who.slice("host.".length));
      },
      log: (who, event) => {
        if (event === "store/taken") epochs.delete(who.slice("host.".length));
      },
      stepped: (who, input, effects) => {
        if (who === "controller.root")
          for (const effect of effects)
            if (effect.kind === "write" && effect.key === "model") known.noteRoot(effect.value);
        if (who.startsWith("placer") && input.kind === "desired") known.noteDesire(input.from, input.key, input.value);
        if (!who.startsWith("host.")) return;
        const host = who.slice("host.".length);
        if (input.kind === "desired" && input.key.startsWith("claim/")) known.noteClaim(host, input.value);
        for (const effect of effects) {
          if (effect.kind !== "log" || effect.event !== "machine/stage" || effect.fields.stage !== "starting") continue;
          const { vm, incarnation } = effect.fields;
          const [wish, claim] = [wishes.get(`${vm} ${incarnation}`), whose.get(host)];
          if (wish === undefined || wish.cell === "root" || claim === undefined) continue;
          verdict.check(
            known.isLawful(wish, claim),
            () => `${vm} of ${known.accountOf(wish.cell)} starts at ${host}, which is ${JSON.stringify(claim)}`,
          );
        }
      },
    });
    truth.watchers.push({
      machineStarted: (started) => {
        const wish = wishes.get(`${started.vm} ${started.incarnation}`);
        if (wish === undefined || wish.cell === "root" || installation.losses.has(peerName("controller.root"))) return;
        const account = known.accountOf(wish.cell);
        for (const other of truth.machines) {
          const there = wishes.get(`${other.vm} ${other.incarnation}`);
          if (other.vm === started.vm || other.host !== started.host || there === undefined || there.cell === "root")
            continue;
          const isOurs = known.accountOf(there.cell) === account;
          const said = (): string =>
            `${started.name} of ${account} runs at ${started.host} beside ${other.name} of ${there.cell}`;
          if (wish.isStrict || there.isStrict) verdict.check(isOurs, said);
          if (wish.groups.length > 0 && isOurs) verdict.check(!known.areApart(wish, there), said);
        }
      },
    });
    return undefined;
  },
};
