import type * as api from "../api.ts";
import type { Cause } from "../cause/cause.ts";
import type { BoundServices, Bundle } from "../cell/cell.ts";
import type { ElementPath } from "../cell/identifiers.ts";
import { modes } from "../cell/network/modes.ts";
import { elementTypes } from "../cell/schema.ts";
import { type SessionGrant, type SessionRequest, sessionVerbs } from "../cell/session-messages.ts";
import type { Owner } from "../cell/tenants/dedication/dedication.ts";
import type { GivenAnew } from "../cell/tenants/dedication/given-anew.ts";
import type { Diagnostic, Position } from "../diagnostics/diagnostic.ts";
import type { Json, JsonObject } from "../json/json.ts";
import type { JsonPatchOperation } from "../json/patch.ts";
import type { Foreseen } from "../plan/foreseen.ts";
import type { Opened } from "../plan/opened.ts";
import type { CellStep, DataLoss, Plan, PlanStep, VolumeGrowth } from "../plan/plan-types.ts";
import { causes as causesOf } from "./causes.ts";
import {
  boolean,
  branded,
  described,
  dictionary,
  exactly,
  type Fields,
  integer,
  json,
  list,
  nullable,
  number,
  oneOf,
  optional,
  record,
  type Schema,
  text,
  time,
  titled,
} from "./schema.ts";
import type { ListedElement } from "./tenancy/listed-element.ts";

/*
 * What requests and answers carry: a schema for each interface of `model/api.ts`, of the same name but for the capital.
 */

const maybe = { text: nullable(text()), number: nullable(number), time: nullable(time) };
const path = branded<ElementPath>("Path of an element, the cell's component first: shop/web/vm");
const fields = dictionary(json);

// --- refusals and plans -------------------------------------------------------------------------------------------

const position = record<Position>({
  file: text(),
  line: integer(1),
  column: integer(1),
  length: integer(1),
});
export const diagnostic = record<Diagnostic>(
  {
    code: text(),
    message: text(),
    hint: optional(text()),
    position: optional(position),
    path: optional(text()),
    related: optional(
      list(record<{ readonly message: string; readonly position: Position }>({ message: text(), position })),
    ),
  },
  "Diagnostic",
);
export const refusal = record<api.Refusal>(
  {
    error: record<api.Refusal["error"]>({
      code: text(),
      message: text(),
      diagnostics: optional(list(diagnostic)),
      patch: optional(
        record<NonNullable<api.Refusal["error"]["patch"]>>({
          operation: maybe.number,
          path: maybe.text,
          wanted: optional(json),
          found: optional(json),
        }),
      ),
    }),
  },
  "Refusal",
);

const causes: Schema<PlanStep["causes"]> = list(
  record<PlanStep["causes"][number]>({ attribute: text(), from: json, to: json }),
);
const planStep = record<PlanStep>({
  path,
  type: oneOf(...elementTypes),
  action: oneOf("create", "change", "restart", "replace", "delete", "none"),
  causes,
  waitsFor: list(path),
  losesData: boolean,
  loss: optional(record<DataLoss>({ sizeMiB: maybe.number, image: optional(text()), copyOf: optional(path) })),
  grows: optional(record<VolumeGrowth>({ when: oneOf("now", "running", "next-start"), vm: optional(path) })),
  keepsMiB: optional(integer()),
  movedFrom: optional(path),
});
export const plan = record<Plan>(
  {
    cell: optional(record<CellStep>({ path, action: oneOf("create", "change", "delete"), causes })),
    textOnly: optional(exactly(true)),
    steps: list(planStep),
  },
  "Plan",
);
export const givenAnew = list(
  record<GivenAnew>({ path, of: text(), to: record<Owner>({ kind: oneOf("domain", "account"), path: text() }) }),
);
export const changed = record<api.Changed>(
  {
    plan,
    version: integer(),
    dryRun: boolean,
    unchecked: optional(list(oneOf("hosts", "storage", "addresses"))),
    networkMode: optional(text()),
    upgraded: optional(list(path)),
    dedicates: optional(givenAnew),
    foreseen: optional(list(record<Foreseen>({ path, type: oneOf(...elementTypes), says: text() }))),
    opened: optional(
      list(
        record<Opened>({
          attribute: text(),
          from: json,
          to: json,
          of: oneOf("own", "children"),
          cells: list(text()),
          more: optional(integer()),
        }),
      ),
    ),
    failed: optional(
      list(
        record<api.FailedElement>({
          path,
          type: oneOf(...elementTypes),
          reason: maybe.text,
          causes: optional(causesOf),
        }),
      ),
    ),
  },
  "Changed",
);
/** Each operation is read by the controller, which says what is wrong with which (`model/json/patch.ts`). */
export const jsonPatch = titled(
  "JsonPatch",
  list(
    record<JsonPatchOperation>({
      op: oneOf("add", "remove", "replace", "move", "copy", "test"),
      path: text(),
      from: optional(text()),
      value: optional(json),
    }),
  ),
);
export const bundleBody = record<api.BundleBody>({ main: text(), files: dictionary(text()) }, "BundleBody");

// --- a cell -------------------------------------------------------------------------------------------------------

const services = record<BoundServices>({
  placer: integer(),
  storageManager: integer(),
  haManager: optional(integer()),
  unguarded: optional(text()),
  networkMode: optional(oneOf(...modes)),
});
const summaryFields: Fields<api.CellSummary> = {
  cell: text(),
  version: integer(),
  phases: dictionary(number),
  elements: integer(),
  services: optional(services),
  waiting: optional(
    list(record<api.NotReady>({ path: text(), phase: text(), reason: maybe.text, causes: optional(causesOf) })),
  ),
};
export const cellSummary = record(summaryFields, "CellSummary");
export const listedElement = record<ListedElement>(
  {
    cell: text(),
    account: optional(text()),
    path,
    type: text(),
    uid: text(),
    name: text(),
    phase: oneOf("waiting", "working", "ready", "failed", "deleting"),
    reason: maybe.text,
    since: time,
  },
  "ListedElement",
);
export const cellStanding = record<api.CellSummary & { readonly empty: boolean }>(
  { ...summaryFields, empty: boolean },
  "CellStanding",
);
/** The same as a controller of any version says it: of causes of later versions only the kind is known. */
const anyCauses = list(record<{ readonly kind: string }>({ kind: text() })) as Schema<readonly Cause[]>;
const notReady = { path: text(), phase: text(), reason: maybe.text, causes: optional(anyCauses) };
export const saidStanding = record<api.CellSummary & { readonly empty: boolean }>({
  ...summaryFields,
  waiting: optional(list(record<api.NotReady>(notReady))),
  empty: boolean,
});
export const elementState = record<api.ElementState>(
  {
    phase: oneOf("waiting", "working", "ready", "failed", "deleting"),
    reason: maybe.text,
    causes: optional(causesOf),
    since: time,
    uid: text(),
    stuck: optional(exactly(true)),
    host: optional(maybe.text),
    incarnation: optional(integer()),
    power: optional(oneOf("on", "off")),
    health: optional(oneOf("starting", "answering", "silent")),
    reachability: optional(oneOf("ok", "impaired", "insufficient-data")),
    reboots: optional(integer()),
    lastEnd: optional(
      record<NonNullable<api.ElementState["lastEnd"]>>({
        incarnation: integer(),
        how: oneOf("exited", "crashed", "stopped", "silent", "not started", "host died"),
        reason: maybe.text,
      }),
    ),
    countsAt: optional(
      record<NonNullable<api.ElementState["countsAt"]>>({ host: maybe.text, incarnation: integer(), until: time }),
    ),
    address: optional(maybe.text),
    publicAddress: optional(text()),
    mac: optional(maybe.text),
    name: optional(maybe.text),
    server: optional(maybe.text),
    sizeMiB: optional(maybe.number),
    cidr: optional(maybe.text),
    gateway: optional(maybe.text),
    services: optional(services),
    vms: optional(list(text())),
  },
  "ElementState",
);
export const cellEvent = record<api.CellEvent>(
  {
    id: integer(),
    time,
    cell: text(),
    path: text(),
    type: text(),
    event: text(),
    phase: optional(text()),
    reason: optional(maybe.text),
    causes: optional(causesOf),
    fields: optional(fields),
  },
  "CellEvent",
);
export const elementAnswer = record<api.ElementAnswer>(
  {
    path: text(),
    type: text(),
    phase: text(),
    reason: maybe.text,
    causes: optional(causesOf),
    checks: list(
      record<api.ElementCheck>({
        check: text(),
        passes: boolean,
        detail: text(),
        lifts: maybe.text,
        causes: optional(causesOf),
      }),
    ),
    verdict: text(),
  },
  "ElementAnswer",
);
export const connectionAnswer = record<api.ConnectionAnswer>(
  {
    from: text(),
    to: text(),
    protocol: text(),
    port: maybe.number,
    allowed: boolean,
    checks: list(
      record<api.ConnectionAnswer["checks"][number]>({ where: text(), check: text(), passes: boolean, detail: text() }),
    ),
    verdict: text(),
  },
  "ConnectionAnswer",
);
export const explanation: Schema<api.ElementAnswer | api.ConnectionAnswer> = {
  anyOf: [elementAnswer as JsonObject, connectionAnswer as JsonObject],
};
export const credentialSummary = record<api.CredentialSummary>(
  { id: text(), note: text(), created: time, path: optional(text()), access: optional(oneOf("read", "write")) },
  "CredentialSummary",
);
export const newCredential = record<api.NewCredential>({ id: text(), credential: text() }, "NewCredential");
export interface CredentialNote {
  readonly note?: string;
  /** What it opens of the cell's model; absent: all. */
  readonly path?: string;
  /** Absent: `write`. */
  readonly access?: "read" | "write";
}
export const credentialNote = record<CredentialNote>(
  { note: optional(text(200)), path: optional(text(900)), access: optional(oneOf("read", "write")) },
  "CredentialNote",
);
export const execRequest = record<api.ExecRequest>(
  { vm: text(), command: list(text(), { least: 1 }), timeoutMs: optional(number) },
  "ExecRequest",
);
export const execAnswer = record<api.ExecAnswer>(
  { exitCode: integer(Number.MIN_SAFE_INTEGER), stdout: text(), stderr: text() },
  "ExecAnswer",
);
export const moveOrder = record<api.MoveOrder>({ vm: text(), to: text() }, "MoveOrder");
export const moved = record<api.Moved>(
  {
    vm: text(),
    from: text(),
    to: text(),
    incarnation: integer(),
    isThere: boolean,
  },
  "Moved",
);
export const forceStopOrder = record<api.ForceStopOrder>({ vm: text() }, "ForceStopOrder");
export const forcedStop = record<api.ForcedStop>(
  { vm: text(), host: text(), incarnation: integer(), unchecked: list(text()), checked: list(text()) },
  "ForcedStop",
);
export const sessionRequest = record<SessionRequest>(
  { vm: text(), verb: oneOf(...sessionVerbs), port: optional(integer(1, 65_535)), incarnation: optional(integer(1)) },
  "SessionRequest",
);
export const sessionGrant = record<SessionGrant>(
  { session: text(), expires: time, vm: text(), incarnation: integer(), host: optional(maybe.text) },
  "SessionGrant",
);

// --- machines -----------------------------------------------------------------------------------------------------

export const hostEnd = record<api.HostEnd>(
  {
    host: text(),
    generation: maybe.number,
    boot: maybe.number,
    against: maybe.text,
    ended: maybe.number,
  },
  "HostEnd",
);
export const hostPowerOff = record<api.HostPowerOff>(
  { powerIsOff: exactly(true), generation: integer(), boot: integer() },
  "HostPowerOff",
);

// --- the installation ---------------------------------------------------------------------------------------------

export const serviceEvent = record<api.ServiceEvent>(
  {
    id: text(),
    time,
    service: text(),
    event: text(),
    cell: maybe.text,
    path: maybe.text,
    fields,
  },
  "ServiceEvent",
);
type Status = api.InstallationStatus;
const service = record<Status["services"][number]>({
  name: text(),
  peer: optional(text()),
  address: text(),
  running: boolean,
  pid: maybe.number,
  restarts: integer(),
  state: optional(oneOf("running", "starting", "resting", "stopped")),
  since: optional(maybe.time),
  memoryMiB: optional(maybe.number),
  lastEnd: optional(maybe.text),
});
type Host = Status["hosts"][number];
/** As a host says it of itself. */
export const leavingVm = record<NonNullable<Host["leaving"]>[number]>({
  cell: text(),
  path: text(),
  to: maybe.text,
  reason: maybe.text,
});
export const hostStatus = record<Host>({
  host: text(),
  address: text(),
  state: text(),
  memoryMiB: number,
  usedMiB: number,
  cpus: number,
  accelerator: text(),
  vms: integer(),
  presence: optional(
    record<NonNullable<Host["presence"]>>({
      state: oneOf("up", "suspected", "dead", "unknown"),
      since: maybe.time,
      powerIsOff: optional(exactly(true)),
    }),
  ),
  administration: optional(oneOf("disabled", "maintenance", "reserved")),
  leaving: optional(list(leavingVm)),
  remark: optional(text()),
  announces: optional(
    record<NonNullable<Host["announces"]>>({
      to: list(text()),
      addresses: list(
        record<{ readonly address: string; readonly since: string | null }>({ address: text(), since: maybe.time }),
      ),
    }),
  ),
  reservedMiB: optional(number),
  load: optional(record<NonNullable<Host["load"]>>({ vms: number, management: number })),
  machines: optional(
    list(
      record<NonNullable<Host["machines"]>[number]>({
        path: text(),
        cell: text(),
        stage: text(),
        memoryMiB: number,
        residentMiB: maybe.number,
        cpus: number,
        load: number,
        network: optional(number),
        disk: optional(number),
      }),
    ),
  ),
});
/** As a storage server says it of itself. */
export const serverStatus = record<Status["servers"][number]>({
  server: text(),
  address: text(),
  totalMiB: number,
  freeMiB: number,
  volumes: integer(),
  bin: optional(record<{ readonly files: number; readonly usedMiB: number }>({ files: integer(), usedMiB: number })),
  state: optional(oneOf("up", "unreachable")),
});
/** As a Placer says it. */
export const spareRoom = record<NonNullable<Status["spare"]>>({
  hosts: integer(),
  lack: nullable(record<{ readonly vms: number; readonly memoryMiB: number }>({ vms: integer(), memoryMiB: number })),
});
export const systemHosts = record<NonNullable<Status["systemHosts"]>>({ kept: integer(), left: integer() });
export const installationStatus = record<Status>(
  {
    services: list(service),
    hosts: list(hostStatus),
    servers: list(serverStatus),
    loss: optional(record<NonNullable<Status["loss"]>>({ host: text(), vms: integer(), stranded: list(text()) })),
    spare: optional(spareRoom),
    systemHosts: optional(systemHosts),
    leftovers: optional(record<NonNullable<Status["leftovers"]>>({ forked: list(text()), keepers: list(text()) })),
    warnings: optional(list(text())),
  },
  "InstallationStatus",
);
export const missingServers = list(record<api.MissingServer>({ server: text(), why: text() }, "MissingServer"));
const imageParts = { name: text(), digest: text(), sizeMiB: number, servers: list(text()) };
export const imageSummary = record<api.ImageSummary>({ ...imageParts, provided: boolean }, "ImageSummary");
export const imageAdded = record<api.ImageAdded>({ ...imageParts, missing: missingServers }, "ImageAdded");
export const imageRemoved = record<api.ImageRemoved>(
  { name: text(), servers: list(text()), missing: missingServers },
  "ImageRemoved",
);

// --- specifications -----------------------------------------------------------------------------------------------

/** A cell's specification in canonical form, or a part of it. */
export const document: Schema<Json> = titled(
  "Document",
  described(json, "A specification in canonical JSON, or a part"),
);
/** The whole of one: as a bundle of texts, as JSON, or as one text in YAML. */
export const specification = json as Schema<Json | Bundle>;
