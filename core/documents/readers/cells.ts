import type { CellBinding, Openness } from "../../../model/cell/cell.ts";
import { modes } from "../../../model/cell/network/modes.ts";
import {
  boolean,
  byKind,
  count,
  document,
  integer,
  jsonObject,
  list,
  nullable,
  object,
  oneOf,
  optional,
  ordinal,
} from "../../../model/json/reader.ts";
import type {
  ActualCell,
  ActualLife,
  ActualReach,
  ActualWant,
  CellServices,
  DesiredCell,
  DesiredLife,
  DesiredPublic,
  DesiredReach,
  DesiredWant,
  PublicElement,
  QuotaAsked,
  QuotaGrant,
  ReachOpening,
  WantHeld,
} from "../cells.ts";
import { type HeldFor, mostHeldFor } from "../volumes.ts";
import { poolHostsGiven, poolsAsked } from "./pools.ts";
import {
  address,
  amountMiB,
  cellText,
  grantedUsage,
  hostText,
  inUse,
  most,
  network,
  pathText,
  peerText,
  ports,
  progressFields,
  protocol,
  sentence,
  serverText,
  uidText,
  usage,
  word,
  yes,
} from "./values.ts";

/** Readers of what cells know of each other, and of the documents by which cells are made. */

// --- between cells -------------------------------------------------------------------------------------------------

type Shown<Kind extends PublicElement["kind"]> = Extract<PublicElement, { readonly kind: Kind }>;
const shows = byKind<PublicElement>({
  addresses: object<Shown<"addresses">>({
    kind: oneOf("addresses"),
    type: oneOf("Subnet", "VM", "VirtualInterface"),
    networks: list(network, most.networks),
  }),
  volume: object<Shown<"volume">>({
    kind: oneOf("volume"),
    type: oneOf("Volume", "VolumeCopy"),
    sizeMiB: nullable(amountMiB),
    server: nullable(serverText),
    manager: optional(ordinal),
  }),
});
const byUid = { key: { field: "uid", of: ({ uid }: { readonly uid: string }) => uid } } as const;
const heldFor = object<HeldFor>({ domain: word, path: pathText });
export const desiredPublic = document(
  object<DesiredPublic>({ uid: uidText, path: pathText, shows, heldFor: optional(list(heldFor, mostHeldFor)) }),
  byUid,
);

const want = object<DesiredWant>({ domain: word, path: pathText });
export const desiredWant = document(want, {
  key: { field: "path", of: ({ domain, path }) => `${domain}/${path}` },
});
const wantHeld = object<WantHeld>({ path: pathText, uid: uidText, shows });
export const actualWant = document(
  object<ActualWant>({ uid: uidText, shows, heldFor: optional(list(wantHeld, mostHeldFor)), onlyHeld: yes }),
);

const opening = object<ReachOpening>({ direction: oneOf("out", "in"), protocol, sourcePorts: ports, ports });
export const desiredReach = document(
  object<DesiredReach>({
    uid: uidText,
    other: want,
    networks: list(network, most.networks),
    placed: list(object({ address, host: hostText }), most.networks),
    openings: list(opening, most.networks),
  }),
  byUid,
);
export const actualReach = document(
  object<ActualReach>({
    agreed: boolean,
    hosts: list(object({ address, hosts: list(hostText, most.hosts) }), most.networks),
    there: optional(list(object({ address, host: hostText }), most.networks)),
  }),
);

// --- child cells -----------------------------------------------------------------------------------------------------

const quotaGrant = object<QuotaGrant>({
  amount: grantedUsage,
  serial: count,
  answered: count,
  refusal: nullable(sentence),
});
const quotaAsked = object<QuotaAsked>({
  serial: count,
  holds: usage,
  asks: nullable(object({ number: count, amount: usage })),
  uses: optional(nullable(inUse)),
});
const serviceNumber = optional(ordinal);
const bound = optional(
  object<Openness>({
    subnetConnectivity: optional(boolean),
    internet: optional(oneOf("none", "out")),
    broadcast: optional(oneOf("off", "on")),
    resolvers: optional(list(address, most.resolvers)),
  }),
);
export const desiredCell = document(
  object<DesiredCell>({
    uid: uidText,
    cell: cellText,
    model: jsonObject,
    grant: quotaGrant,
    gateway: optional(address),
    startsPerMinute: optional(count),
    bound,
    services: optional(
      object<CellBinding>({
        placer: serviceNumber,
        storageManager: serviceNumber,
        haManager: serviceNumber,
        networkMode: optional(oneOf(...modes)),
      }),
    ),
    ending: yes,
    off: yes,
    pools: optional(poolHostsGiven),
  }),
  byUid,
);
export const actualCell = document(
  object<ActualCell>({
    ...progressFields,
    controller: peerText,
    address: nullable(address),
    version: count,
    quota: nullable(quotaAsked),
    pools: optional(poolsAsked),
    services: optional(
      object<CellServices>({
        placer: ordinal,
        storageManager: ordinal,
        haManager: serviceNumber,
        networkMode: optional(oneOf(...modes)),
      }),
    ),
    unguarded: yes,
    ended: optional(boolean),
    is: optional(uidText),
  }),
);
const guardMoves = optional(integer(1, 1_000_000));
export const desiredLife = document(
  object<DesiredLife>({
    uid: uidText,
    model: jsonObject,
    grant: quotaGrant,
    startsPerMinute: optional(count),
    bound,
    ending: boolean,
    gateway: optional(address),
    off: yes,
    pools: optional(poolHostsGiven),
    guard: serviceNumber,
    guardMoves,
    unguarded: yes,
  }),
);
export const actualLife = document(
  object<ActualLife>({
    ...progressFields,
    version: count,
    guard: serviceNumber,
    guardMoves,
    empty: boolean,
    quota: quotaAsked,
    pools: optional(poolsAsked),
  }),
);
