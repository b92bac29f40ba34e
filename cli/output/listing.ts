import type { ElementState } from "../../model/api.ts";
import { printable } from "../../model/diagnostics/render-diagnostic.ts";
import { fail, ok, type Result } from "../../model/result.ts";

/** Rows of `cells list`: which, in which order, and what of each is shown. Pure; what is asked for is read before anything is fetched. */

/** An element with its cell. */
export interface Row {
  /** With the cell's name in front, as commands take it. */
  readonly path: string;
  readonly cell: string;
  readonly type: string;
  readonly state: ElementState;
  /** Of a VM, those of its interfaces. */
  readonly addresses?: readonly string[];
}

const text = (value: string | number | null | undefined): string => (value == null ? "" : printable(String(value)));
/** What a column shows of a row; empty where that says nothing. */
const columns = {
  path: ({ path }: Row) => path,
  cell: ({ cell }: Row) => cell,
  type: ({ type }: Row) => type,
  phase: ({ state }: Row) => state.phase,
  power: ({ state }: Row) => text(state.power),
  health: ({ state }: Row) => text(state.health),
  reachability: ({ state }: Row) => text(state.reachability),
  host: ({ state }: Row) => text(state.host),
  address: ({ state, addresses = [] }: Row) => text(state.address ?? state.cidr ?? addresses.join(" ")),
  public: ({ state }: Row) => text(state.publicAddress),
  mac: ({ state }: Row) => text(state.mac),
  name: ({ state }: Row) => text(state.name),
  server: ({ state }: Row) => text(state.server),
  size: ({ state }: Row) => text(state.sizeMiB),
  incarnation: ({ state }: Row) => text(state.incarnation === 0 ? null : state.incarnation),
  reboots: ({ state }: Row) => text(state.reboots),
  since: ({ state }: Row) => state.since,
  uid: ({ state }: Row) => state.uid,
  reason: ({ state }: Row) => text(state.reason),
} as const satisfies Record<string, (row: Row) => string>;
export type Column = keyof typeof columns;
export const columnNames = Object.keys(columns) as readonly Column[];
export const cellOf = (row: Row, column: Column): string => columns[column](row);

interface Filter {
  readonly column: Column;
  readonly isWanted: boolean;
  readonly patterns: readonly RegExp[];
}
export interface Listing {
  readonly filters: readonly Filter[];
  readonly columns: readonly Column[];
  readonly order: readonly { readonly column: Column; readonly isDescending: boolean }[];
}

const columnOf = (word: string): Result<Column, string> => {
  const found = columnNames.find((name) => name === word);
  return found === undefined ? fail(`there is no column \`${word}\`; there are ${columnNames.join(", ")}`) : ok(found);
};
/** `*` stands for any text, also none. */
const patternOf = (word: string): RegExp =>
  new RegExp(`^${word.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replace(/\*+/g, ".*")}$`, "is");

const filterOf = (word: string): Result<Filter, string> => {
  const [, name, sign, values] = /^([a-z]+)(!?=)(.*)$/s.exec(word) ?? [];
  if (name === undefined || values === undefined)
    return fail(
      `\`${word}\` is no filter: write COLUMN=VALUE or COLUMN!=VALUE, for example phase=waiting,failed or host=h*`,
    );
  const column = columnOf(name);
  if (!column.ok) return column;
  return ok({ column: column.value, isWanted: sign === "=", patterns: values.split(",").map(patternOf) });
};

const all = <T>(results: readonly Result<T, string>[]): Result<readonly T[], string> => {
  const values: T[] = [];
  for (const result of results) {
    if (!result.ok) return result;
    values.push(result.value);
  }
  return ok(values);
};

export interface Asked {
  readonly filters: readonly string[];
  /** Names with commas in between. */
  readonly columns: string;
  /** As `columns`; `-` in front turns one round. */
  readonly sort: string;
}
export const listingOf = (asked: Asked): Result<Listing, string> => {
  const filters = all(asked.filters.map(filterOf));
  if (!filters.ok) return filters;
  const shown = all(asked.columns.split(",").map(columnOf));
  if (!shown.ok) return shown;
  const order = all(
    asked.sort.split(",").map((word): Result<Listing["order"][number], string> => {
      const isDescending = word.startsWith("-");
      const column = columnOf(isDescending ? word.slice(1) : word);
      return column.ok ? ok({ column: column.value, isDescending }) : column;
    }),
  );
  return order.ok ? ok({ filters: filters.value, columns: shown.value, order: order.value }) : order;
};

/** Numbers in texts count as numbers: h2 comes before h10. */
const collator = new Intl.Collator("en", { numeric: true });

/** Rows that pass all filters, in their order; what is empty comes last, whichever way round. */
export const listed = (rows: readonly Row[], { filters, order }: Listing): readonly Row[] =>
  rows
    .filter((row) =>
      filters.every(({ column, isWanted, patterns }) => {
        const value = cellOf(row, column);
        return patterns.some((pattern) => pattern.test(value)) === isWanted;
      }),
    )
    .sort((one, other) => {
      for (const { column, isDescending } of order) {
        const [left, right] = [cellOf(one, column), cellOf(other, column)];
        if (left === right) continue;
        if (left === "" || right === "") return left === "" ? 1 : -1;
        const compared = collator.compare(left, right);
        if (compared !== 0) return isDescending ? -compared : compared;
      }
      return 0;
    });

const csvCell = (value: string): string => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
/** With a line of the columns' names first (RFC 4180). */
export const csvOf = (rows: readonly Row[], shown: readonly Column[]): string =>
  [shown, ...rows.map((row) => shown.map((column) => cellOf(row, column)))]
    .map((line) => `${line.map(csvCell).join(",")}\r\n`)
    .join("");
