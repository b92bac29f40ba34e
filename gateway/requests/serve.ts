import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { keyHeader, keyRefusal, readJsonBody, readQuery } from "../../model/contract/request.ts";
import type { BodyOf, ParameterNames, QueryOf } from "../../model/contract/route.ts";
import { type RouteName, type Routes, routeOf, type ServedAt } from "../../model/contract/routes.ts";
import { parseJson } from "../../runtime/http/http.ts";
import { forClient } from "./ask-peer.ts";
import { refused } from "./refused.ts";

type Served = ServedAt<"gateway" | "caas">;
/** A request that was held to the table of routes. */
export interface Asked<N extends Served> {
  readonly parameters: { readonly [name in ParameterNames<Routes[N]["path"]>]: string };
  readonly query: QueryOf<Routes[N]["query"]>;
  /** Null where the route takes none, or takes bytes. */
  readonly body: BodyOf<Routes[N]["body"]> | null;
  readonly request: FastifyRequest;
}

/** Serves one row of the table of routes (`model/contract/routes.ts`). Nothing else is served by the gateway or CaaS itself. */
export function serveRoute<N extends Served>(
  app: FastifyInstance,
  name: N,
  handler: (asked: Asked<N>, reply: FastifyReply) => unknown,
  /** Of the body, in octets; absent: as much as a model may have. */
  bodyLimit?: number,
): void {
  add(app, name, bodyLimit === undefined ? {} : { bodyLimit }, async (request, reply) => {
    const parameters = request.params as Asked<N>["parameters"];
    const query = readQuery(name, request.url);
    if (!query.ok) throw refused(400, query.error.code, query.error.message);
    const key = keyRefusal(name, request.headers[keyHeader]);
    if (key !== null) throw refused(400, key.code, key.message);
    const body = bodyIn(name, request);
    return forClient(request.raw, () => handler({ parameters, query: query.value, body, request }, reply));
  });
}

export const isOfCaas = (name: RouteName): name is ServedAt<"caas"> => routeOf(name).at === "caas";
/** Within `serve` a body is not collected: whoever serves a route there passes it on as it comes. */
export const withoutBodies = (app: FastifyInstance, serve: (scope: FastifyInstance) => void): void =>
  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", (_request, _payload, done) => done(null, null));
    serve(scope);
  });
/** Once nobody waits for the answer. */
export function leaves(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once("close", () => gone.abort());
  return gone.signal;
}

/** Hands one row of the table on to who serves it, which holds the request to it. */
export const passRoute = (
  app: FastifyInstance,
  name: ServedAt<"caas">,
  handler: (request: FastifyRequest, reply: FastifyReply) => Promise<void>,
): void => add(app, name, {}, handler);

function add(
  app: FastifyInstance,
  name: Served,
  options: { readonly bodyLimit?: number },
  handler: (request: FastifyRequest, reply: FastifyReply) => unknown,
): void {
  const { method, path } = routeOf(name);
  app.route({
    method,
    ...options,
    url: path.replaceAll(/\{(\w+)\}/g, ":$1"),
    handler: async (...each) => handler(...each),
  });
}

function bodyIn<N extends Served>(name: N, { body }: FastifyRequest): Asked<N>["body"] {
  const { schema = null } = routeOf(name).body ?? {};
  if (schema === null) return null;
  const json = parseJson(body instanceof Buffer ? body.toString("utf8") : "");
  const read = json.ok ? readJsonBody(name, json.value) : json;
  if (!read.ok) throw refused(400, "bad-request", read.error);
  return read.value;
}
