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

/**
 * What runs at a host, whichever Placers have placed it: no machine of another account beside one that was asked for strictly, no two of one account's strict
 * anti-affinity group, and nothing starts at a host that is an account's, or in a pool, but what may: by the word that this host has taken. Whose cells are is
 * what the root cell's model says. The cloud's own machines stand anywhere. It knows accounts as owners of hosts alone, and no zones.
 */
export const twoNeverHaveOneHost: Invariant = {
  number: 80,
  title: "two accounts never have a host that one of them has alone",
  watch: ({ kernel, truth, installation }, verdict) => {
    const wishes = new Map<string, Wish>();
    const accounts = new Map<string, string>();
    /** Names of strict anti-affinity groups, of each cell. */
    const apart = new Map<string, { readonly cell: string; readonly name: string }>();
    const whose = new Map<string, Whose>();
    const epochs = new Map<string, number>();
    const accountOf = (cell: string): string => {
      const around = cell.split(".").at(-1) ?? "";
      return accounts.get(around) ?? `of ${around}`;
    };
    const noteRoot = (value: Json): void => {
      const [root] = Object.values(fieldsOf(fieldsOf(value).document));
      for (const [name, each] of Object.entries(fieldsOf(root))) {
        const account = fieldsOf(each)["x.account"];
        if (typeof account === "string") accounts.set(name, account);
      }
    };
    const noteClaim = (host: string, value: Json): void => {
      const { epoch, rule, pooled } = fieldsOf(value);
      if (value === null) whose.delete(host);
      else if (Number(epoch) >= (epochs.get(host) ?? 0)) {
        epochs.set(host, Number(epoch));
        const { path } = fieldsOf(fieldsOf(rule).to);
        const { pool } = fieldsOf(pooled);
        const { enabled, authorised } = fieldsOf(pool);
        const mayUse = enabled === true ? textsOf(authorised) : [];
        whose.set(host, {
          owner: typeof path === "string" ? path : null,
          pool: fieldsOf(pooled).flavor ? mayUse : null,
        });
      }
    };
    const lawful = ({ cell, groups, pool }: Wish, { owner, pool: users }: Whose): boolean => {
      const account = accountOf(cell);
      const isPooled = users === null ? !pool : pool && users.includes(account);
      const asks = groups.filter((name) => name.startsWith(groupPrefix));
      const isGroup = asks.includes(`${groupPrefix}${account.split("/").at(-1)}`);
      return isPooled && (owner === null ? asks.length === 0 : owner === account && isGroup);
    };
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
          for (const effect of effects) if (effect.kind === "write" && effect.key === "model") noteRoot(effect.value);
        if (who.startsWith("placer") && input.kind === "desired") {
          const [kind, uid = ""] = input.key.split("/");
          const { placement, incarnation, name, kind: of } = fieldsOf(input.value);
          const cell = input.from.replace("controller.", "");
          if (kind === "group" && of === "host anti-affinity") apart.set(uid, { cell, name: String(name) });
          else if (kind === "group") apart.delete(uid);
          if (kind !== "placement" || input.value === null) return;
          const asked = fieldsOf(placement);
          const isStrict = asked.dedication === "strict";
          const pool = typeof asked.pool === "string";
          wishes.set(`${uid} ${incarnation}`, { cell, groups: textsOf(asked.groups), isStrict, pool });
        }
        if (!who.startsWith("host.")) return;
        const host = who.slice("host.".length);
        if (input.kind === "desired" && input.key.startsWith("claim/")) noteClaim(host, input.value);
        for (const effect of effects) {
          if (effect.kind !== "log" || effect.event !== "machine/stage" || effect.fields.stage !== "starting") continue;
          const { vm, incarnation } = effect.fields;
          const [wish, claim] = [wishes.get(`${vm} ${incarnation}`), whose.get(host)];
          if (wish === undefined || wish.cell === "root" || claim === undefined) continue;
          verdict.check(
            lawful(wish, claim),
            () => `${vm} of ${accountOf(wish.cell)} starts at ${host}, which is ${JSON.stringify(claim)}`,
          );
        }
      },
    });
    truth.watchers.push({
      machineStarted: (started) => {
        const wish = wishes.get(`${started.vm} ${started.incarnation}`);
        if (wish === undefined || wish.cell === "root" || installation.losses.has(peerName("controller.root"))) return;
        const account = accountOf(wish.cell);
        for (const other of truth.machines) {
          const there = wishes.get(`${other.vm} ${other.incarnation}`);
          if (other === started || other.host !== started.host || there === undefined || there.cell === "root")
            continue;
          const said = (): string =>
            `${started.name} of ${account} runs at ${started.host} beside ${other.name} of ${accountOf(there.cell)}`;
          if (wish.isStrict || there.isStrict) verdict.check(accountOf(there.cell) === account, said);
          const ours = [...apart.values()].filter(({ cell }) => accountOf(cell) === account);
          const both = wish.groups.find(
            (name) => there.groups.includes(name) && ours.some((group) => group.name === name),
          );
          if (wish.groups.length > 0 && accountOf(there.cell) === account && other.vm !== started.vm)
            verdict.check(both === undefined, said);
        }
      },
    });
    return undefined;
  },
};
