import type { Uid } from "../../../model/cell/identifiers.ts";
import type { AgentLeaseActual } from "../../documents/vocabulary.ts";
import { type LeaseCircumstances, layerOf, noLease, refusal } from "./lease.ts";
import type { AgentState } from "./records.ts";
import { heldBackReason } from "./reserve.ts";
import { olderServer } from "./sentences.ts";

/** What is said of a volume's lease, key `lease/<uid>`. */
export function leaseActual(state: AgentState, uid: Uid, circumstances: LeaseCircumstances): AgentLeaseActual {
  const desired = state.desired.lease.get(uid);
  const lease = state.leases.get(uid) ?? noLease;
  const { epoch, holder, access, confirmed: listens, fencing } = lease;
  const refused = desired === undefined ? null : refusal(lease, desired, circumstances);
  const failure = state.failures.get(`${uid}/export`) ?? null;
  const { older } = state.marks;
  const told = { epoch, holder, layer: null };
  if (older !== null) return { phase: "failed", reason: olderServer(state.options.server, older), ...told };
  if (fencing) return { phase: "working", reason: failure ?? `epoch ${epoch} is being fenced`, ...told };
  const heldBack = holder === null ? null : heldBackReason(state, uid);
  if (heldBack !== null) return { phase: "waiting", reason: heldBack, ...told };
  if (holder !== null && failure !== null) return { phase: "waiting", reason: failure, ...told };
  if (holder !== null && access !== null && listens)
    return { phase: "ready", reason: refused, ...told, layer: layerOf(state.options, uid, access, true) };
  if (holder !== null) return { phase: "working", reason: "the export is being started", ...told };
  if (refused === null) return { phase: "ready", reason: null, ...told };
  const mayCome = desired?.epoch === epoch + 1 && !state.origins.has(uid);
  return { phase: mayCome ? "waiting" : "failed", reason: refused, ...told };
}
