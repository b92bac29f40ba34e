import { existsSync } from "node:fs";
import { setDefaultCACertificates } from "node:tls";
import type {
  BackupList,
  BinEntry,
  BinList,
  CellSummary,
  Changed,
  ConnectionAnswer,
  CredentialSummary,
  ElementAnswer,
  ExecAnswer,
  ExecRequest,
  ForcedStop,
  HostEnd,
  HostPowerOff,
  ImageAdded,
  ImageRemoved,
  ImageSummary,
  InstallationStatus,
  Moved,
  MoveOrder,
  NewCredential,
  OrphanList,
  Refusal,
  ServerAdopted,
  ServiceOrphans,
  StoreReturned,
} from "../../model/api.ts";
import type { Bundle } from "../../model/cell/cell.ts";
import type { SessionGrant, SessionRequest } from "../../model/cell/session-messages.ts";
import { type Asking, addressOf, type ContractClient, createClient } from "../../model/contract/client/client.ts";
import type {
  HaReport,
  MailRegistered,
  MailRemoved,
  MailWord,
  PowerControllerWord,
  PowerRegistered,
  PowerRemoved,
  WebhookRegistered,
  WebhookRemoved,
  WebhookWord,
} from "../../model/contract/operator/ha.ts";
import type { HostJoin, HostJoining } from "../../model/contract/operator/host-join.ts";
import type { NetworkConfigured } from "../../model/contract/operator/network.ts";
import type { ZoneKeyAnswer, ZoneKeyWord, ZoneReport } from "../../model/contract/operator/zone.ts";
import type { AnswerOf } from "../../model/contract/route.ts";
import type { RouteName, Routes } from "../../model/contract/routes.ts";
import {
  isConditional,
  mostOfPage,
  nextHeader,
  type PagedList,
  type PartlyPaged,
} from "../../model/contract/tenancy/pages.ts";
import type { CredentialNote } from "../../model/contract/values.ts";
import type { Diagnostic } from "../../model/diagnostics/diagnostic.ts";
import { printableLines } from "../../model/diagnostics/render-diagnostic.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import type { JsonPatchOperation } from "../../model/json/patch.ts";
import type { SignedOrder } from "../../runtime/backup/order.ts";
import { readEventStream } from "../../runtime/http/event-stream.ts";
import { CommandFailure, exitCodes, unreachable, usage } from "../terminal/failure.ts";
import { type ClientConfiguration, type CloudChoice, chosenCloud, readClientConfiguration } from "./client-config.ts";
import type { Connection } from "./connection.ts";
import { AnswerLost, isBroken, keyHeader, newKey, repeated } from "./repeated.ts";
import { type ImageUpload, sendFile } from "./upload.ts";

/** The gateway refused the request. */
export class Refused extends CommandFailure {
  readonly status: number;
  readonly code: string;
  readonly diagnostics: readonly Diagnostic[];
  /** Of a JSON Patch: where it is wrong, or which of its tests failed. */
  readonly patch: Refusal["error"]["patch"] | null;
  constructor(status: number, { error }: Refusal) {
    // The message may quote names that others chose, or a guest: control characters are escaped.
    super(exitCodes.refused, printableLines(error.message));
    this.status = status;
    this.code = error.code;
    this.diagnostics = error.diagnostics ?? [];
    this.patch = error.patch ?? null;
  }
}

const isRefusal = (body: unknown): body is Refusal =>
  typeof body === "object" && body !== null && "error" in body && typeof body.error === "object" && body.error !== null;

/** Makes an error of an answer that is not a success. */
export const refusalOf = (status: number, text: string): Refused => {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    answer = undefined;
  }
  const otherwise = { error: { code: "gateway", message: `the gateway answered ${status}: ${text.slice(0, 500)}` } };
  return new Refused(status, isRefusal(answer) ? answer : otherwise);
};

/** Conditions of a change. */
export interface Conditions {
  /** The model has this version; absent: any. */
  readonly version?: number;
  /** Volumes whose data may be lost with it; each a path, or several with commas in between. */
  readonly allowDestroy?: readonly string[];
  /** Of `delete`: what has left the model there and is held, in place of what is in it. */
  readonly dropHeld?: boolean;
  /** Under which it is asked for, however often; absent: by this call alone. */
  readonly key?: string;
  /** Its answer was lost, and it is asked for again. */
  readonly onRepeat?: () => void;
}

const queryOf = (dryRun: boolean, { allowDestroy = [] }: Conditions) => ({ dryRun: dryRun || undefined, allowDestroy });
const headersOf = ({ version }: Conditions): Readonly<Record<string, string>> =>
  version === undefined ? {} : { "if-match": `"${version}"` };

type EventRoute = "followCell" | "followServices" | "follow";

/** Client of the published contract (`model/contract/routes.ts`). Every method rejects with `Refused`, or with `unreachable`. */
export class Client {
  readonly #configuration: ClientConfiguration;
  /** Rejects with what tells a person that nothing answers. */
  readonly #fetch: typeof fetch;
  readonly #gateway: ContractClient;

  /** How the user chose this cloud; absent if a program made the client. */
  readonly cloud: CloudChoice | undefined;

  readonly #tag: string | undefined;

  /** @param tag which what is changed must have, of what a list shows */
  constructor(configuration: ClientConfiguration, cloud?: CloudChoice, tag?: string) {
    this.#tag = tag;
    this.#configuration = configuration;
    this.cloud = cloud;
    const { url, credential } = configuration;
    this.#fetch = (input, init) =>
      fetch(input, init).catch((error: unknown) => {
        const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
        const failure = unreachable(url, cause, cloud?.by);
        throw isBroken(cause) ? new AnswerLost(failure.exitCode, failure.message) : failure;
      });
    this.#gateway = createClient({ fetch: this.#fetch, url, credential, refuse: refusalOf });
  }

  /** One route of the contract, as it is. */
  ask<N extends RouteName>(name: N, asking: Asking<N>): Promise<AnswerOf<Routes[N]["answer"]>> {
    const demanded = this.#tag !== undefined && isConditional(name) ? { "if-match": `"${this.#tag}"` } : {};
    return this.#gateway.ask(name, { ...asking, headers: { ...demanded, ...asking.headers } });
  }

  /** A change: asked for again, under its key, where its answer was lost. */
  #change<N extends RouteName>(
    name: N,
    asking: Asking<N>,
    { key = newKey(), onRepeat }: Pick<Conditions, "key" | "onRepeat"> = {},
  ): Promise<AnswerOf<Routes[N]["answer"]>> {
    const keyed = { ...asking, headers: { ...keyHeader(key), ...asking.headers } };
    return repeated(() => this.#gateway.ask(name, keyed), onRepeat);
  }
  /** Of a change that knows no conditions. */
  changed<N extends RouteName>(name: N, asking: Asking<N>): Promise<AnswerOf<Routes[N]["answer"]>> {
    return this.#change(name, asking);
  }
  /** The same unless nothing is to be changed. */
  #planned<N extends RouteName>(
    name: N,
    asking: Asking<N>,
    dryRun: boolean,
    conditions: Conditions = {},
  ): Promise<AnswerOf<Routes[N]["answer"]>> {
    return dryRun ? this.#gateway.ask(name, asking) : this.#change(name, asking, conditions);
  }

  /** The same, whose changes are refused where what they change has another tag. */
  demanding = (tag: string): Client => new Client(this.#configuration, this.cloud, tag);

  /** All of a list that comes in pages, whatever comes or goes meanwhile; an older gateway gives it in one. */
  async all<N extends Exclude<PagedList, PartlyPaged>>(
    name: N,
    query: object = {},
  ): Promise<AnswerOf<Routes[N]["answer"]>> {
    const items: unknown[] = [];
    for (let after: string | undefined; ; ) {
      const asking = { parameters: {}, query: { ...query, limit: mostOfPage, after } } as unknown as Asking<N>;
      const answer = await this.#gateway.open(name, asking);
      items.push(...((await answer.json()) as readonly unknown[]));
      after = answer.headers.get(nextHeader) ?? undefined;
      if (after === undefined) return items as unknown as AnswerOf<Routes[N]["answer"]>;
    }
  }

  cells(): Promise<readonly CellSummary[]> {
    return this.#gateway.ask("listCells", { parameters: {} });
  }

  status(): Promise<InstallationStatus> {
    return this.#gateway.ask("readStatus", { parameters: {} });
  }

  /** An order for a backup that is sealed to this X25519 public key. */
  backupOrder(recipient: string): Promise<SignedOrder> {
    return this.#gateway.ask("orderBackup", { parameters: {}, body: { recipient } });
  }

  /** The sealed part of one process. */
  async backupPart(name: string, order: SignedOrder): Promise<AsyncIterable<Uint8Array>> {
    const { body: part } = await this.#gateway.open("readBackupPart", { parameters: { name }, body: order });
    if (part === null) throw new CommandFailure(exitCodes.refused, `"${name}" answered with nothing`);
    return part;
  }

  /** What the schedule has left on storage servers. */
  keptBackups(): Promise<BackupList> {
    return this.#gateway.ask("listBackups", { parameters: {} });
  }

  async keptBackup(name: string): Promise<AsyncIterable<Uint8Array>> {
    const { body } = await this.#gateway.open("readBackup", { parameters: { name } });
    if (body === null) throw new CommandFailure(exitCodes.refused, `the backup ${name} is empty`);
    return body;
  }

  /** All services' numbers in Prometheus' text format, or one service's. */
  async metrics(service: string | null): Promise<string> {
    const query = { service: service ?? undefined };
    return (await this.#gateway.open("readMetrics", { parameters: {}, query })).text();
  }

  /** A stream of events, until the gateway ends it. `opened` is called when it stands. */
  async *stream<N extends EventRoute>(
    name: N,
    asking: Asking<N>,
    opened?: () => void,
  ): AsyncGenerator<AnswerOf<Routes[N]["answer"]>> {
    const response = await this.#gateway.open(name, asking);
    opened?.();
    if (response.body !== null) yield* readEventStream<AnswerOf<Routes[N]["answer"]>>(response.body);
  }

  /** `path` is that of the document, the cell's component first; "" is the whole document. */
  model(cell: string, path: string, withState: boolean): Promise<Json> {
    const query = { state: withState || undefined };
    return path === ""
      ? this.#gateway.ask("readModel", { parameters: { cell }, query })
      : this.#gateway.ask("readElement", { parameters: { cell, path }, query });
  }

  apply(cell: string, bundle: Bundle, dryRun: boolean, conditions: Conditions = {}): Promise<Changed> {
    const asking = { query: queryOf(dryRun, conditions), headers: headersOf(conditions), body: bundle };
    return this.#planned("putModel", { parameters: { cell }, ...asking }, dryRun, conditions);
  }

  /** One part of the model, an attribute too; `path` as above. */
  put(cell: string, path: string, json: Json, dryRun: boolean, conditions: Conditions = {}): Promise<Changed> {
    const asking = { query: queryOf(dryRun, conditions), headers: headersOf(conditions), body: json };
    return this.#planned("putElement", { parameters: { cell, path }, ...asking }, dryRun, conditions);
  }

  delete(cell: string, path: string, dryRun: boolean, conditions: Conditions = {}): Promise<Changed> {
    const query = { ...queryOf(dryRun, conditions), dropHeld: conditions.dropHeld };
    const asking = { query, headers: headersOf(conditions) };
    return path === ""
      ? this.#planned("deleteModel", { parameters: { cell }, ...asking }, dryRun, conditions)
      : this.#planned("deleteElement", { parameters: { cell, path }, ...asking }, dryRun, conditions);
  }

  /** Operations of a JSON Patch on the whole model. What they are is checked by the controller. */
  patch(
    cell: string,
    operations: readonly JsonPatchOperation[],
    dryRun: boolean,
    conditions: Conditions = {},
  ): Promise<Changed> {
    const asking = { query: queryOf(dryRun, conditions), headers: headersOf(conditions), body: operations };
    return this.#planned("patchModel", { parameters: { cell }, ...asking }, dryRun, conditions);
  }

  /**
   * A request as somebody has written it, for `cells api`.
   * @param address a path of the contract with its query
   */
  async raw(method: string, address: string, body: Blob | null, type: string): Promise<Response> {
    const { url, credential } = this.#configuration;
    const whole = URL.parse(address, url);
    // Otherwise the credential would go to whoever the address names.
    if (!address.startsWith("/") || whole === null || whole.origin !== new URL(url).origin)
      throw usage(`\`${address}\` is no path of the REST interface: it begins with one /, for example /cells`);
    const headers = { authorization: `Bearer ${credential}`, ...(body === null ? {} : { "content-type": type }) };
    const response = await this.#fetch(whole, { method, headers, body, redirect: "manual" });
    if (response.ok) return response;
    throw refusalOf(response.status, await response.text());
  }

  get url(): string {
    return this.#configuration.url;
  }

  /** See `ClientConfiguration`. */
  get authority(): string | undefined {
    return this.#configuration.authority;
  }

  credentials(cell: string): Promise<readonly CredentialSummary[]> {
    return this.#gateway.ask("listCredentials", { parameters: { cell } });
  }

  addCredential(cell: string, what: CredentialNote): Promise<NewCredential> {
    return this.#gateway.ask("addCredential", { parameters: { cell }, body: what });
  }

  admitHost(name: string, join: HostJoin): Promise<HostJoining> {
    return this.#gateway.ask("admitHost", { parameters: { cell: "root", name }, body: join });
  }

  hostEnd(name: string): Promise<HostEnd> {
    return this.#gateway.ask("readHostEnd", { parameters: { cell: "root", name } });
  }

  endHost(name: string, word: HostPowerOff): Promise<HostEnd> {
    return this.#gateway.ask("endHost", { parameters: { cell: "root", name }, body: word });
  }

  async removeHost(name: string): Promise<void> {
    await this.#gateway.open("removeHost", { parameters: { cell: "root", name } });
  }

  async revokeCredential(cell: string, id: string): Promise<void> {
    await this.#change("revokeCredential", { parameters: { cell, id } });
  }

  whyElement(cell: string, path: string): Promise<ElementAnswer> {
    return this.#gateway.ask("explain", { parameters: { cell }, query: { element: path } }) as Promise<ElementAnswer>;
  }

  why(cell: string, { from, to, protocol, port }: Connection): Promise<ConnectionAnswer> {
    const query = { from, to, protocol, port: port ?? undefined };
    return this.#gateway.ask("explain", { parameters: { cell }, query }) as Promise<ConnectionAnswer>;
  }

  move(cell: string, body: MoveOrder, dryRun: boolean): Promise<Moved> {
    const query = { dryRun: dryRun || undefined };
    return this.#planned("moveVm", { parameters: { cell }, query, body }, dryRun);
  }

  forceStop(cell: string, vm: string, dryRun: boolean): Promise<ForcedStop> {
    const query = { dryRun: dryRun || undefined };
    return this.#planned("forceStop", { parameters: { cell }, query, body: { vm } }, dryRun);
  }

  exec(cell: string, request: ExecRequest): Promise<ExecAnswer> {
    return this.#gateway.ask("exec", { parameters: { cell }, body: request });
  }

  /** A capability for one session, and the address of the WebSocket that it opens. */
  async session(
    cell: string,
    request: SessionRequest,
    signal?: AbortSignal,
  ): Promise<{ readonly grant: SessionGrant; readonly url: string }> {
    const parameters = { cell };
    const asked = { parameters, body: request, ...(signal === undefined ? {} : { signal }) };
    const grant = await this.#gateway.ask("grantSession", asked);
    return { grant, url: `${this.#configuration.url.replace(/^http/, "ws")}${addressOf("openSession", parameters)}` };
  }

  images(): Promise<readonly ImageSummary[]> {
    return this.#gateway.ask("listImages", { parameters: {} });
  }

  /** What is so large, or lasts so long, that it goes by a connection of its own. Rejects like the other methods. */
  async apart<T>(
    address: string,
    send: (url: string, credential: string) => Promise<{ readonly status: number; readonly text: string }>,
  ): Promise<T> {
    const { status, text } = await send(`${this.#configuration.url}${address}`, this.#configuration.credential);
    if (status !== 200) throw refusalOf(status, text);
    return JSON.parse(text) as T;
  }

  /** Sends the file as it is read. */
  addImage(upload: ImageUpload): Promise<ImageAdded> {
    const { name, format, replace } = upload;
    const address = addressOf("addImage", { name }, { format, replace: replace || undefined });
    return this.apart(address, (url, credential) => sendFile(url, credential, upload));
  }

  deleteImage(name: string): Promise<ImageRemoved> {
    return this.#gateway.ask("removeImage", { parameters: { name } });
  }

  /** A cell's controller starts again with this file as its store. */
  returnStore(cell: string, file: string, bytes: number): Promise<StoreReturned> {
    const upload = { file, bytes, onProgress: () => undefined };
    return this.apart(addressOf("returnStore", { cell }, {}), (url, credential) => sendFile(url, credential, upload));
  }

  ha(): Promise<HaReport> {
    return this.#gateway.ask("readHa", { parameters: {} });
  }

  /** Null: after many hosts were lost at once. */
  pauseHa(): Promise<HaReport> {
    return this.#gateway.ask("pauseHa", { parameters: {} });
  }

  releaseHa(vm: string | null): Promise<HaReport> {
    return this.#gateway.ask("releaseHa", { parameters: {}, ...(vm === null ? {} : { query: { vm } }) });
  }

  cancelHa(vm: string): Promise<HaReport> {
    return this.#gateway.ask("cancelHa", { parameters: {}, query: { vm } });
  }

  retryHa(vm: string): Promise<HaReport> {
    return this.#gateway.ask("retryHa", { parameters: {}, query: { vm } });
  }

  acknowledgeAlert(kind: string, subject: string): Promise<HaReport> {
    const query = { kind, ...(subject === "" ? {} : { subject }) };
    return this.#gateway.ask("acknowledgeAlert", { parameters: {}, query });
  }

  setWebhook(word: WebhookWord): Promise<WebhookRegistered> {
    return this.#gateway.ask("setWebhook", { parameters: {}, body: word });
  }

  forgetWebhook(): Promise<WebhookRemoved> {
    return this.#gateway.ask("forgetWebhook", { parameters: {} });
  }

  setMail(word: MailWord): Promise<MailRegistered> {
    return this.#gateway.ask("setMail", { parameters: {}, body: word });
  }

  forgetMail(): Promise<MailRemoved> {
    return this.#gateway.ask("forgetMail", { parameters: {} });
  }

  registerPower(host: string, word: PowerControllerWord): Promise<PowerRegistered> {
    return this.#gateway.ask("registerPower", { parameters: { name: host }, body: word });
  }

  forgetPower(host: string): Promise<PowerRemoved> {
    return this.#gateway.ask("forgetPower", { parameters: { name: host } });
  }

  zone(): Promise<ZoneReport> {
    return this.#gateway.ask("readZone", { parameters: {} });
  }

  networkConfiguration(): Promise<NetworkConfigured> {
    return this.#gateway.ask("readNetworkConfiguration", { parameters: {} });
  }

  setNetworkConfiguration(body: JsonObject): Promise<NetworkConfigured> {
    return this.#gateway.ask("setNetworkConfiguration", { parameters: {}, body });
  }

  giveZoneKey(name: string, word: ZoneKeyWord): Promise<ZoneKeyAnswer> {
    return this.#gateway.ask("giveZoneKey", { parameters: { name }, body: word });
  }

  forgetZoneKey(name: string): Promise<ZoneKeyAnswer> {
    return this.#gateway.ask("forgetZoneKey", { parameters: { name } });
  }

  orphans(): Promise<OrphanList> {
    return this.#gateway.ask("listOrphans", { parameters: {} });
  }

  releaseOrphans(peer: string): Promise<OrphanList> {
    return this.#gateway.ask("releaseOrphans", { parameters: { peer } });
  }

  adoptOrphan(service: string, client: string, key: string): Promise<ServiceOrphans> {
    return this.#gateway.ask("adoptOrphan", { parameters: { service, peer: client }, query: { key } });
  }

  /** Without keys all that the client did not repeat. */
  endOrphans(service: string, client: string, keys: readonly string[]): Promise<ServiceOrphans> {
    const query = keys.length === 0 ? { all: true } : { key: keys };
    return this.#gateway.ask("endOrphans", { parameters: { service, peer: client }, query });
  }

  adoptServer(server: string): Promise<ServerAdopted> {
    return this.#gateway.ask("adoptServer", { parameters: { server } });
  }

  bin(): Promise<BinList> {
    return this.#gateway.ask("listBin", { parameters: {} });
  }

  restoreFromBin(server: string, file: string): Promise<BinEntry> {
    return this.#gateway.ask("restoreFromBin", { parameters: { server, file } });
  }

  async emptyBin(server: string, file: string): Promise<void> {
    await this.#gateway.open("emptyBin", { parameters: { server, file } });
  }
}

/** Of the cloud that is named: see `chosenCloud`. */
export const clientFromConfiguration = (directory?: string): Client => {
  const cloud = chosenCloud(directory);
  const configuration = readClientConfiguration(cloud.file);
  if (configuration === undefined) {
    const why = existsSync(cloud.file) ? "does not say where a gateway is, or cannot be read" : "is not there";
    const names = cloud.by === cloud.file ? "" : ` (${cloud.by})`;
    throw new CommandFailure(exitCodes.unreachable, `no cloud: ${cloud.file}${names} ${why}. ${cloud.remedy}`);
  }
  // Whoever else has a certificate that the system trusts is not the gateway.
  if (configuration.authority !== undefined) setDefaultCACertificates([configuration.authority]);
  return new Client(configuration, cloud);
};
