import type { Filter } from "../candidate.ts";

/** A VM whose cell has a mode of Eucalyptus stands at hosts that offer this one. Diverter's stand everywhere. */
export const networkMode: Filter = ({ actual }, request) => {
  const { networkMode: mode } = request;
  if (mode === undefined || actual.networkMode === mode) return null;
  const offers = actual.networkMode === undefined ? "Diverter alone" : `the mode ${actual.networkMode} beside Diverter`;
  return {
    kind: "pinned",
    why: `x.networkMode asks for a host of the mode ${mode}, and it offers ${offers}`,
    lifts:
      "set a network configuration of that mode, with this host in one of its clusters, or leave out x.networkMode",
  };
};
