import type { Cell, PoolHostElement } from "../../../../model/cell/cell.ts";
import type { ElementPath, Uid } from "../../../../model/cell/identifiers.ts";
import { type PoolAsked, type PoolHostAsked, type PoolHostGiven, poolHostWaits } from "../../../documents/pools.ts";
import { asSaid, standing } from "../../changes/standing.ts";
import type { ElementRecord, Standing } from "../../records.ts";
import { type ControllerState, cellManager, recordAt } from "../../state.ts";
import { wishesOf } from "./given.ts";

/* Pools in the cell that has them: what is asked of its parent, and what it says of each host that is asked for. */

/** May this cell have pools? Only where the root controller hears of them. */
export const hasPools = ({ options: { cell, child } }: ControllerState): boolean =>
  child === true && !cell.includes(".");

/** What the parent is asked for; undefined: nothing is known of pools here. */
export function poolsAsked(state: ControllerState): readonly PoolAsked[] | undefined {
  if (!hasPools(state)) return undefined;
  const elements = state.cell === null ? [] : poolHostsIn(state.cell);
  if (elements.length === 0 && (state.life?.pools ?? []).length === 0) return undefined;
  const hosts = elements.flatMap((element): readonly (readonly [ElementPath, PoolHostAsked])[] => {
    const record = recordAt(state, element.path);
    if (record === undefined) return [];
    const { flavor, zone, enabled, pool } = element;
    return [
      [pool, { uid: record.uid, name: nameOf(element), flavor, enabled, ...(zone === undefined ? {} : { zone }) }],
    ];
  });
  return [...Map.groupBy(hosts, ([pool]) => pool)].flatMap(([path, all]): readonly PoolAsked[] => {
    const [record, element] = [recordAt(state, path), state.cell?.elements.get(path)];
    if (record === undefined || element?.type !== "Pool") return [];
    const { authorised } = element;
    return [
      {
        uid: record.uid,
        path,
        hosts: all.map(([, host]) => host),
        ...wishesOf(element),
        ...(authorised === undefined ? {} : { authorised }),
      },
    ];
  });
}
const poolHosts = new WeakMap<Cell, readonly PoolHostElement[]>();
function poolHostsIn(cell: Cell): readonly PoolHostElement[] {
  const known = poolHosts.get(cell);
  if (known !== undefined) return known;
  const found = [...cell.elements.values()].flatMap((element) => (element.type === "PoolHost" ? [element] : []));
  poolHosts.set(cell, found);
  return found;
}
export const nameOf = ({ path }: PoolHostElement): string => path.split("/").at(-1) ?? path;

export const givenOf = ({ life }: ControllerState, uid: Uid): PoolHostGiven | undefined =>
  life?.pools?.find((each) => each.uid === uid);

export function poolHostState(state: ControllerState, { uid }: ElementRecord): Standing {
  const given = givenOf(state, uid);
  if (given === undefined) return asSaid(cellManager, { phase: "waiting", reason: poolHostWaits });
  return given.reason === null ? standing("ready") : asSaid(cellManager, { phase: "waiting", reason: given.reason });
}
/** Nobody has it any more, so that its name is free. */
export const poolHostIsGone = (state: ControllerState, uid: Uid): boolean =>
  !hasPools(state) || (state.life !== null && givenOf(state, uid) === undefined);
/** UIDs of all VMs that stand at a host of a pool, whosever they are. */
export const vmsInPool = (state: ControllerState, uid: Uid): readonly Uid[] => givenOf(state, uid)?.vms ?? [];
