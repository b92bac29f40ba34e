import type { PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { type Document, Fault, type Name } from "../../../model/json/reader.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import type { DocumentReader } from "../../env.ts";
import { kindOf, type permissions, type ServiceKind } from "../permissions.ts";
import * as cells from "./cells.ts";
import * as eucalyptus from "./eucalyptus.ts";
import * as ha from "./ha.ts";
import * as host from "./host.ts";
import * as identity from "./identity.ts";
import * as network from "./network.ts";
import * as placement from "./placement.ts";
import * as pools from "./pools.ts";
import * as presence from "./presence.ts";
import * as storage from "./storage.ts";
import * as tenancy from "./tenancy.ts";

/**
 * Every kind of document that crosses a connection, with its reader, by the same keys as `permissions`: what a peer may
 * desire of a service, and what a service says is so. A key that is added there without a reader here does not compile.
 */
type Said<Verb extends "desires" | "sees", At extends ServiceKind> = {
  readonly [Who in keyof (typeof permissions)[At][Verb]]: (typeof permissions)[At][Verb][Who] extends readonly (infer Key)[]
    ? Key
    : never;
}[keyof (typeof permissions)[At][Verb]] &
  string;
/** A reader for whatever is desired of a service. */
type Desired = { readonly [At in ServiceKind]: { readonly [Key in Said<"desires", At>]: AnyDocument } };
/**
 * A reader for whatever a service says is so: to everybody, and to each client about what that one desired (`<peer>/…`).
 * Null: it says nothing about it. What a pattern leaves open stands in further lines.
 */
type Actual = {
  readonly [At in ServiceKind]: {
    readonly [Key in Exclude<Said<"sees", At>, `${string}…`>]: AnyDocument;
  } & { readonly [Key in `<peer>/${Said<"desires", At>}`]: AnyDocument | null } & {
    readonly [Key in Opened<Said<"sees", At>>]?: AnyDocument | null;
  };
};
type Opened<Key extends string> = Key extends `${infer Before}…` ? `${Before}${string}` : never;
export type AnyDocument = Pick<Document<object>, "read"> & { readonly names: AnyNames };
interface AnyNames {
  readonly key?: Name<never>;
  readonly speaker?: Name<never>;
}

export const desiredDocuments = {
  "address-manager": { "subnet/<uid>": network.desiredSubnet, pools: network.desiredPools },
  "dns-manager": { "name/<uid>": network.desiredName, doors: network.desiredDoors, zone: network.desiredZone },
  "network-view-manager": {
    "instance/<uid>": eucalyptus.desiredInstance,
    "security-group/<uid>": eucalyptus.desiredSecurityGroup,
  },
  placer: {
    "placement/<uid>": placement.desiredPlacement,
    "group/<uid>": tenancy.desiredGroup,
    "host/<name>": placement.desiredHost,
    spare: ha.desiredSpare,
    settings: placement.desiredPlacementSettings,
    "dedicated/<name>": tenancy.desiredDedicated,
    "marks/<name>": tenancy.desiredMarks,
    "owner/<name>": tenancy.desiredCellOwner,
    "pooled/<name>": pools.desiredPooled,
  },
  "storage-manager": {
    "volume/<uid>": storage.desiredVolume,
    "connection/<uid>": storage.desiredConnection,
    "grant/<uid>": storage.desiredGrant,
    "let-go/<uid>": storage.desiredLetGo,
    "owner/<name>": tenancy.desiredCellOwner,
    "fence/<uid>": ha.desiredFence,
    guard: ha.desiredGuard,
  },
  agent: {
    "volume/<uid>": storage.agentVolume,
    "lease/<uid>": storage.agentLease,
    "readers/<uid>": storage.agentReaders,
    seen: storage.agentSeen,
    "succession/<uid>": storage.agentSuccession,
    beat: ha.desiredBeat,
    "requests/<name>": ha.desiredRequests,
  },
  host: {
    "vm/<uid>": host.desiredVm,
    "policy/<cell>": network.cellPolicy,
    "slice/<cell>/…": network.policySlice,
    "places/<cell>": network.desiredPlaces,
    "root-vm": host.desiredStandby,
    "claim/<name>": pools.desiredClaim,
    pools: network.desiredPools,
    "probe/<name>": ha.desiredProbe,
    beats: ha.desiredBeats,
    "network-view": eucalyptus.desiredNetworkView,
    "network-slice/<name>": eucalyptus.networkSlice,
  },
  presence: {},
  "ha-manager": {
    "protected/<uid>": ha.desiredProtected,
    "host/<name>": placement.desiredHost,
    settings: ha.desiredSettings,
    "power/<name>": ha.desiredPower,
    unguarded: ha.desiredUnguarded,
    alerts: ha.desiredAlerts,
  },
  directory: {
    "public/<uid>": cells.desiredPublic,
    "reach/<uid>": cells.desiredReach,
    "want/<name>/…": cells.desiredWant,
  },
  "cell-manager": { "cell/<uid>": cells.desiredCell },
  controller: { life: cells.desiredLife, "limits/<name>": tenancy.desiredLimits },
  tenancy: {
    "look/<uid>": tenancy.desiredLook,
    "owner/<uid>": tenancy.desiredOwner,
    "declared/<uid>": tenancy.desiredDeclared,
  },
  gateway: {},
  authority: { "enrolment/<uid>": identity.desiredEnrolment, "entrance/<name>": identity.entrance },
} as const satisfies Desired;

export const actualDocuments = {
  "address-manager": {
    addresses: network.addressOffer,
    "<peer>/subnet/<uid>": network.actualSubnet,
    "<peer>/pools": network.actualPools,
  },
  "dns-manager": { "<peer>/name/<uid>": network.actualName, "<peer>/doors": null, "<peer>/zone": null },
  "network-view-manager": {
    "<peer>/instance/<uid>": eucalyptus.actualInstance,
    "<peer>/security-group/<uid>": eucalyptus.actualSecurityGroup,
    "<peer>/network-lease": eucalyptus.actualNetworkLease,
  },
  placer: {
    hosts: placement.hostOffers,
    "<peer>/placement/<uid>": placement.actualPlacement,
    "<peer>/group/<uid>": null,
    "<peer>/host/<name>": null,
    "<peer>/spare": null,
    "<peer>/settings": null,
    "<peer>/dedicated/<name>": null,
    "<peer>/marks/<name>": null,
    "<peer>/owner/<name>": null,
    "<peer>/pooled/<name>": null,
    "<peer>/standing/<name>": pools.actualStanding,
    "<peer>/claim/<name>": pools.actualClaim,
    "<peer>/short": ha.actualShort,
  },
  "storage-manager": {
    storage: storage.storageOffers,
    "<peer>/volume/<uid>": storage.actualVolume,
    "<peer>/kept": storage.actualKept,
    "<peer>/connection/<uid>": storage.actualConnection,
    "<peer>/grant/<uid>": storage.actualGrant,
    "<peer>/let-go/<uid>": null,
    "<peer>/owner/<name>": null,
    "<peer>/guard": null,
    "<peer>/fence/<uid>": ha.actualFence,
  },
  agent: {
    "volume/<uid>": storage.agentVolumeActual,
    "lease/<uid>": storage.agentLeaseActual,
    "readers/<uid>": storage.agentReadersActual,
    server: storage.agentServer,
    "image/<name>": storage.agentImage,
    "bin/<name>": storage.agentBinned,
    "successor/<uid>": storage.actualSuccessor,
    "<peer>/succession/<uid>": storage.agentLeaseActual,
    "<peer>/volume/<uid>": null,
    "<peer>/lease/<uid>": null,
    "<peer>/readers/<uid>": null,
    "<peer>/seen": null,
    "<peer>/beat": ha.desiredBeat,
    "<peer>/requests/<name>": ha.actualRequests,
    "heartbeat/<name>": ha.actualHeartbeat,
  },
  host: {
    host: placement.actualHost,
    "taken/<uid>": placement.actualTaken,
    machines: ha.actualMachines,
    "location/<name>": network.actualLocation,
    "<peer>/vm/<uid>": host.actualVm,
    "<peer>/policy/<cell>": network.actualPolicy,
    "<peer>/places/<cell>": null,
    "<peer>/slice/<cell>/…": null,
    "<peer>/root-vm": null,
    "<peer>/pools": null,
    "<peer>/claim/<name>": pools.actualClaim,
    "<peer>/probe/<name>": ha.actualProbe,
    "<peer>/beats": null,
    network: eucalyptus.actualNetwork,
    "network-beat": eucalyptus.actualNetworkBeat,
    "<peer>/network-view": null,
    "<peer>/network-slice/<name>": null,
    "presence/self": presence.ownPresence,
    "presence/failed/<name>": presence.presence,
    "presence/doubted/<name>": presence.presence,
    "<peer>/call": presence.presenceCall,
  },
  presence: {
    "vote/<name>": presence.presence,
    "dead/<name>": presence.presenceDeath,
    "suspected/<name>": presence.presence,
    "missed/<name>": presence.presence,
    call: presence.presenceCall,
  },
  "ha-manager": {
    "<peer>/protected/<uid>": null,
    "<peer>/settings": null,
    "<peer>/power/<name>": null,
    "<peer>/unguarded": null,
    "<peer>/alerts": null,
    "<peer>/over/<uid>": ha.actualOver,
    "<peer>/host/<name>": null,
  },
  directory: {
    "<peer>/public/<uid>": null,
    "<peer>/reach/<uid>": cells.actualReach,
    "<peer>/want/<name>/…": cells.actualWant,
  },
  "cell-manager": { "<peer>/cell/<uid>": cells.actualCell },
  controller: {
    "<peer>/life": cells.actualLife,
    "<peer>/limits/<name>": tenancy.actualLimits,
    "owner/<name>": pools.actualCellOwner,
  },
  tenancy: {
    "<peer>/look/<uid>": tenancy.actualLook,
    "<peer>/owner/<uid>": null,
    "<peer>/declared/<uid>": tenancy.actualDeclared,
  },
  gateway: {},
  authority: {
    "pin/<name>": identity.actualPin,
    "entrance/<name>": identity.entrance,
    "<peer>/enrolment/<uid>": identity.actualEnrolment,
    "<peer>/entrance/<name>": null,
  },
} as const satisfies Actual;

// --- from a key to its reader ------------------------------------------------------------------------------------------

interface Kind {
  readonly form: RegExp;
  readonly document: AnyDocument;
}
const kindsIn = (documents: Readonly<Record<string, AnyDocument | null>>): readonly Kind[] =>
  Object.entries(documents).flatMap(([key, document]) => (document === null ? [] : [{ form: formOf(key), document }]));

/** The part in brackets is what the document must repeat. */
const formOf = (key: string): RegExp => {
  const source = key
    .replace("<peer>", "[^/]+")
    .replace("<name>/…", "([^/]+/.+)")
    .replace("<cell>/…", "([^/]+)/.+")
    .replace("<uid>", "([A-Za-z0-9-]{1,64})")
    .replace(/<(?:name|cell)>/, "([^/]+)");
  return new RegExp(`^${source}$`, "s");
};
const compiled = (table: Readonly<Record<string, Readonly<Record<string, AnyDocument | null>>>>) =>
  new Map(Object.entries(table).map(([at, documents]) => [at, kindsIn(documents)]));
const desired = compiled(desiredDocuments);
const actual = compiled(actualDocuments);

/** `from` null: whose word it is, is not to be compared. */
function readBy(
  kinds: readonly Kind[] | undefined,
  from: PeerName | null,
  key: string,
  value: Json,
): Result<Json, string> {
  for (const { form, document } of kinds ?? []) {
    const match = form.exec(key);
    if (match === null) continue;
    const result = document.read(value);
    if (result instanceof Fault) return fail(result.toString());
    const said =
      differs(document.names.key, result, match[1]) ?? differs(document.names.speaker, result, from ?? undefined);
    // Whatever a reader returns is JSON, as it was given some.
    return said === null ? ok(result as Json) : fail(said);
  }
  return fail(`nothing is known under such a key`);
}
function differs(name: Name<never> | undefined, document: object, right: string | undefined): string | null {
  if (name === undefined || right === undefined) return null;
  const found = name.of(document as never);
  return found === right
    ? null
    : new Fault([name.field], JSON.stringify(found), `of ${JSON.stringify(right)}`).toString();
}

/** What a service of this kind reads: see `Service.read`. What a peer keeps is of the kinds that are desired of that peer. */
export const documentsOf =
  (at: ServiceKind): DocumentReader =>
  (verb, from, key, value) => {
    if (verb === "desired") return readBy(desired.get(at), from, key, value);
    const said = kindOf(from) ?? "";
    return verb === "kept" ? readBy(desired.get(said), null, key, value) : readBy(actual.get(said), from, key, value);
  };
