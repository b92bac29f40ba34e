/** Where somebody is in the page, as the address says it. */
export const pages = [
  "overview",
  "cells",
  "machines",
  "specification",
  "versions",
  "network",
  "timeline",
  "availability",
  "placement",
  "dedication",
  "pools",
  "storage",
  "people",
] as const;
export type PageName = (typeof pages)[number];
export type Place =
  | { readonly page: PageName; readonly cell: string | null }
  | { readonly page: "unknown"; readonly path: string };
/** Where a link leads: without a cell to the page for all of them. */
export interface Target {
  readonly page: PageName;
  readonly cell?: string | null;
}

export const titles: Readonly<Record<PageName, string>> = {
  overview: "Overview",
  cells: "Cells",
  machines: "Machines",
  specification: "Specification",
  versions: "Versions",
  network: "Network",
  timeline: "Time line",
  availability: "Availability",
  placement: "Placement",
  dedication: "Dedication",
  pools: "Pools",
  storage: "Storage",
  people: "People",
};
/** The key that leads there. */
export const pageKeys: Readonly<Record<PageName, string>> = {
  overview: "o",
  cells: "c",
  machines: "m",
  specification: "s",
  versions: "v",
  network: "n",
  timeline: "e",
  availability: "a",
  placement: "l",
  dedication: "d",
  pools: "p",
  storage: "t",
  people: "u",
};
/**
 * Those that are for who looks: the operator alone has hosts, high availability and images, and a cell's credential that cell alone.
 * @param volumes there are persistent ones
 */
export function pagesFor(kind: "operator" | "user" | "cell", volumes = false): readonly PageName[] {
  const operators: readonly PageName[] = ["availability", "placement", ...(volumes ? [] : (["storage"] as const))];
  const left = {
    operator: [],
    user: operators,
    cell: [...operators, "dedication", "pools", "storage", "people"],
  } as const satisfies Readonly<Record<string, readonly PageName[]>>;
  return pages.filter((page) => !left[kind].some((each) => each === page));
}

export function placeOf(path: string, query = ""): Place {
  const [, root, page = "", ...rest] = path.split("/");
  const cell = new URLSearchParams(query).get("cell");
  if (root !== "ui" || rest.some((part) => part !== "")) return { page: "unknown", path };
  if (page === "") return { page: "overview", cell: null };
  const known = pages.find((each) => each === page && each !== "overview");
  return known === undefined ? { page: "unknown", path } : { page: known, cell };
}
export function addressOf({ page, cell = null }: Target): string {
  if (page === "overview") return "/ui/";
  return `/ui/${page}${cell === null ? "" : `?${new URLSearchParams({ cell })}`}`;
}
