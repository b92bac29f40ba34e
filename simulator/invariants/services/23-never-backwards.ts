import { peerName } from "../../../model/cell/identifiers.ts";
import type { Invariant } from "../invariant.ts";

/**
 * No destination goes from a newer value to an older one (decision 28). Every value that a source ever gave is numbered;
 * what a destination is given in one life must not fall. A new life may begin with what was durable. A source whose store
 * is older gives anew what that store desires: nothing else is excused by its loss.
 */
export const neverBackwards: Invariant = {
  number: 23,
  title: "no destination goes from a newer value to an older one",
  watch: ({ kernel, installation }, verdict) => {
    const given = new Map<string, Map<string, number[]>>();
    const newest = new Map<string, number>();
    const told = new Map<string, Map<string, number>>();
    const isOlder = new Set<string>();
    const give = (source: string, value: unknown): void => {
      const text = JSON.stringify(value);
      const number = (newest.get(source) ?? 0) + 1;
      newest.set(source, number);
      const values = given.get(source) ?? new Map<string, number[]>();
      given.set(source, values);
      const numbers = values.get(text);
      if (numbers === undefined) values.set(text, [number]);
      else numbers.push(number);
    };
    const take = (who: string, source: string, value: unknown): void => {
      const numbers = value === null ? undefined : given.get(source)?.get(JSON.stringify(value));
      if (numbers === undefined) return;
      const known = told.get(who) ?? new Map<string, number>();
      told.set(who, known);
      const before = known.get(source) ?? 0;
      // The same value may have been given several times: it is taken for the first that it can be.
      const number = numbers.find((each) => each >= before);
      if (number !== undefined) known.set(source, number);
      if (before === 0) return;
      verdict.check(number !== undefined, () => `${who} was given ${source} as it was before what it had been given`);
    };
    kernel.watchers.push({
      began: (who) => {
        told.delete(who);
        if (!isOlder.delete(who)) return;
        const targets = installation.processes.get(peerName(who))?.distribution?.targets;
        for (const [to, { documents }] of targets ?? [])
          for (const [key, { value }] of documents) give(`desire ${who} ${to} ${key}`, value);
      },
      log: (who, event) => {
        if (event === "store/taken") isOlder.add(who);
      },
      stepped: (who, input, effects) => {
        if (input.kind === "desired") take(who, `desire ${input.from} ${who} ${input.key}`, input.value);
        if (input.kind === "actual") take(who, `publish ${input.from} ${input.key}`, input.value);
        for (const effect of effects) {
          if (effect.kind === "desire") give(`desire ${who} ${effect.to} ${effect.key}`, effect.value);
          if (effect.kind === "publish") give(`publish ${who} ${effect.key}`, effect.value);
        }
      },
    });
    return undefined;
  },
};
