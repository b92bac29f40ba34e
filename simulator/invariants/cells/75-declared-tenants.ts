import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Invariant } from "../invariant.ts";

const tenancy = peerName("tenancy");
type Component = { readonly [key: string]: Json };
const isComponent = (json: Json | undefined): json is Component =>
  typeof json === "object" && json !== null && !Array.isArray(json);
const isSame = (one: Json | undefined, other: Json | undefined): boolean =>
  JSON.stringify(one ?? {}) === JSON.stringify(other ?? {});
/** As the store has what others desire. */
const desiredKey = /^in\/[^/]+\/declared\//;

/**
 * No step of the service of users makes another account of one that is declared, by the documents that are durable with it and the one that came with the
 * step: whatever commands ask meanwhile. And when everything is at rest, what the root cell's model declares is so, and what has left it is there unless
 * somebody has had it deleted. Looked at from outside, in what is durable. Accounts right below `ROOT`.
 */
export const declaredTenants: Invariant = {
  number: 75,
  title: "what is declared of accounts is so, and changes only there",
  watch: ({ kernel, installation }, verdict) => {
    /** Names of those that were there, and declared, in what was durable. */
    const wereThere = new Set<string>();
    /** Some command was taken that deletes it. */
    const deleted = new Set<string>();
    const kept = (prefix: RegExp): readonly (readonly [string, Json])[] => {
      const process = [...installation.processes.values()].find(({ name }) => name === tenancy);
      return [...(process?.disk.load() ?? [])].filter(([key]) => prefix.test(key));
    };
    kernel.watchers.push({
      stepped: (who, input, effects) => {
        if (who !== tenancy) return;
        const writes = new Map(
          effects.flatMap((effect) =>
            effect.kind === "write" && effect.key.startsWith("account/") ? [[effect.key, effect.value]] : [],
          ),
        );
        if (writes.size === 0) return;
        const documents = new Map<string, Json>(
          kept(desiredKey).map(([key, value]) => [
            key.slice(key.indexOf("declared/")),
            isComponent(value) ? (value.value ?? null) : null,
          ]),
        );
        const isWord = input.kind === "desired" && input.key.startsWith("declared/");
        if (isWord) documents.set(input.key, input.value);
        const before = new Map(
          kept(/(?:^|\/)account\//).map(([key, value]) => [key.slice(key.indexOf("account/")), value]),
        );
        for (const [key, value] of writes) {
          const former = before.get(key);
          const name = isComponent(value) ? String(value.name) : isComponent(former) ? String(former.name) : "";
          const wasEnding = isComponent(former) && former.deleting === true;
          if (isComponent(value) && value.deleting === true) deleted.add(name);
          const words = [...documents.values()].filter(isComponent).filter(({ path }) => path === `ROOT/${name}`);
          if (words.length !== 1 || wasEnding) continue;
          if (former !== undefined) wereThere.add(name);
          const [word = {}] = words;
          const isSo = isComponent(value) && value.deleting !== true && value.state === word.state;
          verdict.check(
            isSo && isSame(value.limits, word.limits),
            () => `${name} is ${JSON.stringify(value)}, and declared is ${JSON.stringify(word)}`,
          );
        }
      },
    });
    return () => {
      const stored = installation.controllers.get("root")?.disk.load().get("own/model");
      const document = isComponent(stored) ? stored.document : null;
      const [root] = Object.values(isComponent(document) ? document : {}).filter(isComponent);
      const tenants = isComponent(root?.tenants) ? root.tenants : {};
      const accounts = new Map(
        kept(/(?:^|\/)account\//).flatMap(([, value]) => (isComponent(value) ? [[String(value.name), value]] : [])),
      );
      for (const [name, element] of Object.entries(tenants)) {
        if (!isComponent(element) || element["x.type"] !== "Account") continue;
        const account = accounts.get(name);
        verdict.check(
          account !== undefined && account.state === (element["x.state"] ?? "enabled"),
          () => `${name} is declared as ${JSON.stringify(element)}, and is ${JSON.stringify(account)}`,
        );
      }
      // A store that was lost has forgotten what nobody declares.
      if (installation.losses.has(tenancy)) return;
      for (const name of wereThere)
        verdict.check(accounts.has(name) || deleted.has(name), () => `${name} has gone, and nobody has had it deleted`);
    };
  },
};
