import type { HostName } from "../../../model/cell/identifiers.ts";
import { bootAllowanceMs } from "../../documents/guest.ts";
import { desiredVm } from "../../documents/readers/host.ts";
import type { ActualVm, DesiredVm } from "../../documents/vocabulary.ts";
import { standing, target } from "../explain/standing.ts";
import type { ElementRecord, Standing } from "../records.ts";
import { type ControllerState, desiredNow, hostPeer } from "../state.ts";

/*
 * What is asked of a host about a VM that runs already, and which fact of that host shows that it is so. That a document was sent is none:
 * until the fact is there, the VM is not as it is declared. What a machine was started with needs none, since the incarnation is the fact.
 */

/** Attributes that are asked of its host otherwise than the host says that they are. */
function unconfirmed(desired: DesiredVm, actual: ActualVm): readonly string[] {
  return desired.ready !== undefined && actual.guest === undefined ? ["x.ready"] : [];
}

/** Why a VM is not as declared although its machine runs well; null: it is. */
export function whyNotConfirmed(
  state: ControllerState,
  { uid, path }: ElementRecord,
  host: HostName,
  actual: ActualVm,
): Standing | null {
  const by = hostPeer(host);
  const desired = desiredVm.of(desiredNow(state, by, `vm/${uid}`));
  if (desired == null || desired.incarnation !== actual.incarnation) return null;
  const attributes = unconfirmed(desired, actual);
  if (attributes.length > 0) return standing("working", { kind: "unconfirmed", by, attributes });
  if (desired.ready === undefined || actual.guest === "up") return null;
  return actual.guest === "late"
    ? standing("failed", { kind: "guest-late", target: target(state, path), seconds: bootAllowanceMs / 1000 })
    : standing("working", { kind: "guest-boots" });
}
