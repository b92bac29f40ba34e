import { setDefaultCACertificates } from "node:tls";
import {
  type BackupList,
  type BinEntry,
  type BinList,
  bundleMediaType,
  type CellEvent,
  type CellSummary,
  type Changed,
  type ConnectionAnswer,
  type CredentialSummary,
  type ElementAnswer,
  type ExecAnswer,
  type ExecRequest,
  type HostEnd,
  type HostJoin,
  type HostJoining,
  type HostPowerOff,
  type ImageAdded,
  type ImageRemoved,
  type ImageSummary,
  type InstallationStatus,
  type NewCredential,
  type OrphanList,
  type Refusal,
  type ServerAdopted,
  type ServiceOrphans,
} from "../model/api.ts";
import type { Bundle } from "../model/cell.ts";
import type { Diagnostic } from "../model/diagnostic.ts";
import type { Json } from "../model/json.ts";
import { printableLines } from "../model/render-diagnostic.ts";
import type { SessionGrant, SessionRequest } from "../model/sessions.ts";
import type { SignedOrder } from "../runtime/backup/order.ts";
import { readEventStream } from "../runtime/event-stream.ts";
import { type ClientConfiguration, clientConfigurationFile, readClientConfiguration } from "./client-config.ts";
import type { Connection } from "./connection.ts";
import { CommandFailure, exitCodes, unreachable } from "./failure.ts";
import { type ImageUpload, sendFile } from "./upload.ts";

/** The gateway said no, and why. */
export class Refused extends CommandFailure {
  readonly status: number;
  readonly code: string;
  readonly diagnostics: readonly Diagnostic[];
  constructor(status: number, { error }: Refusal) {
    // It may quote names of others, and a guest.
    super(exitCodes.refused, printableLines(error.message));
    this.status = status;
    this.code = error.code;
    this.diagnostics = error.diagnostics ?? [];
  }
}

const isRefusal = (body: unknown): body is Refusal =>
  typeof body === "object" && body !== null && "error" in body && typeof body.error === "object" && body.error !== null;

const binUrl = (server: string, file: string): string =>
  `/bin/${encodeURIComponent(server)}/${encodeURIComponent(file)}`;

/** Of an answer that is no success. */
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

const inUrl = (path: string): string => path.split("/").map(encodeURIComponent).join("/");
const modelUrl = (cell: string, path: string): string =>
  `/cells/${encodeURIComponent(cell)}/model${path === "" ? "" : `/${inUrl(path)}`}`;

const hostUrl = (name: string): string => `/cells/root/hosts/${encodeURIComponent(name)}`;

interface Body {
  readonly type: string;
  readonly text: string;
}
/** On which a change is made. */
export interface Conditions {
  /** The model has this version; absent: any. */
  readonly version?: number;
  /** Volumes whose data may be lost with it; each a path, or several with commas in between. */
  readonly allowDestroy?: readonly string[];
}

/** Client of the published contract (`model/api.ts`). Every method rejects with `Refused`, or that nothing answers. */
export class Client {
  readonly #configuration: ClientConfiguration;

  constructor(configuration: ClientConfiguration) {
    this.#configuration = configuration;
  }

  async #send(
    method: string,
    path: string,
    body?: Body,
    signal?: AbortSignal,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    const { url, credential } = this.#configuration;
    const headers: Record<string, string> = { authorization: `Bearer ${credential}`, ...more };
    if (body !== undefined) headers["content-type"] = body.type;
    let response: Response;
    try {
      response = await fetch(`${url}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: body.text }),
        ...(signal === undefined ? {} : { signal }),
      });
    } catch (error) {
      throw unreachable(url, error instanceof Error && error.cause !== undefined ? error.cause : error);
    }
    if (response.ok) return response;
    throw refusalOf(response.status, await response.text());
  }

  async #get<T>(path: string): Promise<T> {
    return (await (await this.#send("GET", path)).json()) as T;
  }

  cells(): Promise<readonly CellSummary[]> {
    return this.#get("/cells");
  }

  status(): Promise<InstallationStatus> {
    return this.#get("/status");
  }

  /** An order for a backup that is sealed to this X25519 public key. */
  async backupOrder(recipient: string): Promise<SignedOrder> {
    const body = { type: "application/json", text: JSON.stringify({ recipient }) };
    return (await (await this.#send("POST", "/management/orders", body)).json()) as SignedOrder;
  }

  /** The sealed part of one process. */
  async backupPart(name: string, order: SignedOrder): Promise<AsyncIterable<Uint8Array>> {
    const body = { type: "application/json", text: JSON.stringify(order) };
    const { body: part } = await this.#send("POST", `/management/parts/${encodeURIComponent(name)}`, body);
    if (part === null) throw new CommandFailure(exitCodes.refused, `"${name}" answered with nothing`);
    return part;
  }

  /** What the schedule has left on storage servers. */
  keptBackups(): Promise<BackupList> {
    return this.#get("/management/backups");
  }

  async keptBackup(name: string): Promise<AsyncIterable<Uint8Array>> {
    const { body } = await this.#send("GET", `/management/backups/${encodeURIComponent(name)}`);
    if (body === null) throw new CommandFailure(exitCodes.refused, `the backup ${name} is empty`);
    return body;
  }

  /** All services' numbers in Prometheus' text format, or one service's. */
  async metrics(service: string | null): Promise<string> {
    const query = service === null ? "" : `?service=${encodeURIComponent(service)}`;
    return (await this.#send("GET", `/metrics${query}`)).text();
  }

  /** A stream of events at a path of the contract, until the gateway ends it. `opened` is called when it stands. */
  async *stream<E>(
    path: string,
    { signal, opened }: { readonly signal?: AbortSignal; readonly opened?: () => void } = {},
  ): AsyncGenerator<E> {
    const response = await this.#send("GET", path, undefined, signal);
    opened?.();
    if (response.body !== null) yield* readEventStream<E>(response.body);
  }

  /** `path` is that of the document, the cell's component first; "" is the whole document. */
  model(cell: string, path: string, withState: boolean): Promise<Json> {
    return this.#get(`${modelUrl(cell, path)}${withState ? "?state=true" : ""}`);
  }

  async apply(cell: string, bundle: Bundle, dryRun: boolean, conditions: Conditions = {}): Promise<Changed> {
    const body = { type: bundleMediaType, text: JSON.stringify(bundle) };
    return this.#change("PUT", modelUrl(cell, ""), dryRun, conditions, body);
  }

  async delete(cell: string, path: string, dryRun: boolean, conditions: Conditions = {}): Promise<Changed> {
    return this.#change("DELETE", modelUrl(cell, path), dryRun, conditions);
  }

  async #change(
    method: "PUT" | "DELETE",
    url: string,
    dryRun: boolean,
    { version, allowDestroy = [] }: Conditions,
    body?: Body,
  ): Promise<Changed> {
    const query = new URLSearchParams(dryRun ? { dryRun: "true" } : {});
    for (const path of allowDestroy) query.append("allowDestroy", path);
    const headers = version === undefined ? {} : { "if-match": `"${version}"` };
    const request = `${url}${query.size === 0 ? "" : `?${query}`}`;
    return (await (await this.#send(method, request, body, undefined, headers)).json()) as Changed;
  }

  get url(): string {
    return this.#configuration.url;
  }

  /** See `ClientConfiguration`. */
  get authority(): string | undefined {
    return this.#configuration.authority;
  }

  credentials(cell: string): Promise<readonly CredentialSummary[]> {
    return this.#get(`/cells/${encodeURIComponent(cell)}/credentials`);
  }

  async addCredential(cell: string, note: string): Promise<NewCredential> {
    const body = { type: "application/json", text: JSON.stringify({ note }) };
    const response = await this.#send("POST", `/cells/${encodeURIComponent(cell)}/credentials`, body);
    return (await response.json()) as NewCredential;
  }

  async admitHost(name: string, join: HostJoin): Promise<HostJoining> {
    const body = { type: "application/json", text: JSON.stringify(join) };
    return (await (await this.#send("PUT", hostUrl(name), body)).json()) as HostJoining;
  }

  hostEnd(name: string): Promise<HostEnd> {
    return this.#get(`${hostUrl(name)}/end`);
  }

  async endHost(name: string, word: HostPowerOff): Promise<HostEnd> {
    const body = { type: "application/json", text: JSON.stringify(word) };
    return (await (await this.#send("PUT", `${hostUrl(name)}/end`, body)).json()) as HostEnd;
  }

  async removeHost(name: string): Promise<void> {
    await this.#send("DELETE", hostUrl(name));
  }

  async revokeCredential(cell: string, id: string): Promise<void> {
    await this.#send("DELETE", `/cells/${encodeURIComponent(cell)}/credentials/${encodeURIComponent(id)}`);
  }

  whyElement(cell: string, path: string): Promise<ElementAnswer> {
    return this.#get(`/cells/${encodeURIComponent(cell)}/why?${new URLSearchParams({ element: path })}`);
  }

  why(cell: string, { from, to, protocol, port }: Connection): Promise<ConnectionAnswer> {
    const query = new URLSearchParams({ from, to, protocol, ...(port === null ? {} : { port: String(port) }) });
    return this.#get(`/cells/${encodeURIComponent(cell)}/why?${query}`);
  }

  async exec(cell: string, request: ExecRequest): Promise<ExecAnswer> {
    const body = { type: "application/json", text: JSON.stringify(request) };
    const response = await this.#send("POST", `/cells/${encodeURIComponent(cell)}/exec`, body);
    return (await response.json()) as ExecAnswer;
  }

  /** A capability for one session, and the address of the WebSocket that it opens. */
  async session(
    cell: string,
    request: SessionRequest,
  ): Promise<{ readonly grant: SessionGrant; readonly url: string }> {
    const path = `/cells/${encodeURIComponent(cell)}/sessions`;
    const body = { type: "application/json", text: JSON.stringify(request) };
    const grant = (await (await this.#send("POST", path, body)).json()) as SessionGrant;
    return { grant, url: `${this.#configuration.url.replace(/^http/, "ws")}${path}` };
  }

  images(): Promise<readonly ImageSummary[]> {
    return this.#get("/images");
  }

  /** Sends the file as it is read. Rejects like the other methods. */
  async addImage(upload: ImageUpload): Promise<ImageAdded> {
    const query = new URLSearchParams({ format: upload.format, ...(upload.replace ? { replace: "true" } : {}) });
    const url = `${this.#configuration.url}/images/${encodeURIComponent(upload.name)}?${query}`;
    const { status, text } = await sendFile(url, this.#configuration.credential, upload);
    if (status !== 200) throw refusalOf(status, text);
    return JSON.parse(text) as ImageAdded;
  }

  async deleteImage(name: string): Promise<ImageRemoved> {
    return (await (await this.#send("DELETE", `/images/${encodeURIComponent(name)}`)).json()) as ImageRemoved;
  }

  orphans(): Promise<OrphanList> {
    return this.#get("/orphans");
  }

  async releaseOrphans(peer: string): Promise<OrphanList> {
    return (await (await this.#send("POST", `/orphans/${encodeURIComponent(peer)}`)).json()) as OrphanList;
  }

  /** Without keys all that the client did not repeat. */
  async endOrphans(service: string, client: string, keys: readonly string[]): Promise<ServiceOrphans> {
    const query = new URLSearchParams(keys.length === 0 ? { all: "true" } : "");
    for (const key of keys) query.append("key", key);
    const path = `/orphans/${encodeURIComponent(service)}/${encodeURIComponent(client)}?${query}`;
    return (await (await this.#send("DELETE", path)).json()) as ServiceOrphans;
  }

  async adoptServer(server: string): Promise<ServerAdopted> {
    return (await (await this.#send("POST", `/servers/${encodeURIComponent(server)}/adopt`)).json()) as ServerAdopted;
  }

  bin(): Promise<BinList> {
    return this.#get("/bin");
  }

  async restoreFromBin(server: string, file: string): Promise<BinEntry> {
    return (await (await this.#send("POST", binUrl(server, file))).json()) as BinEntry;
  }

  async emptyBin(server: string, file: string): Promise<void> {
    await this.#send("DELETE", binUrl(server, file));
  }

  /** The past first; with `follow` it goes on until the gateway ends it. */
  async *events(cell: string, follow: boolean): AsyncGenerator<CellEvent> {
    const response = await this.#send(
      "GET",
      `/cells/${encodeURIComponent(cell)}/events${follow ? "?follow=true" : ""}`,
    );
    if (response.body === null) return;
    yield* readEventStream<CellEvent>(response.body);
  }
}

/** Reads the user's configuration. */
export const clientFromConfiguration = (): Client => {
  const configuration = readClientConfiguration();
  if (configuration === undefined) {
    throw new CommandFailure(
      exitCodes.unreachable,
      `${clientConfigurationFile()} does not say where the gateway is: \`cells up\` writes it, or set CELLS_CONFIG to another file`,
    );
  }
  // Whoever else has a certificate that the system trusts is not the gateway.
  if (configuration.authority !== undefined) setDefaultCACertificates([configuration.authority]);
  return new Client(configuration);
};
