import type { DedicationElement } from "../../../model/cell/cell.ts";
import { isSameOwner, type Owner, ownerIn } from "../../../model/cell/tenants/dedication/dedication.ts";
import type { DesiredLimits } from "../../documents/tenancy.ts";
import type { ControllerState } from "../state.ts";

/** Accounts and domains that are being deleted, as the service `tenancy` says it with what they may have. */
export const endingOwners = ({ accountLimits }: ControllerState): readonly DesiredLimits[] =>
  accountLimits.size === 0 ? [] : [...accountLimits.values()].filter(isEnding);
export const isEnding = ({ kind, ending, domainEnds }: DesiredLimits): boolean =>
  kind === "account" ? ending === true : domainEnds === true;

/** Is something dedicated to that one, and not to another in it? */
export const isOwner = (owner: Owner, { to, account }: DedicationElement): boolean =>
  isSameOwner(owner, ownerIn(to, account));
