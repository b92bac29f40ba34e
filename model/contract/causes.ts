import {
  type Advice,
  type Because,
  type ByRule,
  type Cause,
  type CauseFacts,
  type CauseKind,
  endKinds,
  refusalKinds,
} from "../cause/cause.ts";
import type { CellName, Cidr, ElementPath, HostName, Ipv4, PeerName } from "../cell/identifiers.ts";
import type { JsonObject } from "../json/json.ts";
import {
  boolean,
  branded,
  described,
  exactly,
  type Fields,
  integer,
  list,
  nullable,
  number,
  oneOf,
  optional,
  record,
  type Schema,
  text,
  titled,
} from "./schema.ts";

/** A schema for every kind of cause; a fact that one lacks, or has too much, does not compile. */
const path = branded<ElementPath>("Path of an element of the cell");
const host = branded<HostName>("Name of a host");
const service = branded<PeerName>("Name of a service: placer, host.h1, controller.shop");
const address = branded<Ipv4>("An IPv4 address");
const cidr = branded<Cidr>("An IPv4 network");

/** Causes are inside one another: by its title this one stands for all of them. */
const inner: Schema<Cause> = titled("Cause", { type: "object" });
const because: Fields<Because> = { because: optional(list(inner)) };
const atHost = { host };
const ofVm = { vm: path };
const commanded = { target: text() };
const foreign = { domain: text(), path: text() };

const byRules = list(record<ByRule>({ kind: text(), hosts: integer() }));
const refusals = list(
  record<CauseFacts["no-host"]["refusals"][number]>({
    ...atHost,
    why: text(),
    lifts: text(),
    kind: optional(oneOf(...refusalKinds)),
  }),
);

const facts: { readonly [Kind in CauseKind]: Fields<CauseFacts[Kind]> } = {
  said: { by: service, sentence: text() },

  "waits-for": { element: path, ...because },
  "next-start": ofVm,
  "switched-off": commanded,
  grows: { from: number, to: number, vm: optional(path), ...because },
  "grows-next-start": { ...ofVm, ...commanded, from: number, to: number, since: oneOf("file", "ide") },
  "no-image": { image: text(), sentence: text(), damaged: optional(exactly(true)) },
  "no-storage": { sentence: text() },
  "asked-next-start": { ...ofVm, ...commanded, interface: path },
  "held-for-copy": { ...foreign, ...commanded },
  deleting: {},

  "service-unreachable": { service },
  "service-asked": { service },
  "document-too-long": { to: service, key: text(), characters: integer(), most: integer() },
  "host-unreachable": { ...atHost, unknown: optional(exactly(true)) },
  "host-declared-dead": { ...atHost, since: text() },
  "host-doubts-store": { ...atHost, controller: service },
  "host-lost-store": atHost,
  "host-replaced": atHost,

  "asks-for-host": {},
  "no-host": {
    refusals,
    counts: optional(byRules),
    said: nullable(text()),
    advice: optional(
      record<Advice>({
        rules: byRules,
        change: nullable(text()),
      }),
    ),
  },
  "cannot-leave": { ...atHost, refusals, counts: optional(byRules) },
  "leaves-after": { ...atHost, ...ofVm },
  "leaves-with-its-host": atHost,
  "connects-volumes": {},
  "waits-for-lease": { element: path, ...because },
  starts: atHost,
  stops: atHost,
  "about-to-start": {},
  ended: { how: oneOf(...endKinds), detail: nullable(text()) },
  "guest-boots": {},
  "guest-late": { ...commanded, seconds: number },
  unconfirmed: { by: service, attributes: list(text()) },
  before: because,
  "not-restarted": commanded,
  "silent-left": {},
  "backs-off": { seconds: number, failures: integer() },
  "waits-its-turn": {
    perMinute: number,
    atOnce: number,
    queue: optional(
      record<NonNullable<CauseFacts["waits-its-turn"]["queue"]>>({
        place: integer(),
        of: integer(),
        seconds: number,
        own: boolean,
      }),
    ),
  },
  "all-or-none": {
    stage: oneOf("asking", "resting", "clearing"),
    elements: list(path),
    more: optional(integer()),
    seconds: optional(number),
  },
  "disk-unavailable": { element: path, ...because },
  "may-run-at": { ...atHost, ...because },
  "forgotten-runs": { hosts: list(host) },
  "restored-unheard": { hosts: list(host) },

  "enrolment-refused": { services: list(service), ...because },
  "services-malformed": { detail: text() },
  "service-name-taken": { ...ofVm, service, numbered: boolean },
  "no-interface": {},
  "not-on-management": {},

  "address-asked": {},
  "subnet-full": { element: path, cidr },
  "range-taken": { cidr, vms: list(path) },
  "address-outside": { element: path, address, cidr, first: address, last: address },
  "address-taken": { element: path, address },
  "name-failed": { name: text(), ...because },

  "foreign-wrong-type": { ...foreign, type: text(), wanted: oneOf("volume", "addresses") },
  "foreign-own-cell": foreign,
  "no-directory": foreign,
  "directory-unreachable": foreign,
  "foreign-hidden": foreign,
  "other-storage-manager": { ...foreign, theirs: integer(), own: integer() },
  "not-granted": { ...foreign, grant: oneOf("copy", "connect"), to: text() },
  "controller-of-own-cell-only": {},
  "not-agreed": { ...foreign, element: path, shown: boolean },

  "removal-not-in-force": because,
  "rules-unconfirmed": atHost,
  "rules-refused": { ...atHost, ...because },
  "rules-older": { ...atHost, version: integer(), wanted: integer() },
  "more-hosts": { count: integer() },

  "upgrade-kept": ofVm,
  "upgrade-went-back": { ...ofVm, volume: text(), ...because },
  "upgrade-over": {},
  "upgrade-tried": ofVm,
  "upgrade-stopped": ofVm,
  "upgrade-one-at-a-time": ofVm,
  "upgrade-next": {},
  "upgrade-awaits": { ...ofVm, until: oneOf("on", "settled", "itself", "well") },
  "upgrade-comes-last": ofVm,
  "upgrade-timed-out": { seconds: number, ...because },

  "no-cell-manager": {},
  unguarded: { service, number, cell: branded<CellName>("Name of a cell") },
  "child-malformed": {},
  "child-named-root": { name: text() },
  "store-older": { controller: service, peers: list(service) },
};

const kinds = Object.entries(facts).map(
  ([kind, fields]): JsonObject => record({ kind: exactly(kind), ...fields } as Fields<{ readonly kind: string }>),
);
export const causes: Schema<readonly Cause[]> = list(
  titled<Cause>(
    "Cause",
    described(
      { anyOf: kinds },
      "Why something is as it is. Later versions have more kinds: the sentence beside it says more.",
    ),
  ),
);
