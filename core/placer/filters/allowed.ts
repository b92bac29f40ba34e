import { offeringOf, whyNotAllowed } from "../../../model/cell/tenants/pools/offerings.ts";
import type { Filter } from "../candidate.ts";

/** A host of a pool takes VMs alone of the offerings, and that boot from the images, that the pool's owner has named. */
export const allowed: Filter = ({ pooled }, { placement, image = null }) => {
  const other = whyNotAllowed(pooled?.pool ?? {}, { offering: offeringOf(placement), image });
  return other === null ? null : { kind: "dedicated", ...other };
};
