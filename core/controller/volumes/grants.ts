import type { VolumeGrantElement } from "../../../model/cell/cell.ts";
import type { ElementPath, Uid } from "../../../model/cell/identifiers.ts";
import type { DesiredGrant } from "../../documents/vocabulary.ts";
import { foreignElement, foreignLink } from "../references/foreign.ts";
import { type ControllerState, recordAt } from "../state.ts";

/** What a grant says at the Storage Manager; null: its volume, or the VM that it is for, is not there. */
export function grantDocument(
  state: ControllerState,
  uid: Uid,
  { volume: at, to, grant, hold, holder }: VolumeGrantElement,
): DesiredGrant | null {
  const volume = recordAt(state, at);
  const vm = to.kind === "vm" ? grantedVm(state, to.vm) : null;
  if (volume === undefined) return null;
  const common = {
    uid,
    volume: volume.uid,
    grant,
    ...(hold === undefined ? {} : { hold }),
    ...(holder === undefined ? {} : { holder }),
  };
  if (to.kind === "cell") return { ...common, to: { domain: to.domain } };
  if (to.kind === "account") return { ...common, to: { account: to.path } };
  if (to.kind === "tenants") return { ...common, to: { tenants: to.path } };
  return vm === null ? null : { ...common, to: { vm } };
}

/** A VM of this cell, or one of another cell that is visible. */
function grantedVm(state: ControllerState, link: ElementPath): Uid | null {
  const want = foreignLink(link);
  if (want === null) return recordAt(state, link)?.uid ?? null;
  const found = foreignElement(state, want);
  return found?.shows.kind === "addresses" && found.shows.type === "VM" ? found.uid : null;
}
