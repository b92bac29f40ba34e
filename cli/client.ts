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
import { addressOf } from "../model/contract/client.ts";
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

const queryOf = (dryRun: boolean, { allowDestroy = [] }: Conditions) => ({ dryRun: dryRun || undefined, allowDestroy });

/** Client of the published contract (`model/contract/routes.ts`). Every method rejects with `Refused`, or that nothing answers. */
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
    return this.#get(addressOf("listCells", {}));
  }

  status(): Promise<InstallationStatus> {
    return this.#get(addressOf("readStatus", {}));
  }

  /** An order for a backup that is sealed to this X25519 public key. */
  async backupOrder(recipient: string): Promise<SignedOrder> {
    const body = { type: "application/json", text: JSON.stringify({ recipient }) };
    return (await (await this.#send("POST", addressOf("orderBackup", {}), body)).json()) as SignedOrder;
  }

  /** The sealed part of one process. */
  async backupPart(name: string, order: SignedOrder): Promise<AsyncIterable<Uint8Array>> {
    const body = { type: "application/json", text: JSON.stringify(order) };
    const { body: part } = await this.#send("POST", addressOf("readBackupPart", { name }), body);
    if (part === null) throw new CommandFailure(exitCodes.refused, `"${name}" answered with nothing`);
    return part;
  }

  /** What the schedule has left on storage servers. */
  keptBackups(): Promise<BackupList> {
    return this.#get(addressOf("listBackups", {}));
  }

  async keptBackup(name: string): Promise<AsyncIterable<Uint8Array>> {
    const { body } = await this.#send("GET", addressOf("readBackup", { name }));
    if (body === null) throw new CommandFailure(exitCodes.refused, `the backup ${name} is empty`);
    return body;
  }

  /** All services' numbers in Prometheus' text format, or one service's. */
  async metrics(service: string | null): Promise<string> {
    return (await this.#send("GET", addressOf("readMetrics", {}, { service: service ?? undefined }))).text();
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
    const query = { state: withState || undefined };
    return this.#get(
      path === "" ? addressOf("readModel", { cell }, query) : addressOf("readElement", { cell, path }, query),
    );
  }

  async apply(cell: string, bundle: Bundle, dryRun: boolean, conditions: Conditions = {}): Promise<Changed> {
    const body = { type: bundleMediaType, text: JSON.stringify(bundle) };
    return this.#change("PUT", addressOf("putModel", { cell }, queryOf(dryRun, conditions)), conditions, body);
  }

  async delete(cell: string, path: string, dryRun: boolean, conditions: Conditions = {}): Promise<Changed> {
    const query = queryOf(dryRun, conditions);
    const url =
      path === "" ? addressOf("deleteModel", { cell }, query) : addressOf("deleteElement", { cell, path }, query);
    return this.#change("DELETE", url, conditions);
  }

  async #change(method: "PUT" | "DELETE", url: string, { version }: Conditions, body?: Body): Promise<Changed> {
    const headers = version === undefined ? {} : { "if-match": `"${version}"` };
    return (await (await this.#send(method, url, body, undefined, headers)).json()) as Changed;
  }

  get url(): string {
    return this.#configuration.url;
  }

  /** See `ClientConfiguration`. */
  get authority(): string | undefined {
    return this.#configuration.authority;
  }

  credentials(cell: string): Promise<readonly CredentialSummary[]> {
    return this.#get(addressOf("listCredentials", { cell }));
  }

  async addCredential(cell: string, note: string): Promise<NewCredential> {
    const body = { type: "application/json", text: JSON.stringify({ note }) };
    const response = await this.#send("POST", addressOf("addCredential", { cell }), body);
    return (await response.json()) as NewCredential;
  }

  async admitHost(name: string, join: HostJoin): Promise<HostJoining> {
    const body = { type: "application/json", text: JSON.stringify(join) };
    return (await (
      await this.#send("PUT", addressOf("admitHost", { cell: "root", name }), body)
    ).json()) as HostJoining;
  }

  hostEnd(name: string): Promise<HostEnd> {
    return this.#get(addressOf("readHostEnd", { cell: "root", name }));
  }

  async endHost(name: string, word: HostPowerOff): Promise<HostEnd> {
    const body = { type: "application/json", text: JSON.stringify(word) };
    return (await (await this.#send("PUT", addressOf("endHost", { cell: "root", name }), body)).json()) as HostEnd;
  }

  async removeHost(name: string): Promise<void> {
    await this.#send("DELETE", addressOf("removeHost", { cell: "root", name }));
  }

  async revokeCredential(cell: string, id: string): Promise<void> {
    await this.#send("DELETE", addressOf("revokeCredential", { cell, id }));
  }

  whyElement(cell: string, path: string): Promise<ElementAnswer> {
    return this.#get(addressOf("explain", { cell }, { element: path }));
  }

  why(cell: string, { from, to, protocol, port }: Connection): Promise<ConnectionAnswer> {
    return this.#get(addressOf("explain", { cell }, { from, to, protocol, port: port ?? undefined }));
  }

  async exec(cell: string, request: ExecRequest): Promise<ExecAnswer> {
    const body = { type: "application/json", text: JSON.stringify(request) };
    const response = await this.#send("POST", addressOf("exec", { cell }), body);
    return (await response.json()) as ExecAnswer;
  }

  /** A capability for one session, and the address of the WebSocket that it opens. */
  async session(
    cell: string,
    request: SessionRequest,
  ): Promise<{ readonly grant: SessionGrant; readonly url: string }> {
    const path = addressOf("grantSession", { cell });
    const body = { type: "application/json", text: JSON.stringify(request) };
    const grant = (await (await this.#send("POST", path, body)).json()) as SessionGrant;
    return { grant, url: `${this.#configuration.url.replace(/^http/, "ws")}${path}` };
  }

  images(): Promise<readonly ImageSummary[]> {
    return this.#get(addressOf("listImages", {}));
  }

  /** Sends the file as it is read. Rejects like the other methods. */
  async addImage(upload: ImageUpload): Promise<ImageAdded> {
    const { name, format, replace } = upload;
    const url = `${this.#configuration.url}${addressOf("addImage", { name }, { format, replace: replace || undefined })}`;
    const { status, text } = await sendFile(url, this.#configuration.credential, upload);
    if (status !== 200) throw refusalOf(status, text);
    return JSON.parse(text) as ImageAdded;
  }

  async deleteImage(name: string): Promise<ImageRemoved> {
    return (await (await this.#send("DELETE", addressOf("removeImage", { name }))).json()) as ImageRemoved;
  }

  orphans(): Promise<OrphanList> {
    return this.#get(addressOf("listOrphans", {}));
  }

  async releaseOrphans(peer: string): Promise<OrphanList> {
    return (await (await this.#send("POST", addressOf("releaseOrphans", { peer }))).json()) as OrphanList;
  }

  /** Without keys all that the client did not repeat. */
  async endOrphans(service: string, client: string, keys: readonly string[]): Promise<ServiceOrphans> {
    const path = addressOf("endOrphans", { service, peer: client }, keys.length === 0 ? { all: true } : { key: keys });
    return (await (await this.#send("DELETE", path)).json()) as ServiceOrphans;
  }

  async adoptServer(server: string): Promise<ServerAdopted> {
    return (await (await this.#send("POST", addressOf("adoptServer", { server }))).json()) as ServerAdopted;
  }

  bin(): Promise<BinList> {
    return this.#get(addressOf("listBin", {}));
  }

  async restoreFromBin(server: string, file: string): Promise<BinEntry> {
    return (await (await this.#send("POST", addressOf("restoreFromBin", { server, file }))).json()) as BinEntry;
  }

  async emptyBin(server: string, file: string): Promise<void> {
    await this.#send("DELETE", addressOf("emptyBin", { server, file }));
  }

  /** The past first; with `follow` it goes on until the gateway ends it. */
  async *events(cell: string, follow: boolean): AsyncGenerator<CellEvent> {
    const response = await this.#send("GET", addressOf("followCell", { cell }, { follow: follow || undefined }));
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
