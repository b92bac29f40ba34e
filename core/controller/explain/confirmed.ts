import type { VmElement } from "../../../model/cell/cell.ts";
import { type HostName, hostPeer, type PeerName } from "../../../model/cell/identifiers.ts";
import { bootAllowanceMs } from "../../documents/guest.ts";
import { desiredVm } from "../../documents/readers/host.ts";
import { desiredName } from "../../documents/readers/network.ts";
import { actualGrant, desiredGrant, storageOffers } from "../../documents/readers/storage.ts";
import type { ActualName, ActualVm, DesiredVm } from "../../documents/vocabulary.ts";
import { sameJson, toJson } from "../../outbox.ts";
import { answerOf, standing, target, unanswered } from "../changes/standing.ts";
import type { ElementRecord, Run, Standing } from "../records.ts";
import { actualOf, type ControllerState, desiredNow, dnsManager, recordAt, storageManagerOf } from "../state.ts";

/*
 * What is asked of others about an element that is there already, and which fact of theirs shows that it is so. That a document was sent is
 * none: until the fact is there, the element is not as it is declared. What a machine was started with needs none, since the
 * incarnation is the fact. Which fact each attribute has, or why it has none, is in `core/controller/explain/confirmed.test.ts`.
 *
 * Whoever is of the previous version never says some of these facts, and nothing waits for what never comes: what was enough before is
 * enough then.
 */

function unconfirmed(state: ControllerState, by: PeerName, attributes: readonly string[]): Standing | null {
  if (attributes.length === 0) return null;
  const isAway = state.reachable.get(by) === false;
  return isAway ? unanswered(state, by) : standing("working", { kind: "unconfirmed", by, attributes });
}

const probeFields = ["protocol", "port", "interface", "intervalMs", "failures"] as const;

/** Attributes that are asked of its host otherwise than the host says that they are. */
function otherAtHost(desired: DesiredVm, actual: ActualVm): readonly string[] {
  const { probes } = actual;
  if (probes === undefined) return [];
  const ready = desired.ready !== undefined && actual.guest === undefined ? ["x.ready"] : [];
  const other = probeFields.filter((field) => desired.liveness?.[field] !== probes?.[field]);
  return [...ready, ...other.map((field) => `x.liveness.${field}`)];
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
  const owed = unconfirmed(state, by, otherAtHost(desired, actual));
  if (owed !== null) return owed;
  if (desired.ready === undefined || actual.guest === undefined || actual.guest === "up") return null;
  return actual.guest === "late"
    ? standing("failed", { kind: "guest-late", target: target(state, path), seconds: bootAllowanceMs / 1000 })
    : standing("working", { kind: "guest-boots" });
}

/**
 * Why a VM cannot be asked where `x.liveness.interface` says; null: it can. The interface may have had no address when the incarnation
 * started, and nothing comes into a machine that runs. Asked elsewhere it would be said to live where nobody has looked.
 */
export function whyNotAsked(
  state: ControllerState,
  { path: vm, liveness }: VmElement,
  { interfaces }: Run,
): Standing | null {
  const at = liveness?.interface;
  const uid = at === undefined ? undefined : recordAt(state, at)?.uid;
  if (at === undefined || uid === undefined || interfaces.includes(uid)) return null;
  return standing("waiting", { kind: "asked-next-start", vm, target: target(state, vm), interface: at });
}

/** Why an interface has not the name that is declared; null: it has, or is to have none. */
export function whyNotServed(
  state: ControllerState,
  { uid }: ElementRecord,
  actual: ActualName | undefined,
): Standing | null {
  const desired = desiredName.of(desiredNow(state, dnsManager, `name/${uid}`));
  const serves = actual?.serves;
  if (desired != null && actual !== undefined && serves === undefined) return null;
  const fields = desired?.name === serves?.name ? (["address", "public"] as const) : (["name"] as const);
  const other = fields.filter((field) => desired?.[field] !== serves?.[field]);
  return unconfirmed(
    state,
    dnsManager,
    other.map((field) => (field === "name" ? "x.vifName" : `x.${field}`)),
  );
}

/** What the Storage Manager lets others do with a volume. */
export function grantState(state: ControllerState, { uid }: ElementRecord): Standing {
  const manager = storageManagerOf(state);
  const desired = desiredGrant.of(desiredNow(state, manager, `grant/${uid}`));
  const actual = actualOf(actualGrant, state, manager, `grant/${uid}`);
  if (actual === undefined) {
    const offers = storageOffers.of(state.actual.get(manager)?.get("storage"));
    return offers != null && offers.saysGrants === undefined ? standing("ready") : unanswered(state, manager);
  }
  if (desired == null || actual.phase !== "ready") return answerOf(state, manager, actual);
  const { grants } = actual;
  const to = "vm" in desired.to ? "x.vm" : "x.cell";
  const other = [
    ...(desired.volume === grants?.volume ? [] : ["x.volume"]),
    ...(sameJson(toJson(desired.to), grants && toJson(grants.to)) ? [] : [to]),
    ...(desired.grant === grants?.grant ? [] : ["x.grant"]),
    ...(desired.hold === grants?.hold ? [] : ["x.hold"]),
    ...(desired.holder === grants?.holder ? [] : ["x.holder"]),
  ];
  return unconfirmed(state, manager, other) ?? answerOf(state, manager, actual);
}
