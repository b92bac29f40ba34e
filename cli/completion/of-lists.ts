import { elementTypes } from "../../model/cell/schema.ts";
import { columnNames } from "../output/listing.ts";
import type { Candidate, Kind } from "./candidates.ts";

/* What may stand in `--columns`, `--sort` and `--filter` of `cells list`. */

/** What is typed, taken apart at its last comma. */
const apart = (typed: string): readonly [before: string, last: string] => {
  const at = typed.lastIndexOf(",") + 1;
  return [typed.slice(0, at), typed.slice(at)];
};
const among = (values: readonly string[], before: string, last: string): readonly Candidate[] =>
  values.filter((each) => each.startsWith(last)).map((each) => ({ value: `${before}${each}`, what: "" }));

/** Those that are not named yet. */
export function columnsAfter(typed: string, isSort: boolean): readonly Candidate[] {
  const [before, last] = apart(typed);
  const [, turned = "", begun = last] = (isSort ? /^(-?)(.*)$/.exec(last) : null) ?? [];
  const named = new Set(before.split(",").map((each) => each.replace(/^-/, "")));
  return among(
    columnNames.filter((each) => !named.has(each)),
    `${before}${turned}`,
    begun,
  );
}

/** Of columns that have few values, which: `core/controller/explain/` says them. */
const values: Readonly<Record<string, readonly string[]>> = {
  type: elementTypes,
  phase: ["waiting", "working", "ready", "failed", "deleting"],
  power: ["on", "off"],
  health: ["starting", "answering", "silent"],
  reachability: ["ok", "impaired", "insufficient-data"],
};
const kinds: Readonly<Record<string, Kind>> = { cell: "cell", host: "host" };
export interface FilterOffer {
  readonly candidates: readonly Candidate[];
  /** Names of this kind may stand behind `before`. */
  readonly wanted: { readonly kind: Kind; readonly before: string; readonly typed: string } | null;
}
/** `COLUMN=VALUE,VALUE` or `COLUMN!=VALUE`. */
export function filterAfter(typed: string): FilterOffer {
  const [, column, sign, rest] = /^([a-z]+)(!?=)(.*)$/s.exec(typed) ?? [];
  if (column === undefined || sign === undefined || rest === undefined)
    return {
      candidates: among(
        columnNames.map((each) => `${each}=`),
        "",
        typed,
      ),
      wanted: null,
    };
  const [before, last] = apart(rest);
  const front = `${column}${sign}${before}`;
  const named = before.split(",");
  const some = (Object.hasOwn(values, column) ? values[column] : undefined) ?? [];
  const kind = Object.hasOwn(kinds, column) ? kinds[column] : undefined;
  return {
    candidates: among(
      some.filter((each) => !named.includes(each)),
      front,
      last,
    ),
    wanted: kind === undefined ? null : { kind, before: front, typed: last },
  };
}
