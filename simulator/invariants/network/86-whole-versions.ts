import { isObject } from "../../../core/outbox.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Invariant } from "../invariant.ts";

/**
 * The rules of a cell at a host are those of one version that its controller made, whole, whatever of it came when: in slices,
 * each rule with an end there and no other. Which rules a version has is taken from its controller's store.
 */
export const wholeVersions: Invariant = {
  number: 86,
  title: "the rules at a host are those of one version, whole, of the identities that live there and no others",
  watch: ({ kernel, truth }, verdict) => {
    /** `<cell> <version>`: the rules of each that had this number; a store that was put back gives it again. */
    const made = new Map<string, Json[][]>();
    kernel.watchers.push({
      stepped: (who, _input, effects) => {
        if (!who.startsWith("controller.")) return;
        for (const effect of effects) {
          if (effect.kind !== "write" || effect.key !== "policy" || !isObject(effect.value)) continue;
          const { version, compiled } = effect.value;
          if (!isObject(compiled) || !Array.isArray(compiled.rules)) continue;
          const name = `${who.slice("controller.".length)} ${version}`;
          const known = made.get(name) ?? [];
          made.set(name, [...known, compiled.rules as Json[]]);
        }
      },
    });
    truth.watchers.push({
      rulesSet: (host, policies) => {
        for (const { cell, version, rules, identities } of policies) {
          const isHere = (rule: Json): boolean =>
            identities === undefined ||
            (isObject(rule) && (identities.includes(Number(rule.from)) || identities.includes(Number(rule.to))));
          const text = JSON.stringify(rules);
          const versions = made.get(`${cell} ${version}`) ?? [];
          verdict.check(
            versions.some((all) => JSON.stringify(all.filter(isHere)) === text),
            () => `${host} has ${rules.length} rules of ${cell} as version ${version}, which are not those of it`,
          );
        }
      },
    });
    return undefined;
  },
};
