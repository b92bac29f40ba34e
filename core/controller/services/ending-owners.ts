import type { DedicationElement } from "../../../model/cell/cell.ts";
import type { Owner } from "../../../model/cell/tenants/dedication/dedication.ts";
import type { DesiredLimits } from "../../documents/tenancy.ts";
import type { ControllerState } from "../state.ts";

/** Accounts and domains that are being deleted, as the service `tenancy` says it with what they may have. */
export const endingOwners = ({ accountLimits }: ControllerState): readonly DesiredLimits[] =>
  accountLimits.size === 0 ? [] : [...accountLimits.values()].filter(isEnding);
export const isEnding = ({ kind, ending, domainEnds }: DesiredLimits): boolean =>
  kind === "account" ? ending === true : domainEnds === true;

/** Is something dedicated to that one, and not to another in it? */
export const isOwner = ({ kind, path }: Owner, { to, account }: DedicationElement): boolean =>
  kind === "domain" ? account === undefined && to === path : `${to}/${account ?? ""}` === path;
