import { peerName, type Uid } from "../../../model/cell/identifiers.ts";
import {
  type ImplicitMode,
  type Neighbour,
  preferenceOf,
  type Standing,
  standingOf,
} from "../../../model/cell/tenants/dedication/implicit.ts";
import type { DesiredPlacement } from "../../documents/vocabulary.ts";
import { type Asker, type Filter, type HostUse, implicitOf } from "../candidate.ts";

/** Whose the VMs are that another Placer has there, the host says; of one of a version before nobody knows. */
export function* neighboursOf(
  { reservations, taken }: HostUse,
  vm: Uid,
  { accountOf }: Pick<Asker, "accountOf">,
): Generator<Neighbour> {
  for (const { vm: other, client, implicit = null } of reservations.values())
    if (other !== vm) yield neighbour(accountOf(client), implicit, client === rootController);
  for (const [other, { by, terms }] of taken) {
    if (other === vm || reservations.has(other)) continue;
    const isSystem = by === undefined || by === rootController;
    yield neighbour(by === undefined ? null : accountOf(by), terms?.implicit ?? null, isSystem);
  }
}
const rootController = peerName("controller.root");
const neighbour = (account: string | null, mode: ImplicitMode | null, isSystem: boolean): Neighbour =>
  isSystem ? { account, mode, isSystem } : { account, mode };
/** Does anybody there, or the newcomer, look at whose VMs are there? */
export const isConcerned = (use: HostUse, placement: DesiredPlacement["placement"]): boolean =>
  use.implicit > 0 || implicitOf(placement) !== null;
const standingAt = (use: HostUse, { vm }: DesiredPlacement, asker: Asker): Standing =>
  standingOf(neighboursOf(use, vm, asker), asker.account);

/** The less the better, of hosts that pass. */
export function implicitRank(use: HostUse, request: DesiredPlacement, asker: Asker): number {
  if (asker.isSystem || !isConcerned(use, request.placement)) return 0;
  return preferenceOf(standingAt(use, request, asker), implicitOf(request.placement)) ?? 0;
}
/** The cloud's own VMs go to what somebody holds only where nothing else is left. */
export const isHeld = (use: HostUse, request: DesiredPlacement, asker: Asker): boolean =>
  use.implicit > 0 && standingAt(use, request, asker) === "strangers";

/** A host with a VM that asks for it `strict` takes nobody else's; one that asks for it goes to what is its account's or empty. */
export const implicit: Filter = ({ use }, request, _ratios, asker) => {
  if (asker.isSystem || !isConcerned(use, request.placement)) return null;
  const standing = standingAt(use, request, asker);
  if (preferenceOf(standing, implicitOf(request.placement)) !== null) return null;
  const [kind, join] = ["dedicated", "let one more host join"] as const;
  return standing === "strangers"
    ? { kind, why: "VMs are there that stand beside no other account's", lifts: `${join}, or let these end` }
    : {
        kind,
        why: 'VMs are there beside which one with x.placement.dedication "strict" does not stand',
        lifts: `ask for x.placement.dedication "preferred", or ${join}`,
      };
};
