import { type Against, mayStandTogether } from "../../../model/cell/tenants/together.ts";
import { type Filter, implicitOf } from "../candidate.ts";
import { dedication, dedicationGroup, strangers } from "./dedication.ts";
import { groups } from "./groups.ts";
import { implicit, isConcerned, neighboursOf } from "./implicit.ts";
import { pool, poolAsked } from "./pool.ts";

/** The sentence for each of what stands against a VM at a host. */
const sentences: Readonly<Record<Against["by"], Filter>> = { pool, dedication, strangers, implicit, group: groups };

/** Who may stand beside whom, at whose host: as the host itself judges it (`model/cell/tenants/together.ts`). */
export const together: Filter = (candidate, request, ratios, asker) => {
  const { actual, use, rule = null, pooled = null, groups: memberships = [] } = candidate;
  const counts = rule !== null || isConcerned(use, request.placement);
  const against = mayStandTogether(
    { host: actual.host, rule, pooled, neighbours: () => (counts ? neighboursOf(use, request.vm, asker) : []) },
    {
      account: asker.account,
      isSystem: asker.isSystem,
      group: dedicationGroup(request, asker),
      mode: implicitOf(request.placement),
      pool: poolAsked(request, candidate.pooled),
      memberships,
    },
  );
  return against === null ? null : sentences[against.by](candidate, request, ratios, asker);
};
