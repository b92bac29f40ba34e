import { standingOf } from "../../../model/cell/tenants/dedication/implicit.ts";
import {
  asksForTags,
  type MarkWish,
  mayStandTagged,
  missingMark,
} from "../../../model/cell/tenants/dedication/marks.ts";
import { type Filter, implicitOf } from "../candidate.ts";
import { dedicationGroup } from "./dedication.ts";
import { neighboursOf } from "./implicit.ts";

const what: Readonly<Record<MarkWish, string>> = {
  zone: "a host of the zone",
  pod: "a host of the pod",
  cluster: "a host of the cluster",
  tags: "a host with the tag",
  properties: "a host with",
};

/** A host has the place, the tags and the properties that a VM asks for. The cloud's own ask for nothing. */
export const marks: Filter = ({ marks: there }, request, _ratios, { isSystem }) => {
  const missing = isSystem ? null : missingMark(there, request.placement);
  if (missing === null) return null;
  const { wish, of } = missing;
  return {
    kind: "pinned",
    why: `x.placement.${wish} asks for ${what[wish]} ${of}, and it is none`,
    lifts: `leave ${wish === "properties" || wish === "tags" ? `${of} out of` : "out"} x.placement.${wish}, or ask for what there is`,
  };
};

/** A VM that asks for tags stands at what is its own by dedication, or at what is nobody's, and at nothing in between. */
export const tagged: Filter = ({ rule, use }, request, _ratios, asker) => {
  const { placement, vm } = request;
  if (asker.isSystem || !asksForTags(placement)) return null;
  const mode = implicitOf(placement);
  const standing = standingOf(neighboursOf(use, vm, asker), asker.account);
  const isExplicit = dedicationGroup(request, asker) !== null;
  if (mayStandTagged({ isDedicated: rule !== undefined, isExplicit, isImplicit: mode !== null, standing })) return null;
  return {
    kind: "dedicated",
    why:
      mode === null
        ? "x.placement.tags asks for a host that is nobody's, and it is held by a dedication of its account"
        : "x.placement.tags and x.placement.dedication ask for a host that is empty or its account's alone, and it is neither",
    lifts: mode === null ? "ask for it by x.placement.groups or x.placement.dedication" : "leave one of the two out",
  };
};
