import type { Cause } from "../../../../model/cause/cause.ts";
import type { VmElement } from "../../../../model/cell/cell.ts";
import type { ElementPath } from "../../../../model/cell/identifiers.ts";
import { type KnownOffering, offeringOf, withOffering } from "../../../../model/cell/tenants/pools/offerings.ts";
import { foreignLink } from "../../references/foreign.ts";
import { bootLink } from "../../services/boot-disks.ts";
import { offersOf } from "../../services/hosts.ts";
import { type ControllerState, placerOf } from "../../state.ts";

/** What an incarnation asks of its host, with what its offering asks for; null: nobody has said of such an offering. */
export function wishesOf(
  state: ControllerState,
  { cpuSpeedMHz, placement }: VmElement,
): Pick<VmElement, "cpuSpeedMHz" | "placement"> | null {
  const name = offeringOf(placement);
  if (name === null) return { cpuSpeedMHz, placement };
  const offering = offeringsSaid(state)?.find((each) => each.name === name);
  return offering === undefined ? null : withOffering({ cpuSpeedMHz, placement }, offering);
}
/** Undefined: its Placer has not been heard, or is of a version before. */
export const offeringsSaid = (state: ControllerState): readonly KnownOffering[] | undefined =>
  offersOf(state)?.offerings;

/** Why it cannot start as what it is offered as; null: it is of no offering, or of one that is there. */
export function whyNoOffering(state: ControllerState, { placement }: VmElement): Cause | null {
  const name = offeringOf(placement);
  const all = offeringsSaid(state);
  if (name === null || all?.some((each) => each.name === name) === true) return null;
  const sentence =
    all === undefined
      ? `it has not said yet what the offering ${name} is, which x.placement.offering names`
      : `there is no offering ${name} any more, which x.placement.offering names`;
  return { kind: "said", by: placerOf(state), sentence };
}

/** Copies of copies: each takes a step. */
const mostSteps = 64;
/** What a VM boots from, by the name of the image or as a volume of another cell; where it asks for a pool. */
export function imageAsked(state: ControllerState, { path, placement }: VmElement): { readonly image?: string } {
  if (placement.pool === undefined || state.cell === null) return {};
  let at: ElementPath | undefined = bootLink(state, path)?.volume;
  for (let step = 0; at !== undefined && step < mostSteps; step += 1) {
    if (foreignLink(at) !== null) return { image: at };
    const volume = state.cell.elements.get(at);
    if (volume?.type === "Volume") return volume.import === undefined ? {} : { image: volume.import };
    at = volume?.type === "VolumeCopy" ? volume.image : undefined;
  }
  return {};
}
