import type { Advice, ByRule, RefusalKind } from "../../../model/cause/cause.ts";
import {
  type PlacementSettingName,
  type PlacementSettings,
  placementSettings,
} from "../../../model/cell/attributes/placement-settings.ts";
import { modes } from "../../../model/cell/network/modes.ts";
import { implicitModes } from "../../../model/cell/tenants/dedication/implicit.ts";
import { mostKnownMarks, mostMarks } from "../../../model/cell/tenants/dedication/marks.ts";
import { type KnownOffering, mostOfferings } from "../../../model/cell/tenants/pools/offerings.ts";
import { mostNice } from "../../../model/cell/tenants/wishes/nice.ts";
import type { HostOffer, KnownMarks } from "../../../model/check/check-hosts.ts";
import {
  boolean,
  branded,
  count,
  document,
  integer,
  json,
  list,
  maximumCount,
  nullable,
  number,
  object,
  oneOf,
  optional,
  type Reader,
} from "../../../model/json/reader.ts";
import type { DesiredPlacementSettings } from "../ha.ts";
import type { ActualRouter } from "../network/outside.ts";
import type { PlacedAmounts } from "../pools.ts";
import type {
  ActualHost,
  ActualPlacement,
  ActualTaken,
  DesiredHost,
  DesiredPlacement,
  HostOffers,
  HostRefusal,
  Leave,
} from "../vocabulary.ts";
import { placedTerms } from "./pools.ts";
import {
  address,
  amountMiB,
  bootImage,
  cellText,
  hostText,
  macAddress,
  most,
  mostMemoryMiB,
  pathText,
  peerText,
  progressFields,
  sentence,
  speedMHz,
  uidText,
  wholeMiB,
  word,
} from "./values.ts";

/** Readers of what hosts offer and of what is placed where. */

const amounts = object<PlacedAmounts>({ memoryMiB: wholeMiB, cpus: count });
export const desiredPlacement = document(
  object<DesiredPlacement>({
    vm: uidText,
    path: pathText,
    cell: cellText,
    incarnation: count,
    memoryMiB: wholeMiB,
    cpus: count,
    cpuSpeedMHz: speedMHz,
    placement: json,
    avoid: optional(list(hostText, most.hosts)),
    on: optional(hostText),
    at: optional(hostText),
    priority: optional(number(-(2 ** 48), 2 ** 48)),
    moveTo: optional(hostText),
    restart: optional(oneOf(true)),
    off: optional(oneOf(true)),
    has: optional(amounts),
    networkMode: optional(oneOf(...modes)),
    image: optional(bootImage),
  }),
  { key: { field: "vm", of: ({ vm }) => vm } },
);
export const desiredHost = document(
  object<DesiredHost>({ host: hostText, state: oneOf("disabled", "maintenance", "reserved") }),
  {
    key: { field: "host", of: ({ host }) => host },
  },
);
/** A Placer of a later version may know more kinds: what it says in words stands beside them. */
const refusalKind: Reader<RefusalKind> = branded(
  (kind) => kind as RefusalKind,
  (kind) => /^[a-z-]{1,64}$/.test(kind),
  "a kind: at most 64 small letters and hyphens",
);
/** Rules of this version and later ones. */
const mostRules = 64;
const refusal = object<HostRefusal>({ host: hostText, why: sentence, lifts: sentence, kind: optional(refusalKind) });
const ruled = object<ByRule>({ kind: refusalKind, hosts: count });
const refused = { refusals: list(refusal, most.hosts), counts: optional(list(ruled, mostRules)) } as const;
const leave = object<Leave>({ to: nullable(hostText), ...refused });
const advice = object<Advice>({ rules: list(ruled, mostRules), change: nullable(sentence) });
export const actualPlacement = document(
  object<ActualPlacement>({
    ...progressFields,
    incarnation: count,
    host: nullable(hostText),
    boot: optional(count),
    terms: optional(placedTerms),
    nice: optional(list(word, mostNice)),
    given: optional(amounts),
    ...refused,
    advice: optional(advice),
    leave: optional(leave),
    crossed: optional(list(word, mostRules)),
  }),
);

/** What is left of a host may be below nothing, when it promised more than it has. */
const offered = number(-maximumCount, maximumCount);
const offer = object<HostOffer>({ host: hostText, memoryMiB: offered, cpus: offered, cpuSpeedMHz: speedMHz });
const words = list(word, mostKnownMarks);
const knownMarks = object<KnownMarks>({ places: words, tags: words, properties: words });
const offerings = list(
  object<KnownOffering>({
    name: word,
    memoryMiB: amountMiB,
    cpus: count,
    cpuSpeedMHz: optional(speedMHz),
    tags: optional(list(word, mostMarks)),
    dedication: optional(oneOf(...implicitModes)),
  }),
  mostOfferings,
);
const bounded = (name: PlacementSettingName) => integer(placementSettings[name].least, placementSettings[name].most);
export const hostOffers = document(
  object<HostOffers>({
    hosts: list(offer, most.hosts),
    complete: boolean,
    marks: optional(knownMarks),
    offerings: optional(offerings),
    lastHostS: optional(bounded("lastHostS")),
  }),
);
export const desiredPlacementSettings = document(
  object<DesiredPlacementSettings>({
    settings: object<PlacementSettings>({
      lastHostS: optional(bounded("lastHostS")),
      systemHosts: optional(bounded("systemHosts")),
    }),
    offerings: optional(offerings),
  }),
);

const router = object<ActualRouter>({
  address,
  mac: nullable(macAddress),
  answers: boolean,
  from: optional(address),
});
export const actualHost = document(
  object<ActualHost>({
    host: hostText,
    state: oneOf("up", "draining"),
    address,
    mac: macAddress,
    memoryMiB: number(0, mostMemoryMiB),
    reservedMiB: amountMiB,
    machineMiB: optional(wholeMiB),
    cpus: count,
    cpuSpeedMHz: speedMHz,
    accelerator: oneOf("kvm", "tcg"),
    boot: optional(count),
    routers: optional(list(router, 16)),
    networkMode: optional(oneOf(...modes)),
  }),
  { speaker: { field: "host", of: ({ host }) => `host.${host}` } },
);
export const actualTaken = document(
  object<ActualTaken>({ memoryMiB: wholeMiB, cpus: count, by: optional(peerText), terms: optional(placedTerms) }),
);
