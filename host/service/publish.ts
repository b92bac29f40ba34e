import { networkKey } from "../../core/documents/network/eucalyptus.ts";
import type { Effect } from "../../core/env.ts";
import type { Json } from "../../model/json/json.ts";
import type { HostState } from "../known.ts";
import { probesSaid } from "../network/neighbours.ts";
import { networkSaid } from "../network/network-view.ts";
import { hostSays } from "../network/routers.ts";
import { foundOf, type HostManagerOptions, wantedOf } from "./host-state.ts";
import { audiencesOf, publications, sameAudiences } from "./publications.ts";

/** Says what is so, where it is not what was said last. */
export const publish = (state: HostState, options: HostManagerOptions, effects: Effect[]): void => {
  const [wanted, found] = [wantedOf(state), foundOf(state, options)];
  const audiences = audiencesOf(wanted, found);
  if (!sameAudiences(audiences, state.audiences)) state.audiences = audiences;
  const own = publications(wanted, found, hostSays(state, options.host), state.troubles, state.groups);
  const values = new Map<string, Json>([...own, ...probesSaid(state)]);
  const network = networkSaid(state.network, options.host.address);
  if (network !== null) values.set(networkKey, network as unknown as Json);
  for (const [key, value] of values) {
    const text = JSON.stringify(value);
    if (state.published.get(key) === text) continue;
    state.published.set(key, text);
    effects.push({ kind: "publish", key, value });
  }
  for (const key of state.published.keys()) {
    if (values.has(key)) continue;
    state.published.delete(key);
    effects.push({ kind: "publish", key, value: null });
  }
};
