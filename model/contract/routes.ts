import { bundleMediaType, patchMediaType, yamlMediaType } from "../api.ts";
import { elementTypes } from "../cell/schema.ts";
import { audited } from "./audit/query.ts";
import { auditPart } from "./audit/values.ts";
import { followEvent } from "./follow/follow.ts";
import {
  haReport,
  mailRegistered,
  mailRemoved,
  mailWord,
  powerController,
  powerRegistered,
  powerRemoved,
  webhookRegistered,
  webhookRemoved,
  webhookWord,
} from "./operator/ha.ts";
import { hostJoin, hostJoining } from "./operator/host-join.ts";
import { networkRoutes } from "./operator/network-routes.ts";
import { observationRoutes } from "./operator/numbers/routes.ts";
import { placementRoutes } from "./operator/placement-routes.ts";
import * as storage from "./operator/storage.ts";
import {
  bytesType,
  gives,
  givesBytes,
  givesEvents,
  givesSocket,
  jsonType,
  may,
  must,
  type Route,
  route,
  type Server,
  sends,
  several,
} from "./route.ts";
import { boolean, integer, jsonObject, oneOf, record, text, time } from "./schema.ts";
import { givesPages, givesPagesOf, paged } from "./tenancy/paged.ts";
import { mostOfPage } from "./tenancy/pages.ts";
import { poolRoutes } from "./tenancy/pool-routes.ts";
import { tenantRoutes } from "./tenancy/routes.ts";
import { signInRoutes } from "./tenancy/sign-in.ts";
import { volumeRoutes } from "./tenancy/volumes/volume-routes.ts";
import * as values from "./values.ts";
import { modelSource, modelVersions } from "./versions.ts";

/**
 * The published contract as a table: every request that a client can make. The gateway and the controllers serve by it and
 * check by it, the client in `client/client.ts` asks by it, `docs/rest.md` and the OpenAPI document are printed from it. A key is the
 * route's name everywhere, OpenAPI's `operationId`.
 *
 * Who serves a route: `gateway/requests/serve.ts`, and what it passes to a controller `runtime/controller/routes.ts`.
 *
 * What the fields of bodies and answers mean is said by the interfaces in `model/api.ts`, to which `values.ts` has schemas.
 */

const element = "Path of an element in its document, the cell's component first, as `shop/web/vm`.";
const dryRun = may(boolean, "Says what would be, and changes nothing.");
const allowDestroy = several(
  text(),
  "Volume whose data may be lost with the change, by its path. It may be given several times, or as a list with commas, and may name more than are lost.",
);
const change = { dryRun, allowDestroy };
const deletion = {
  ...change,
  dropHeld: may(
    boolean,
    "Destroys volumes at the path or below it that have left the model and stay for a copy (`x.hold`), each named in `allowDestroy`, and takes nothing out of the model. 404: there is none.",
  ),
};
const once = {
  "Idempotency-Key": {
    schema: text(),
    doc: "Names this change, 1 to 200 printable characters that are chosen anew for each. Asked for again by the same user under the same key, also after a crash, it is not done again, and answered as before with `Idempotency-Replayed: true` (the plan without what stays as it is, and without values). The cell keeps 10,000 for a day. With another body it is 422; what was refused is looked at anew.",
  },
};
const changeHeaders = {
  ...once,
  "If-Match": {
    schema: text(),
    doc: 'Version that the model must have, such as `"7"`, as an `ETag` gave it; `*`, or absent: any.',
  },
};
const follow = may(boolean, "The stream stays open, and goes on with what happens.");
const past = may(boolean, "`false`: without what happened before.");
const since = may(time, "Without what happened before this time, ISO 8601.");
const state = may(boolean, "With `$state` in every element, and with those that are still being taken away.");
const until = may(
  oneOf("ready", "gone"),
  "With `state=true`: held back, up to 45 s, until the element there is ready or is `stuck`, or until nothing is there or left of what was.",
);
const pagedElements = { ...paged, limit: may(integer(1, mostOfPage), "So many at most; absent: 100.") };
const ofElements = {
  type: may(oneOf(...elementTypes), "Of this type alone."),
  uid: may(text(), "The one with this UID."),
  phase: may(oneOf("waiting", "working", "ready", "failed", "deleting"), "Of this phase alone."),
  name: may(text(), "With this name: the last part of their paths."),
};
const specification = [bundleMediaType, jsonType, yamlMediaType];
const ofChange =
  "Refused with 400 for a specification with faults (`diagnostics` says where), 404 for a path that does not exist, 409 where it conflicts with what is in use, 412 if the model has not the version of `If-Match`, 500 with nothing changed if the plan was not right. A change with which data is lost (`losesData` in its plan) is refused with 409 `change/destroys-data` unless `allowDestroy` names each such volume.";

export const routes = {
  // --- cells ------------------------------------------------------------------------------------------------------
  listCells: route("GET /cells", "cell", "gateway", {
    doc: "All cells, each in short; with a cell's credential that cell alone.",
    query: paged,
    answer: givesPages(values.cellSummary),
  }),
  listAllElements: route("GET /elements", "cell", "gateway", {
    doc: "Elements of all cells that one may see, in pages: by cell, and in each in the order in which they were made.",
    more: "Each is in one page alone, whatever comes, goes or is renamed meanwhile. Nothing is said of cells that `Cells-Missing` of the answer names: their controllers do not answer, or are of an earlier version.",
    query: {
      ...ofElements,
      cell: may(text(), "Of this cell alone, by its whole name."),
      account: may(
        text(),
        "Of cells of this account, or of all accounts in this domain, by its path. With a cell's credential it is refused.",
      ),
      ...pagedElements,
    },
    answer: {
      ...givesPages(values.listedElement),
      headers: {
        ...givesPages(values.listedElement).headers,
        "Cells-Missing": {
          schema: text(),
          doc: "Names of cells of which nothing could be heard, with commas in between.",
        },
      },
    },
  }),
  listElements: route("GET /cells/{cell}/elements", "cell", "controller", {
    doc: "Elements of one cell, in the order in which they were made, in pages.",
    query: { ...ofElements, ...pagedElements },
    answer: givesPages(values.listedElement),
  }),
  readCell: route("GET /cells/{cell}", "cell", "controller", {
    doc: "One cell in short. `empty`: it was deleted and nothing of it is left.",
    answer: gives(values.cellStanding),
  }),
  readModel: route("GET /cells/{cell}/model", "cell", "controller", {
    doc: "The cell's specification in canonical JSON, with its version as `ETag`.",
    query: { state, until },
    answer: gives(values.document),
  }),
  readElement: route("GET /cells/{cell}/model/{path*}", "cell", "controller", {
    doc: "A part of it.",
    query: { state, until },
    answer: gives(values.document),
  }),
  putModel: route("PUT /cells/{cell}/model", "cell", "controller", {
    doc: "Gives the cell this specification. The operator's first one makes the cell, whose name it must have.",
    more: ofChange,
    query: change,
    headers: changeHeaders,
    body: sends(values.specification, specification),
    answer: gives(values.changed),
  }),
  putElement: route("PUT /cells/{cell}/model/{path*}", "cell", "controller", {
    doc: "Puts or replaces one part of it.",
    more: ofChange,
    query: change,
    headers: changeHeaders,
    body: sends(values.document, [jsonType, yamlMediaType]),
    answer: gives(values.changed),
  }),
  patchModel: route("PATCH /cells/{cell}/model", "cell", "controller", {
    doc: "Changes several parts of it at once, all or none: a JSON Patch (RFC 6902) on the canonical JSON that `GET` gives. Pointers begin with the cell's component: `/shop/web/x.memory`.",
    more: `A \`test\` is a precondition on what the change rests on: one that fails is 412 \`patch/test-failed\`, and \`error.patch\` says which operation it is, its pointer, what was \`wanted\` and what was \`found\` (absent: nothing, or too long to be repeated). What cannot be done is 400 \`patch/invalid\` with operation and pointer: an unknown operation, a pointer that leads to nothing, more than 1,000 operations or 1 MiB. The cell as a whole is deleted with \`DELETE\` alone. ${ofChange}`,
    query: change,
    headers: changeHeaders,
    body: sends(values.jsonPatch, [patchMediaType, jsonType]),
    answer: gives(values.changed),
  }),
  deleteModel: route("DELETE /cells/{cell}/model", "cell", "controller", {
    doc: "Deletes all of the cell. When nothing of it is left the cell itself ends, if the operator asked.",
    more: ofChange,
    query: deletion,
    headers: changeHeaders,
    answer: gives(values.changed),
  }),
  deleteElement: route("DELETE /cells/{cell}/model/{path*}", "cell", "controller", {
    doc: "Deletes a part of it.",
    more: ofChange,
    query: deletion,
    headers: changeHeaders,
    answer: gives(values.changed),
  }),
  readSource: route("GET /cells/{cell}/source", "cell", "controller", {
    doc: "A text that the model was sent as, with its comments and templates, and what has changed the model in other ways since.",
    more: "Texts of 20 versions are kept, of 4 MiB in all; the newest stays however long it is. 404: that version has none, and why.",
    query: { version: may(integer(0), "Of this version of the model; absent: the newest text.") },
    answer: gives(modelSource),
  }),
  listVersions: route("GET /cells/{cell}/versions", "cell", "controller", {
    doc: "Changes of the model, the last one first: who sent each, what its plan did, and whether its text is kept.",
    query: paged,
    answer: givesPagesOf(modelVersions),
  }),
  followCell: route("GET /cells/{cell}/events", "cell", "controller", {
    doc: "What happened in the cell, oldest first.",
    query: { follow, past, since },
    headers: { "Last-Event-ID": { schema: text(), doc: "What was seen up to this event is left out." } },
    answer: givesEvents(values.cellEvent),
  }),
  readCellAudit: route("GET /cells/{cell}/audit", "cell", "controller", {
    doc: "Who changed the cell, and who was refused: records of its controller, oldest first. Whoever may not read all of them sees his own.",
    query: audited,
    answer: gives(auditPart),
  }),
  explain: route("GET /cells/{cell}/why", "cell", "controller", {
    doc: "Why an element is not ready (`element`), or why a connection passes or does not (`from`, `to`).",
    query: {
      element: may(text(), element),
      from: may(text(), "Path of the VM or virtual interface that sends."),
      to: may(text(), "Path of the one that receives."),
      protocol: may(oneOf("tcp", "udp", "icmp"), "Absent: `tcp` with a port, `icmp` without."),
      port: may(integer(1, 65_535), "Of `tcp` and `udp`."),
    },
    answer: gives(values.explanation),
  }),
  listCredentials: route("GET /cells/{cell}/credentials", "cell", "controller", {
    doc: "The cell's own credentials, without what is secret of them.",
    query: paged,
    answer: givesPages(values.credentialSummary),
  }),
  addCredential: route("POST /cells/{cell}/credentials", "cell", "controller", {
    doc: "A new credential of the cell. This is its only appearance.",
    more: "With `path` it opens what is there in the model and below it, and nothing else: it is read and listed, and with `access` `write` (absent: that) changed, by elements that name nothing outside of it.",
    body: sends(values.credentialNote),
    answer: gives(values.newCredential),
  }),
  revokeCredential: route("DELETE /cells/{cell}/credentials/{id}", "cell", "controller", {
    doc: "The credential opens nothing any more, and sessions that it opened end.",
    headers: once,
    answer: gives(record<{ readonly id: string }>({ id: text() })),
  }),
  exec: route("POST /cells/{cell}/exec", "cell", "controller", {
    doc: "Runs a command in a VM and answers when it has ended, after `timeoutMs` at the latest (30 s if absent, at most 10 min).",
    body: sends(values.execRequest),
    answer: gives(values.execAnswer),
  }),
  moveVm: route("POST /cells/{cell}/moves", "operator", "controller", {
    doc: "Has a VM go to another host: it is stopped in order as soon as there is room, and starts there with its data. Where it cannot, it runs on, and its state says why.",
    query: { dryRun },
    headers: once,
    body: sends(values.moveOrder),
    answer: gives(values.moved),
  }),
  forceStop: route("POST /cells/{cell}/forced-stops", "operator", "controller", {
    doc: "Frees a VM that is off by the model of a host that cannot say whether it has ended. Its volumes are given to nobody before their servers have ended its writing; the answer says what was not checked.",
    more: "Refused with 409 while its host is heard, and for a VM of which nothing runs, or which is to run.",
    query: { dryRun },
    headers: once,
    body: sends(values.forceStopOrder),
    answer: gives(values.forcedStop),
  }),
  grantSession: route("POST /cells/{cell}/sessions", "cell", "controller", {
    doc: "A capability for one session in a VM. It opens one WebSocket, once, within a minute.",
    body: sends(values.sessionRequest),
    answer: gives(values.sessionGrant, 201),
  }),
  openSession: route("GET /cells/{cell}/sessions", "capability", "controller", {
    doc: "The WebSocket of a session; its messages are those of `model/cell/session-messages.ts`.",
    headers: {
      "Sec-WebSocket-Protocol": { schema: text(), doc: "`cells.session.v1, cells.capability.<session>`" },
    },
    answer: givesSocket,
  }),

  // --- the installation -------------------------------------------------------------------------------------------
  readOpenApi: route("GET /openapi.json", "cell", "gateway", {
    doc: "This interface as an OpenAPI 3.1 document.",
    answer: gives(jsonObject),
  }),
  readStatus: route("GET /status", "operator", "gateway", {
    doc: "Services, hosts and storage servers, each as it says of itself.",
    answer: gives(values.installationStatus),
  }),
  follow: route("GET /follow", "cell", "gateway", {
    doc: "What one looks at as it is, and then what becomes of it: topics of rows, all of them first, and then what changes, at most each 250 ms.",
    more: "A delta counts behind the one before it in its `run` and topic (`model/contract/follow/reduce.ts` is how). With `Last-Event-ID` what was missed comes, or all rows. Each 10 s there is a `beat`. Who is too slow is cut off. 400: a topic that is unknown; 403 and 404: one that is not for who asks; 503: 8 streams of one person, or 128 in all, are open.",
    query: {
      topic: several(
        text(),
        "`status`, `ha`, `cells`, `cell:NAME`, or `counters:NAME`; it may be given several times, at most 16.",
      ),
    },
    headers: { "Last-Event-ID": { schema: text(), doc: "The `id` of the last event that was seen." } },
    answer: givesEvents(followEvent),
  }),
  followServices: route("GET /events", "operator", "gateway", {
    doc: "The time line over all services, oldest first.",
    query: {
      follow,
      past,
      since,
      cell: may(text(), "Of this cell alone."),
      service: may(text(), "Of this service alone: `host.h1`, or `h1`."),
    },
    answer: givesEvents(values.serviceEvent),
  }),
  readMetrics: route("GET /metrics", "operator", "gateway", {
    doc: "All services' numbers in Prometheus' text format, with a label `service`.",
    query: { service: may(text(), "Of this service alone.") },
    answer: givesBytes("text/plain"),
  }),
  listImages: route("GET /images", "operator", "gateway", {
    doc: "Images that `x.import` may name, the same for every cell.",
    query: paged,
    answer: givesPages(values.imageSummary),
  }),
  addImage: route("PUT /images/{name}", "operator", "gateway", {
    doc: "Brings an image to all storage servers. The body is the image itself, with its `Content-Length`.",
    more: "Refused with 400 for what it is, 409 when the name is taken.",
    query: {
      format: {
        ...must(oneOf("raw", "qcow2"), "It is declared, never guessed."),
        refusal: { code: "image/format", message: "the format must be declared: ?format=raw or ?format=qcow2" },
      },
      replace: may(boolean, "The name may be that of an image that was uploaded before."),
    },
    body: { types: [bytesType], schema: null },
    answer: gives(values.imageAdded),
  }),
  removeImage: route("DELETE /images/{name}", "operator", "gateway", {
    doc: "Takes an image away. Volumes that were made from it are copies, and stay as they are.",
    answer: gives(values.imageRemoved),
  }),
  admitHost: route("PUT /cells/{cell}/hosts/{name}", "operator", "root-controller", {
    doc: "Lets a machine join as `host.<name>`, or be set up anew. What it joins as (`as`) stands in the root cell's model before its tokens are worth anything.",
    body: sends(hostJoin),
    answer: gives(hostJoining),
  }),
  removeHost: route("DELETE /cells/{cell}/hosts/{name}", "operator", "root-controller", {
    doc: "The machine's certificates are renewed no more, and nobody looks for it.",
    answer: gives(record<{ readonly removed: string }>({ removed: text() })),
  }),
  readHostEnd: route("GET /cells/{cell}/hosts/{name}/end", "operator", "root-controller", {
    doc: "What is known of the host, and whether its end could be said.",
    answer: gives(values.hostEnd),
  }),
  endHost: route("PUT /cells/{cell}/hosts/{name}/end", "operator", "root-controller", {
    doc: "The operator's word that the host's power is off. If it is not, its VMs will run twice.",
    body: sends(values.hostPowerOff),
    answer: gives(values.hostEnd),
  }),

  readHa: route("GET /ha", "operator", "gateway", {
    doc: "What the HA Manager works on since a host is lost, and what it has done in the last day.",
    more: "Refused with 404 where the installation has no HA Manager, 503 where it does not answer.",
    answer: gives(haReport),
  }),
  pauseHa: route("POST /ha/pause", "operator", "gateway", {
    doc: "Hosts will be switched off, or the whole cloud: no VM is fenced or started elsewhere until it is released.",
    answer: gives(haReport),
  }),
  releaseHa: route("POST /ha/release", "operator", "gateway", {
    doc: "A person has looked: what the HA Manager held goes on. Without `vm`: after many hosts were lost at once.",
    query: { vm: may(text(), "Path of a VM, its cell's whole name first.") },
    answer: gives(haReport),
  }),

  cancelHa: route("POST /ha/cancel", "operator", "gateway", {
    doc: "Leaves an incarnation alone whose host is lost, until it is tried again or its host is back. 409: a fence of it has begun.",
    query: { vm: must(text(), "Path of a VM, its cell's whole name first.") },
    answer: gives(haReport),
  }),
  retryHa: route("POST /ha/retry", "operator", "gateway", {
    doc: "Takes up what was cancelled, and asks everybody anew about what waits.",
    query: { vm: must(text(), "Path of a VM, its cell's whole name first.") },
    answer: gives(haReport),
  }),
  acknowledgeAlert: route("POST /alerts/acknowledge", "operator", "gateway", {
    doc: "Somebody looks after an alert, which stays open until it is over. 404: there is none.",
    query: {
      kind: must(text(), "Of the alert, as `GET /ha` has it."),
      subject: may(text(), "Of the alert. Absent: it has none."),
    },
    answer: gives(haReport),
  }),
  setWebhook: route("PUT /alerts/webhook", "operator", "gateway", {
    doc: "Alerts are told to this URL: when one is opened, acknowledged or over, and once now. Each is a POST of an `AlertNotice` with `cells-signature: t=<seconds since 1970>,v1=<HMAC-SHA-256 of '<t>.<body>', hexadecimal>`, and is repeated for a day until the answer is 2xx. 409: it leads into the installation.",
    body: sends(webhookWord),
    answer: gives(webhookRegistered),
  }),
  forgetWebhook: route("DELETE /alerts/webhook", "operator", "gateway", {
    doc: "Alerts are told to nobody any more, and what waits is dropped.",
    answer: gives(webhookRemoved),
  }),
  setMail: route("PUT /alerts/mail", "operator", "gateway", {
    doc: "Alerts are told to somebody by mail: when one is opened, acknowledged or over, and once now, each until the server has taken it, for a day. 409: that server is inside of the installation.",
    body: sends(mailWord),
    answer: gives(mailRegistered),
  }),
  forgetMail: route("DELETE /alerts/mail", "operator", "gateway", {
    doc: "Alerts are told to nobody by mail any more, and what waits is dropped.",
    answer: gives(mailRemoved),
  }),
  registerPower: route("PUT /hosts/{name}/power", "operator", "gateway", {
    doc: "What switches a host's power, apart from the host. It is tried and nothing is switched: another host reads there that this one is on, with the UUID that this one says it has. 409: that is not so, and why.",
    body: sends(powerController),
    answer: gives(powerRegistered),
  }),
  forgetPower: route("DELETE /hosts/{name}/power", "operator", "gateway", {
    doc: "Forgets the management controller of a host, and its password.",
    answer: gives(powerRemoved),
  }),

  ...observationRoutes,
  ...placementRoutes,
  ...networkRoutes,

  // --- storage, and what was lost ---------------------------------------------------------------------------------
  listBin: route("GET /bin", "operator", "gateway", {
    doc: "Files of deleted volumes that storage servers keep for a time, the last one first.",
    more: "`files` come in pages for whoever asks so; each page has all of `missing`.",
    query: paged,
    answer: givesPagesOf(storage.binList),
  }),
  restoreFromBin: route("POST /bin/{server}/{file}", "operator", "gateway", {
    doc: "The next volume at the file's path begins with it.",
    answer: gives(storage.binEntry),
  }),
  emptyBin: route("DELETE /bin/{server}/{file}", "operator", "gateway", {
    doc: "Takes a file away for good.",
    answer: gives(storage.binFile),
  }),
  adoptServer: route("POST /servers/{server}/adopt", "operator", "gateway", {
    doc: "Takes what a storage server has that is older than others knew it.",
    answer: gives(storage.serverAdopted),
  }),
  returnStore: route("PUT /cells/{cell}/store", "operator", "controller", {
    doc: "Gives a controller that has lost its store a copy of it, `state.sqlite` of a backup's part, with which it starts again.",
    more: "Refused with 400 for what is no store of this cell's controller, 409 where nobody says that its store was lost.",
    body: { types: [bytesType], schema: null },
    answer: gives(storage.storeReturned),
  }),
  listOrphans: route("GET /orphans", "operator", "gateway", {
    doc: "Documents that stay in force although their client, whose store was lost, does not desire them any more.",
    more: "`services` come in pages for whoever asks so; each page has all of `missing`.",
    query: paged,
    answer: givesPagesOf(storage.orphanList),
  }),
  releaseOrphans: route("POST /orphans/{peer}", "operator", "gateway", {
    doc: "What this service says counts again, as if its store had not been lost.",
    answer: gives(storage.orphanList),
  }),
  adoptOrphan: route("POST /orphans/{service}/{peer}", "operator", "gateway", {
    doc: "What `service` has under this key, and `peer` did not repeat, is what that desires under another one: a child cell.",
    query: { key: must(text(), "As the list has it: of a child cell.") },
    answer: gives(storage.serviceOrphans),
  }),
  endOrphans: route("DELETE /orphans/{service}/{peer}", "operator", "gateway", {
    doc: "Ends documents that `service` keeps of `peer`: those that are named, or all.",
    query: {
      all: may(boolean, "All that the client did not repeat."),
      key: several(text(), "A document, by its key. It may be given several times."),
    },
    answer: gives(storage.serviceOrphans),
  }),

  // --- backups ----------------------------------------------------------------------------------------------------
  orderBackup: route("POST /management/orders", "operator", "gateway", {
    doc: "An order for a backup of the management that is sealed to this public key, signed by the authority.",
    body: sends(storage.backupRecipient),
    answer: gives(storage.signedBackupOrder),
  }),
  orderBackupAtRoot: route("POST /cells/{cell}/backup", "operator", "root-controller", {
    doc: "The same, where the gateway asks for it.",
    body: sends(storage.backupRecipient),
    answer: gives(storage.signedBackupOrder),
  }),
  readBackupPart: route("POST /management/parts/{name}", "operator", "gateway", {
    doc: "What one process keeps, sealed as the order says.",
    body: sends(storage.signedBackupOrder),
    answer: givesBytes(bytesType),
  }),
  listBackups: route("GET /management/backups", "operator", "gateway", {
    doc: "Backups that the schedule has left on storage servers, oldest first.",
    more: "`backups` come in pages for whoever asks so; each page has all of `missing`.",
    query: paged,
    answer: givesPagesOf(storage.backupList),
  }),
  readBackup: route("GET /management/backups/{name}", "operator", "gateway", {
    doc: "One of them, sealed to the operator's key.",
    answer: givesBytes(bytesType),
  }),

  ...signInRoutes,
  // --- tenants ----------------------------------------------------------------------------------------------------
  ...tenantRoutes,
  ...poolRoutes,
  ...volumeRoutes,
} as const satisfies { readonly [name: string]: Route };

export type Routes = typeof routes;
export type RouteName = keyof Routes;
/** Names of the routes that a process serves. */
export type ServedAt<S extends Server> = { [N in RouteName]: Routes[N]["at"] extends S ? N : never }[RouteName];
export const routeNames = Object.keys(routes) as readonly RouteName[];
/** Without what is known of each at compile time. */
export const routeOf = (name: RouteName): Route => routes[name];

/** Of the names in paths. */
export const parameterDocs: Readonly<Record<string, string>> = {
  cell: "Name of the cell; a child cell's has those of the cells around it behind its own: `db.shop`.",
  path: element,
  id: "Of the credential, the part of it between the dots; of a share, as its volume has it.",
  name: "Name of the machine, image, process or backup; of a host of a pool the one that its owner gave it.",
  server: "Name of the storage server.",
  key: "Id of the access key.",
  file: "Name of the file, as the list of the bin gives it.",
  peer: "Name of the service whose documents they are: `controller.shop`.",
  service: "Name of the service that keeps them.",
  uid: "UID of the domain, account, user, role, pool or persistent volume, as their lists have it.",
};
