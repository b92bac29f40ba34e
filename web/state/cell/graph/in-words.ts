import type { Edge } from "./graph.ts";

export const edgeNames: Readonly<Record<Edge["kind"], string>> = { rule: "Rule", link: "Link", grant: "Grant" };

/** `from shop/web to bank/vault of bank.cells.internal`. */
export function endsOf({ from, to, there }: Pick<Edge, "from" | "to" | "there">): string {
  const shown = (end: string): string => {
    if (!end.startsWith("//")) return end;
    const domain = end.slice("//".length);
    return there === null || there === "" ? domain : `${there} of ${domain}`;
  };
  return `from ${shown(from)} to ${shown(to)}`;
}
