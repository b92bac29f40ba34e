/** Where somebody is in the page, as the address says it. */
export const pages = [
  "overview",
  "cells",
  "machines",
  "specification",
  "versions",
  "network",
  "availability",
  "placement",
  "dedication",
  "pools",
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
  availability: "Availability",
  placement: "Placement",
  dedication: "Dedication",
  pools: "Pools",
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
  availability: "a",
  placement: "l",
  dedication: "d",
  pools: "p",
  people: "u",
};
/** Those that are for who looks: the operator alone has hosts and high availability, and a cell's credential that cell alone. */
export function pagesFor(kind: "operator" | "user" | "cell"): readonly PageName[] {
  const operators: readonly PageName[] = ["availability", "placement"];
  const left = kind === "operator" ? [] : kind === "user" ? operators : [...operators, "dedication", "pools", "people"];
  return pages.filter((page) => !left.includes(page));
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
