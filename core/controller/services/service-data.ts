import { parseIpv4 } from "../../../model/addresses/addresses.ts";
import type { Cause } from "../../../model/cause/cause.ts";
import type { Element, ServiceNumbers } from "../../../model/cell/cell.ts";
import type { CellName, ElementPath, Ipv4, PeerName, Uid } from "../../../model/cell/identifiers.ts";
import { isMode, modes } from "../../../model/cell/network/modes.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import type { DesiredEnrolment } from "../../documents/identity.ts";
import {
  isPersonality,
  isServiceRole,
  type ServiceRole,
  servicePeer,
  serviceRoles,
} from "../../documents/service-roles.ts";
import { isObject } from "../../outbox.ts";
import { meansOf } from "../network/entrance.ts";
import {
  authority,
  type ControllerOptions,
  type ControllerState,
  desiredNow,
  elementOf,
  type RootOptions,
} from "../state.ts";

/**
 * What a service VM of the root cell is. A person writes `x.data { service { roles { placer {}; presence { number 1; } } } }`;
 * the guest is told that with the names, tokens and addresses that it needs (`runtime/service-vm/service-data.ts`, format 2). In every
 * other cell a component `service` is data like any other.
 */
export interface Service {
  readonly role: ServiceRole;
  readonly name: PeerName;
  /** Of a controller. */
  readonly controlled?: {
    readonly cell: CellName;
    readonly cellUid: Uid;
    readonly cellNumber: number;
  } & ServiceNumbers;
  /** Of a gateway with doors in VMs of their own: where it serves them, and where each is. */
  readonly doors?: Doors;
  /** Of a personality in a VM of its own: where the gateway serves it. Absent: it stands beside the gateway. */
  readonly gatewayAt?: Ipv4;
}
export interface Doors {
  readonly inside: Ipv4;
  readonly at: Readonly<Record<string, Ipv4>>;
}

/** Where there may be more than one: `placer` and `placer.2`. */
const numbered: ReadonlySet<ServiceRole> = new Set([
  ...(["storage-manager", "address-manager", "dns-manager", "directory", "placer", "ha-manager"] as const),
]);
const answersDns: readonly ServiceRole[] = ["controller", "dns-manager"];
const allRoles = Object.keys(serviceRoles) as readonly ServiceRole[];
const largestNumber = 9999;
const cellPattern = /^[a-z](?:[a-z0-9.-]{0,51}[a-z0-9])?$/;
const uidPattern = /^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/;

/** A service VM is one whose `x.data` has a component `service`, in the root cell and in its child that is the way in. */
export const isService = (state: ControllerState, data: Json | undefined): data is JsonObject =>
  meansOf(state) !== null && isObject(data) && Object.hasOwn(data, "service");

/** The roles of a service VM, in the order of `serviceRoles`. The error is a sentence. */
export function servicesOf(options: ControllerOptions, data: JsonObject): Result<readonly Service[], string> {
  const beside = Object.keys(data).find((name) => name !== "service");
  if (beside !== undefined)
    return fail(`its x.data has "${beside}" beside "service": the data of a service VM is its roles alone`);
  const service = data.service;
  const stranger = isObject(service) ? Object.keys(service).find((name) => name !== "roles") : undefined;
  if (!isObject(service) || stranger !== undefined || !isObject(service.roles))
    return fail("its x.data must have the form service { roles { placer {}; … } }, and nothing else in it");
  const { roles } = service;
  const unknown = Object.keys(roles).find((role) => !isServiceRole(role));
  if (unknown !== undefined)
    return fail(`its x.data names the role "${unknown}", which there is not; there are ${allRoles.join(", ")}`);
  const found: Service[] = [];
  for (const role of allRoles) {
    if (!Object.hasOwn(roles, role)) continue;
    const read = serviceOf(options, role, roles[role] ?? null);
    if (!read.ok) return read;
    found.push(read.value);
  }
  const doors = found.filter(({ role }) => isPersonality(role));
  const [door] = doors;
  const stands = whereDoorsStand(found, doors);
  if (stands !== null) return fail(`its x.data names the role ${stands}`);
  const beyond =
    options.root === undefined ? found.find(({ role }) => role !== "gateway" && !isPersonality(role)) : door;
  if (beyond !== undefined)
    return fail(
      options.root === undefined
        ? `its x.data names the role "${beyond.role}", and a VM of this cell may have the gateway and personalities alone`
        : `its x.data names the role "${beyond.role}", which stands beside the gateway of the cell that is the way in`,
    );
  if (found.length === 0) return fail(`its x.data names no role; name at least one of ${allRoles.join(", ")}`);
  if (answersDns.every((role) => found.some((each) => each.role === role)))
    return fail(
      `its roles ${answersDns.join(" and ")} both answer DNS at port 53 of the VM's address; put them into two VMs`,
    );
  return ok(found);
}

/** What is wrong with where personalities stand, as the rest of a sentence; null: nothing. */
function whereDoorsStand(found: readonly Service[], doors: readonly Service[]): string | null {
  const gateway = found.find(({ role }) => role === "gateway");
  for (const { role, gatewayAt } of doors) {
    if (gateway === undefined && gatewayAt === undefined)
      return `${role}, which stands beside the gateway: add gateway {}, or say where that serves a VM apart, ${role} { gateway "ADDRESS" }`;
    if (gateway !== undefined && gatewayAt !== undefined)
      return `${role} with a gateway elsewhere, and has one itself: leave one of the two out`;
    if (gateway?.doors?.at[role] !== undefined)
      return `${role}, which its gateway has among the doors of other VMs: leave one of the two out`;
  }
  return null;
}

function serviceOf(options: ControllerOptions, role: ServiceRole, json: Json): Result<Service, string> {
  const fields = json === null ? {} : json;
  const where = `its x.data, service:roles:${role},`;
  if (!isObject(fields)) return fail(`${where} is no component; write ${role} {}`);
  const known =
    role === "controller"
      ? ["cell", "cellUid", "cellNumber", ...boundTo, "networkMode"]
      : hasNumber(role)
        ? ["number"]
        : role === "gateway"
          ? ["inside", "doors"]
          : isPersonality(role)
            ? ["gateway"]
            : [];
  const stranger = Object.keys(fields).find((name) => !known.includes(name));
  if (stranger !== undefined)
    return fail(
      `${where} has "${stranger}", which is not known there${known.length === 0 ? "" : `; known are ${known.join(", ")}`}`,
    );
  if (role === "controller") return controllerOf(options, fields, where);
  if (role === "gateway") return gatewayOf(fields, where);
  if (isPersonality(role) && fields.gateway !== undefined) {
    const gatewayAt = ipv4Of(fields.gateway);
    if (gatewayAt === null) return fail(`${where} has a gateway that is no IPv4 address`);
    return ok({ role, name: servicePeer(role), gatewayAt });
  }
  const { number } = fields;
  const least = role === "presence" ? 1 : 2;
  // The first one is no role of any VM: who protects whom must not go round in a circle (decision 91).
  if (number === undefined && role === "ha-manager")
    return fail(
      "its x.data names the role ha-manager, which runs with the root controller in any case: leave it out, or give a further one a number from 2 upward",
    );
  if (number === undefined && role !== "presence") return ok({ role, name: servicePeer(role) });
  if (typeof number !== "number" || !Number.isInteger(number) || number < least || number > largestNumber)
    return fail(
      `${where} needs a number from ${least} to ${largestNumber}${least === 2 ? "; the first one has none" : ""}`,
    );
  return ok({ role, name: servicePeer(role, number) });
}
const ipv4Of = (json: Json | undefined): Ipv4 | null =>
  typeof json === "string" && parseIpv4(json) !== null ? (json as Ipv4) : null;

/** Doors in VMs of their own (decision 212). */
function gatewayOf({ inside, doors }: JsonObject, where: string): Result<Service, string> {
  const service = { role: "gateway", name: servicePeer("gateway") } as const;
  if (inside === undefined && doors === undefined) return ok(service);
  const at = ipv4Of(inside);
  if (at === null || !isObject(doors))
    return fail(`${where} needs both: inside, its address where doors reach it, and doors, each with its own`);
  const found: Record<string, Ipv4> = {};
  for (const [door, address] of Object.entries(doors)) {
    const there = ipv4Of(address);
    if (!isPersonality(door)) return fail(`${where} has a door "${door}", which is no personality`);
    if (there === null) return fail(`${where} says no IPv4 address of its door ${door}`);
    found[door] = there;
  }
  return ok({ ...service, doors: { inside: at, at: found } });
}
const modeOf = (networkMode: string | undefined) => (networkMode === undefined ? {} : { networkMode });
const boundTo = ["placer", "storageManager", "haManager"] as const;
const hasNumber = (role: ServiceRole): boolean => role === "presence" || numbered.has(role);

function controllerOf(options: ControllerOptions, fields: JsonObject, where: string): Result<Service, string> {
  const { cell, cellUid, cellNumber } = fields;
  if (typeof cell !== "string" || !cellPattern.test(cell)) return fail(`${where} needs the name of its cell as cell`);
  if (typeof cellUid !== "string" || !uidPattern.test(cellUid))
    return fail(`${where} needs the UID of its cell as cellUid: letters, digits and "-"`);
  if (typeof cellNumber !== "number" || !Number.isInteger(cellNumber) || cellNumber < 1)
    return fail(`${where} needs the number of its cell as cellNumber, a whole number from 1 upward`);
  const own = { uid: options.cellUid, number: options.cellNumber };
  if (cell === options.cell && (cellUid !== own.uid || cellNumber !== own.number))
    return fail(`${where} is this cell's own: it must have cellUid "${own.uid}" and cellNumber ${own.number}`);
  const { networkMode } = fields;
  if (networkMode !== undefined && (typeof networkMode !== "string" || !isMode(networkMode)))
    return fail(`${where} has a networkMode that is none of ${modes.join(", ")}`);
  if (networkMode !== undefined && cell === options.cell)
    return fail(`${where} is this cell's own, whose networks are Diverter's: leave out networkMode`);
  const bound: Record<string, number> = {};
  for (const name of boundTo) {
    const number = fields[name];
    if (number === undefined) continue;
    if (typeof number !== "number" || !Number.isInteger(number) || number < 1 || number > largestNumber)
      return fail(`${where} has a ${name} that is no number from 1 to ${largestNumber}`);
    if (cell === options.cell && number !== 1)
      return fail(`${where} is this cell's own, which is bound to the first ones: leave out ${name}`);
    bound[name] = number;
  }
  const controlled = { cell: cell as CellName, cellUid: cellUid as Uid, cellNumber, ...bound, ...modeOf(networkMode) };
  return ok({ role: "controller", name: servicePeer("controller", cell), controlled });
}

/** Key at the authority of one role's enrolment, the same for every incarnation. */
export const enrolmentKey = (vm: Uid, role: ServiceRole): string => `${enrolmentKeys(vm)}${allRoles.indexOf(role)}`;
export const enrolmentKeys = (vm: Uid): string => `enrolment/${vm}-`;

/** Whom everybody knows by its fingerprint needs no token: it issues them. */
export const enrols = (role: ServiceRole): boolean => role !== "authority";

/**
 * What the guest of this incarnation is told, `DesiredVm.data`: everything of its roles that is not in the image. The same
 * for the same incarnation.
 */
export function serviceData(
  options: ControllerOptions,
  means: RootOptions,
  { vm, incarnation }: { readonly vm: Uid; readonly incarnation: number },
  data: JsonObject,
): Result<Json, string> {
  const { domain, cell: own } = options;
  const services = servicesOf(options, data);
  if (!services.ok) return services;
  const credentialHashes = [...means.credentialHashes];
  const roles = services.value.map(({ role, name, controlled, doors, gatewayAt }): [string, Json] => [
    role,
    {
      name,
      ...(enrols(role) ? { token: means.token(vm, incarnation, role).token } : {}),
      ...(controlled === undefined
        ? {}
        : {
            controller: {
              ...controlled,
              domain,
              credentialHashes,
              ...(controlled.cell === own ? { root: true } : {}),
            },
          }),
      ...(role === "tenancy" ? { tenancy: { credentialHashes } } : {}),
      ...(role === "gateway"
        ? { gateway: { credentialHashes, ...(doors === undefined ? {} : { inside: doors.inside, doors: doors.at }) } }
        : {}),
      ...personalityPart({
        ...(keepsVolumes(role) && means.credential !== undefined
          ? { credential: means.credential(vm, incarnation, role).token }
          : {}),
        ...(gatewayAt === undefined ? {} : { gateway: gatewayAt }),
      }),
    },
  ]);
  const { address, fingerprint } = means.authority;
  // Whoever stands apart reaches the gateway alone, which passes on to the authority whatever it is asked there.
  const apart = services.value.find(({ gatewayAt }) => gatewayAt !== undefined)?.gatewayAt;
  const known = { address: apart ?? address, fingerprint };
  return ok({ format: 2, authority: known, domain, roles: Object.fromEntries(roles) });
}

const personalityPart = (personality: JsonObject): JsonObject =>
  Object.keys(personality).length === 0 ? {} : { personality };

/** CaaS alone of all personalities keeps something: persistent volumes, in the cell that is the way in. */
const keepsVolumes = (role: ServiceRole): boolean => role === "personality.caas";

/** Is this the hash of the credential of a personality that runs, for its part of this cell? Nothing of it is kept. */
export function isOfPersonality(state: ControllerState, hash: string): boolean {
  const means = meansOf(state);
  if (means?.credential === undefined) return false;
  for (const { uid, incarnation } of state.vms.values()) {
    const record = state.elements.get(uid);
    const element = record === undefined ? undefined : elementOf(state, record);
    if (element?.type !== "VM" || incarnation === 0 || !isService(state, element.data)) continue;
    const services = servicesOf(state.options, element.data);
    for (const { role } of services.ok ? services.value : [])
      if (keepsVolumes(role) && means.credential(uid, incarnation, role).hash === hash) return true;
  }
  return false;
}

/** Does this VM run the controller of the cell that it belongs to? Its host starts it again: nobody else could. */
export const isOwnController = ({ cell }: ControllerOptions, services: readonly Service[]): boolean =>
  services.some(({ controlled }) => controlled?.cell === cell);

/** Is this element the VM of this very controller? */
export function isOwnVmElement(state: ControllerState, element: Element | undefined): boolean {
  if (element?.type !== "VM" || !isService(state, element.data)) return false;
  const services = servicesOf(state.options, element.data);
  return services.ok && isOwnController(state.options, services.value);
}
export function isOwnVm(state: ControllerState, vm: Uid): boolean {
  const record = state.elements.get(vm);
  return isOwnVmElement(state, record === undefined ? undefined : elementOf(state, record));
}

interface Claim {
  readonly vm: Uid;
  readonly path: ElementPath;
  readonly names: ReadonlySet<PeerName>;
  /** The authority was told of them. */
  readonly enrolled: ReadonlySet<PeerName>;
}

/** The names that every service VM wants by the present model, or was given and may still use. */
const claims = (state: ControllerState): readonly Claim[] =>
  [...state.vms.keys()].flatMap((vm) => {
    const record = state.elements.get(vm);
    if (record === undefined) return [];
    const element = elementOf(state, record);
    const data = element?.type === "VM" ? element.data : undefined;
    const wanted = isService(state, data) ? servicesOf(state.options, data) : null;
    const enrolled = allRoles.flatMap((role) => {
      const document = desiredNow(state, authority, enrolmentKey(vm, role)) as unknown as DesiredEnrolment | undefined;
      return document?.grants.map(({ name }) => name) ?? [];
    });
    const names = new Set([...enrolled, ...(wanted?.ok === true ? wanted.value.map(({ name }) => name) : [])]);
    return names.size === 0 ? [] : [{ vm, path: record.path, names, enrolled: new Set(enrolled) }];
  });

/**
 * Why a service VM may not start now; null: it may. Two machines of one name would take each other's place
 * at everybody's, so a name is one VM's until that is gone: the one's that was enrolled with it, else the older one's.
 */
export function serviceFault(state: ControllerState, vm: Uid, data: Json | undefined): Cause | null {
  const { options } = state;
  if (!isService(state, data)) return null;
  const services = servicesOf(options, data);
  if (!services.ok) return { kind: "services-malformed", detail: services.error };
  const all = claims(state);
  const own = all.find((claim) => claim.vm === vm);
  for (const { name } of services.value) {
    const mine = own?.enrolled.has(name) === true;
    const before = (other: Claim): boolean => other.enrolled.has(name) || (!mine && numberOf(other.vm) < numberOf(vm));
    const holder = all.find((other) => other.vm !== vm && other.names.has(name) && before(other));
    if (holder !== undefined) {
      const numbered = hasNumber(services.value.find((each) => each.name === name)?.role ?? "gateway");
      return { kind: "service-name-taken", service: name, vm: holder.path, numbered };
    }
  }
  return null;
}
/** UIDs are counted up, so the older element has the smaller one. */
const numberOf = (vm: Uid): number => Number(vm.slice(vm.lastIndexOf("-") + 1));
