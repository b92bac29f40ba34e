import type { InstallationStatus } from "../../model/api.ts";
import type { Element } from "./known.ts";

/** Rows of the list of machines: which are shown, and in which order. */
export interface Machine {
  readonly cell: string;
  readonly path: string;
  readonly phase: string;
  /** A sentence; null: it is ready. */
  readonly reason: string | null;
  /** Where it is, or was last; null: nowhere. */
  readonly host: string | null;
  /** CPUs in use; null: not known. */
  readonly load: number | null;
  readonly memoryMiB: number | null;
  /** How often it was started so far; null: never. */
  readonly incarnation: number | null;
}
export const columns = ["path", "phase", "host", "load", "memoryMiB"] as const;
export type Column = (typeof columns)[number];
export interface View {
  /** In a path, a host or a reason; small and capital letters are the same. */
  readonly text: string;
  /** "": any. */
  readonly phase: string;
  readonly cell: string | null;
  readonly by: Column;
  readonly descending: boolean;
}
export const firstView: View = { text: "", phase: "", cell: null, by: "path", descending: false };

/** @param status null: it is not for who looks, so nothing is known of loads */
export function machinesOf(elements: readonly Element[], status: InstallationStatus | null): readonly Machine[] {
  const running = new Map(
    (status?.hosts ?? []).flatMap(({ host, machines = [] }) =>
      machines.map((machine) => [`${machine.cell} ${machine.path}`, { ...machine, host }] as const),
    ),
  );
  return elements
    .filter(({ type }) => type === "VM")
    .map(({ cell, path, state: { phase, reason, host = null, incarnation = 0 } }) => {
      const found = running.get(`${cell} ${path}`);
      return {
        cell,
        path,
        phase,
        reason,
        host: host ?? found?.host ?? null,
        load: found?.load ?? null,
        memoryMiB: found?.memoryMiB ?? null,
        incarnation: incarnation === 0 ? null : incarnation,
      };
    });
}

/** Those that are shown, in their order: what is equal stays in the order of paths. */
export function viewed(machines: readonly Machine[], { text, phase, cell, by, descending }: View): readonly Machine[] {
  const wanted = text.trim().toLowerCase();
  const has = (machine: Machine): boolean =>
    wanted === "" || `${machine.path} ${machine.host ?? ""} ${machine.reason ?? ""}`.toLowerCase().includes(wanted);
  const shown = machines.filter(
    (machine) => (cell === null || machine.cell === cell) && (phase === "" || machine.phase === phase) && has(machine),
  );
  const order = (one: Machine, other: Machine): number =>
    compare(one[by], other[by]) * (descending ? -1 : 1) || compare(one.path, other.path);
  return shown.sort(order);
}
const numbered = new Intl.Collator("en", { numeric: true });
/** What is not known comes last. */
function compare(one: string | number | null, other: string | number | null): number {
  if (one === null || other === null) return (one === null ? 1 : 0) - (other === null ? 1 : 0);
  return typeof one === "number" && typeof other === "number"
    ? one - other
    : numbered.compare(String(one), String(other));
}
/** The same column again turns the order. */
export const sortedBy = (view: View, by: Column): View => ({
  ...view,
  by,
  descending: view.by === by && !view.descending,
});

/** Which rows of a long list are drawn: those that can be seen, and a few around them. */
export function windowOf(
  count: number,
  { topPx, heightPx, rowPx }: { readonly topPx: number; readonly heightPx: number; readonly rowPx: number },
): { readonly first: number; readonly last: number } {
  const around = 8;
  const most = 64;
  const first = Math.max(0, Math.min(Math.floor(topPx / rowPx) - around, count - 1));
  return { first, last: Math.min(count, first + Math.min(most, Math.ceil(heightPx / rowPx) + 2 * around)) };
}
