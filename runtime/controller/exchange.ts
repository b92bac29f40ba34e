import { createHash } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { Once } from "../../core/controller/requests/once.ts";
import type { ControllerRequest, ControllerResponse } from "../../core/controller/requests/requests.ts";
import type { Match } from "../../model/contract/match.ts";
import { keyHeader, readJsonBody } from "../../model/contract/request.ts";
import type { BodyOf, QueryOf } from "../../model/contract/route.ts";
import type { RouteName, Routes, ServedAt } from "../../model/contract/routes.ts";
import type { Json } from "../../model/json/json.ts";
import { bodyLimitBytes, parseJson, readBody, sendJson, sendRefusal } from "../http/http.ts";
import type { PeerRequest } from "../http/peer-handler.ts";
import type { ProcessConfiguration } from "../installation.ts";
import type { RunningService } from "../process/process.ts";
import type { Returning } from "./backups/return-store.ts";
import type { CellEvents } from "./events.ts";
import type { ControllerSessions } from "./sessions.ts";
import type { Caller } from "./tenants/callers.ts";
import type { Veils } from "./tenants/veiled.ts";

/** One request at a controller's edge: who asks what, and how it is answered. */
export interface EdgeContext {
  readonly configuration: ProcessConfiguration;
  readonly controller: NonNullable<ProcessConfiguration["controller"]>;
  readonly events: CellEvents;
  readonly request: (request: Json) => Promise<Json>;
  /** Records of who changed the cell; absent: none are read. */
  readonly audit?: RunningService["audit"];
  /** Absent: no store is taken back. */
  readonly returning?: Returning;
}
/** The controller's own; `openSession` is no request but a handshake: `createUpgrades`. */
export type Served = Exclude<ServedAt<"controller" | "root-controller">, "openSession">;
export interface Exchange<N extends RouteName = Served> {
  readonly name: N;
  readonly context: EdgeContext;
  /** Null: the Cell Manager. */
  readonly caller: Caller | null;
  readonly sessions: ControllerSessions | null;
  /** Null: the operator asks, who may learn of machines. */
  readonly veil: Veils | null;
  readonly incoming: PeerRequest;
  readonly response: ServerResponse;
  readonly query: QueryOf<Routes[N]["query"]>;
  readonly parameters: Match["parameters"];
}

export const ask = async (context: EdgeContext, request: ControllerRequest): Promise<ControllerResponse> =>
  (await context.request(request as unknown as Json)) as unknown as ControllerResponse;

/** @param done called before an answer of success */
export async function relay(
  { context, response }: Pick<Exchange, "context" | "response">,
  request: ControllerRequest,
  done: () => Promise<void> = async () => undefined,
): Promise<void> {
  const { status, body, version, replayed } = await ask(context, request);
  if (status === 200) await done();
  const headers = { etag: `"${version}"`, ...(replayed === true ? { [replayedHeader]: "true" } : {}) };
  sendJson(response, status, body, headers);
}

const replayedHeader = "idempotency-replayed";

/** What the controller is told of it, beside the rest of a request. @param body as it came */
export function onceOf({ incoming }: Pick<Exchange, "incoming">, body = ""): { readonly once?: Once } {
  const key = incoming.headers[keyHeader];
  if (typeof key !== "string") return {};
  const digest = createHash("sha256")
    .update(JSON.stringify([incoming.method, incoming.url, body]))
    .digest("hex");
  return { once: { key, digest } };
}

/** A body that is longer than it may be. */
export type TooLong = (mostBytes: number) => {
  readonly status: number;
  readonly code: string;
  readonly message: string;
};
const tooLarge: TooLong = (most) => ({
  status: 413,
  code: "too-large",
  message: `the body is larger than ${most / 1024 / 1024} MiB`,
});

/** The body as text; null when it was refused, which the client was then told. */
export async function textBody(
  { incoming, response }: Exchange,
  most = bodyLimitBytes,
  tooLong = tooLarge,
): Promise<string | null> {
  const text = await readBody(incoming.body, most);
  if (text.ok) return text.value;
  if (text.error === "too-large") {
    const { status, code, message } = tooLong(most);
    sendRefusal(response, status, code, message);
  } else
    sendRefusal(
      response,
      400,
      "bad-request",
      "the body is not text in UTF-8: send JSON (RFC 8259, section 8.1) or YAML in UTF-8",
    );
  return null;
}

/** The same as JSON. */
export async function jsonBody(exchange: Exchange): Promise<Json | null> {
  const text = await textBody(exchange);
  return text === null ? null : jsonIn(exchange, text);
}
export function jsonIn({ response }: Pick<Exchange, "response">, text: string): Json | null {
  const json = parseJson(text);
  if (json.ok && json.value !== null) return json.value;
  sendRefusal(response, 400, "bad-request", json.ok ? "the body is null" : json.error);
  return null;
}

/** The same as the table of routes has it. */
export async function bodyOf<N extends Served>(exchange: Exchange<N>): Promise<BodyOf<Routes[N]["body"]> | null> {
  return (await bodyOnce(exchange))?.body ?? null;
}
/** The same with what is said of its being made once. */
export async function bodyOnce<N extends Served>(
  exchange: Exchange<N>,
): Promise<{ readonly body: BodyOf<Routes[N]["body"]>; readonly once?: Once } | null> {
  const text = await textBody(exchange);
  const json = text === null ? null : jsonIn(exchange, text);
  if (text === null || json === null) return null;
  const body = readJsonBody(exchange.name, json);
  if (body.ok) return { body: body.value, ...onceOf(exchange, text) };
  sendRefusal(exchange.response, 400, "bad-request", body.error);
  return null;
}
