import type { InstallationStatus } from "../../../model/api.ts";
import {
  type DedicationRefused,
  dedicate,
  type Guest,
  type Level,
  type Owner,
  upFrom,
} from "../../../model/cell/tenants/dedication/dedication.ts";
import type { Written } from "../../../model/cell/tenants/dedication/written.ts";

/** One line for each place: a cluster stands below its pod, a host below its cluster. */
export interface PlaceLine {
  readonly place: string;
  readonly level: Level;
  /** How deep it stands. */
  readonly depth: number;
  readonly owner: Owner | null;
  /** Whose it is for what it stands in; null: for nothing. */
  readonly above: { readonly place: string; readonly owner: Owner } | null;
}
export function linesOf({ tree, dedications }: Written): readonly PlaceLine[] {
  const inside = Map.groupBy([...tree], ([, { above }]) => (above !== null && tree.has(above) ? above : null));
  const order = new Intl.Collator("en", { numeric: true });
  const from = (above: string | null, depth: number): readonly PlaceLine[] =>
    [...(inside.get(above) ?? [])]
      .sort(([one], [other]) => order.compare(one, other))
      .flatMap(([place, { level }]) => {
        const upper = [...upFrom(tree, place)].slice(1).find((each) => dedications.has(each));
        const owner = upper === undefined ? undefined : dedications.get(upper);
        const own = {
          place,
          level,
          depth,
          owner: dedications.get(place) ?? null,
          above: upper === undefined || owner === undefined ? null : { place: upper, owner },
        };
        return [own, ...from(place, depth + 1)];
      });
  return from(null, 0);
}

/** VMs of accounts at hosts, as far as hosts say what runs there; those of the management are nobody's. */
export function guestsOf({ accounts }: Written, status: InstallationStatus | null): readonly Guest[] {
  return (status?.hosts ?? []).flatMap(({ host, machines = [] }) =>
    machines
      .filter(({ cell }) => cell !== "root")
      .map(({ cell, path }) => ({
        host,
        vm: [cell, ...path.split("/").slice(1)].join("/"),
        account: accounts.get(cell.slice(cell.lastIndexOf(".") + 1)) ?? "ROOT/operator",
      })),
  );
}

/** What would come of it, before anybody says it. */
export type Foreseen =
  | { readonly isAllowed: true; readonly released: readonly string[] }
  | { readonly isAllowed: false; readonly refused: DedicationRefused };
export function foreseen({ tree, dedications }: Written, place: string, to: Owner, guests: readonly Guest[]): Foreseen {
  const outcome = dedicate(tree, dedications, place, to, guests);
  return outcome.ok ? { isAllowed: true, released: outcome.released } : { isAllowed: false, refused: outcome.refused };
}
