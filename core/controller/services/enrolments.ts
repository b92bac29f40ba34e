import { type Cause, said } from "../../../model/cause/cause.ts";
import type { Uid } from "../../../model/cell/identifiers.ts";
import type { DesiredEnrolment } from "../../documents/identity.ts";
import { actualEnrolment } from "../../documents/readers/identity.ts";
import { serviceRoles } from "../../documents/service-roles.ts";
import type { Desires } from "../changes/desires.ts";
import { because } from "../changes/standing.ts";
import { entranceOf, meansOf } from "../network/entrance.ts";
import {
  actualOf,
  addDesire,
  authority,
  type ControllerState,
  desiredNow,
  elementOf,
  haManager,
  linksOf,
  recordAt,
} from "../state.ts";
import {
  enrolmentKey,
  enrolmentKeys,
  enrols,
  isOwnController,
  isService,
  type Service,
  serviceFault,
  servicesOf,
} from "./service-data.ts";

/**
 * So long is a token good, of which one copy exists and which one key can spend. It must outlast its incarnation: a VM that
 * its host starts again, or a role whose certificate ended while everything was dark, shows it once more, over the same
 * key. The next incarnation's takes its place.
 */
const tokenLifeMs = 10 * 365 * 86_400_000;

/**
 * What the authority is to enrol: each role of each service VM, from its first incarnation on until the VM is gone. An
 * enrolment also says where the role is found, so it follows the VM's addresses.
 */
export function desireEnrolments(state: ControllerState, desires: Desires): void {
  if (meansOf(state) === null) return;
  for (const { uid, incarnation } of state.vms.values()) {
    const record = state.elements.get(uid);
    const element = record === undefined ? undefined : elementOf(state, record);
    if (element === undefined) keepEnrolments(state, desires, uid);
    if (element?.type !== "VM" || incarnation === 0 || !isService(state, element.data)) continue;
    const services = servicesOf(state.options, element.data);
    const addresses = linksOf(state, element.path).flatMap((link) => {
      const allocation = link.type === "VirtualInterface" ? recordAt(state, link.path)?.allocation : null;
      return allocation == null ? [] : [allocation.address];
    });
    if (!services.ok || addresses.length === 0 || serviceFault(state, uid, element.data) !== null) {
      keepEnrolments(state, desires, uid);
      continue;
    }
    const means = meansOf(state);
    if (means === null) return;
    // The gateway and all doors are known at the one address of the way in, wherever they stand (decision 212).
    const entrance = entranceOf(state);
    const places = entrance === null ? addresses : [entrance];
    for (const service of services.value) {
      const { hash } = means.token(uid, incarnation, service.role);
      if (enrols(service.role)) desireEnrolment(state, desires, { vm: uid, hash }, service, places);
    }
    // It is none of the VM's roles: it comes with the root controller, in whatever VM that is.
    if (means.ha !== undefined && isOwnController(state.options, services.value))
      desireEnrolment(state, desires, { vm: uid, hash: means.ha.hash }, haCompanion, addresses);
  }
}
const haCompanion: Service = { role: "ha-manager", name: haManager };

function desireEnrolment(
  state: ControllerState,
  desires: Desires,
  { vm, hash }: { readonly vm: Uid; readonly hash: string },
  { role, name, controlled }: Service,
  addresses: readonly string[],
): void {
  const { cell } = state.options;
  const key = enrolmentKey(vm, role);
  const before = desiredNow(state, authority, key) as unknown as DesiredEnrolment | undefined;
  const { distribution, http } = serviceRoles[role];
  const ports = { distribution, http };
  const grant = { name, role, addresses, ports, ...(controlled === undefined ? {} : { cellUid: controlled.cellUid }) };
  const document: DesiredEnrolment = {
    hash,
    cell: controlled?.cell ?? cell,
    grants: [grant],
    // A token's end is settled once: a later pass, or one after a restart, must say the same.
    endsAtMs: before?.hash === hash ? before.endsAtMs : state.now.wallMs + tokenLifeMs,
  };
  addDesire(desires, authority, key, document);
}

/** The VM is on its way out, or may not have what it wants now: what it was given stays. */
function keepEnrolments(state: ControllerState, desires: Desires, vm: Uid): void {
  for (const [key, document] of state.outbox.desired.get(authority) ?? [])
    if (key.startsWith(enrolmentKeys(vm))) addDesire(desires, authority, key, document as object);
}

/** Roles of a service VM that have no certificate although somebody asked for one, each with why. */
export function refusedEnrolments(state: ControllerState, vm: Uid): readonly Cause[] {
  if (state.options.root === undefined) return [];
  return [...(state.outbox.desired.get(authority) ?? [])].flatMap(([key, value]) => {
    const actual = key.startsWith(enrolmentKeys(vm)) ? actualOf(actualEnrolment, state, authority, key) : undefined;
    if (actual?.phase !== "failed") return [];
    const services = (value as unknown as DesiredEnrolment).grants.map(({ name }) => name);
    return [{ kind: "enrolment-refused", services, ...because(said(authority, actual.reason)) }];
  });
}
