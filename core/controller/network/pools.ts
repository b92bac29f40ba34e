import type { Cidr } from "../../../model/cell/identifiers.ts";
import { type ActualPools, poolsKey } from "../../documents/network/network.ts";
import { actualPools } from "../../documents/readers/network.ts";
import { actualOf, addressManager, type ControllerState } from "../state.ts";

export const poolsSaid = (state: ControllerState): ActualPools | undefined =>
  actualOf(actualPools, state, addressManager, poolsKey);

/** With ranges that machines have outside all pools. Null: those of the installation, as nobody declares others; undefined: not known. */
export function poolsInForce(state: ControllerState): readonly Cidr[] | null | undefined {
  const said = poolsSaid(state);
  if (said === undefined) return undefined;
  const all = [...said.external, ...said.kept];
  const isOwn = all.length === 1 && all[0] === said.otherwise && state.cell?.externalPools === undefined;
  return isOwn ? null : all;
}
