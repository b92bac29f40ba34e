/** Where somebody is in the page, as the address says it. */
export type Place =
  | { readonly page: "overview" }
  | { readonly page: "machines"; readonly cell: string | null }
  | { readonly page: "specification"; readonly cell: string | null }
  | { readonly page: "unknown"; readonly path: string };

export function placeOf(path: string, query = ""): Place {
  const [, root, page = "", ...rest] = path.split("/");
  const cell = new URLSearchParams(query).get("cell");
  if (root !== "ui" || rest.some((part) => part !== "")) return { page: "unknown", path };
  if (page === "") return { page: "overview" };
  if (page === "machines" || page === "specification") return { page, cell };
  return { page: "unknown", path };
}
export function addressOf(place: Exclude<Place, { readonly page: "unknown" }>): string {
  if (place.page === "overview") return "/ui/";
  const query = place.cell === null ? "" : `?${new URLSearchParams({ cell: place.cell })}`;
  return `/ui/${place.page}${query}`;
}
