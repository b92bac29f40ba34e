import type { Uid } from "../../../model/cell/identifiers.ts";
import type { AgentReadersActual } from "../../documents/vocabulary.ts";
import { layerOf, noLease } from "./lease.ts";
import type { AgentState } from "./records.ts";
import { olderServer } from "./sentences.ts";

/** What is said of the read-only export of an origin, key `readers/<uid>`; null: nobody wants one, and there is none. */
export function readersActual(state: AgentState, uid: Uid): AgentReadersActual | null {
  const origin = state.origins.get(uid);
  const failure = state.failures.get(`${uid}/export`) ?? null;
  if (!state.desired.readers.has(uid))
    return origin?.fencing ? { phase: "deleting", reason: failure, layer: null } : null;
  const { older } = state.marks;
  if (older !== null) return { phase: "failed", reason: olderServer(state.options.server, older), layer: null };
  if (origin === undefined)
    return { phase: "waiting", reason: "the volume's file is not there, or not yet", layer: null };
  if ((state.leases.get(uid) ?? noLease).holder !== null)
    return { phase: "waiting", reason: "waits until the writable lease on it is fenced", layer: null };
  if (failure !== null) return { phase: "waiting", reason: failure, layer: null };
  if (origin.access !== null && origin.confirmed && !origin.fencing)
    return { phase: "ready", reason: null, layer: layerOf(state.options, uid, origin.access, false) };
  return { phase: "working", reason: "the export is being started", layer: null };
}
