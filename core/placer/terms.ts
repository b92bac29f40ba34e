import { type HostName, type PeerName, peerName, type Uid } from "../../model/cell/identifiers.ts";
import { reservedGroupName } from "../../model/cell/tenants/affinity/affinity.ts";
import type { PlacedGroup, PlacedTerms } from "../documents/pools.ts";
import type { DesiredPlacement } from "../documents/vocabulary.ts";
import { groupsOf, implicitOf, type Reservation } from "./candidate.ts";
import { poolAsked } from "./filters/pool.ts";
import { askerOf } from "./owners.ts";
import type { PlacerState } from "./state.ts";

/** By what a VM is placed at a host, as the host will judge it once more. */
export function termsOf(
  state: PlacerState,
  client: PeerName,
  document: DesiredPlacement,
  host: HostName,
): Pick<Reservation, "terms"> {
  const { rule, pooled } = state.hosts.get(peerName(`host.${host}`)) ?? {};
  const asker = askerOf(state, client);
  const implicit = implicitOf(document.placement);
  const groups = [...new Set(groupsOf(document.placement))].flatMap((name): readonly PlacedGroup[] => {
    const kind = reservedGroupName.test(name) ? null : asker.groupNamed(name);
    return kind === null || typeof kind === "string" ? [{ name, kind }] : [];
  });
  const pool = poolAsked(document, pooled);
  const epochs = [rule?.epoch, pooled?.epoch].filter((epoch) => epoch !== undefined);
  const terms: PlacedTerms = {
    ...(implicit === null ? {} : { implicit }),
    ...(groups.length === 0 ? {} : { groups }),
    ...(pool === null ? {} : { pool: pool as Uid }),
    ...(asker.account === null ? {} : { owned: true }),
    ...(epochs.length === 0 ? {} : { claim: Math.max(...epochs) }),
  };
  return { terms: shared(state, terms) };
}

/** Of hundreds of thousands of VMs most have one of few. */
function shared({ index: { terms: known } }: PlacerState, terms: PlacedTerms): PlacedTerms {
  const text = JSON.stringify(terms);
  const same = known.get(text);
  if (same !== undefined) return same;
  if (known.size >= mostShared) known.clear();
  known.set(text, terms);
  return terms;
}
const mostShared = 4096;
