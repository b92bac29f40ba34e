import type { AnswerOf, BodyOf, ParameterNames, QueryOf } from "../route.ts";
import { type RouteName, type Routes, routeOf } from "../routes.ts";

/*
 * A client of the contract as functions over `fetch`, which is handed in: for the command line, a browser, or a test without
 * a network. It knows no route by itself.
 */

export type Parameters<N extends RouteName> = { readonly [name in ParameterNames<Routes[N]["path"]>]: string };
export interface Asking<N extends RouteName> {
  readonly parameters: Parameters<N>;
  readonly query?: QueryOf<Routes[N]["query"]>;
  /** Sent as JSON, with the first media type of the table. */
  readonly body?: BodyOf<Routes[N]["body"]>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Path and query of a request. What is undefined in the query is left out. */
export function addressOf<N extends RouteName>(
  name: N,
  parameters: Parameters<N>,
  query: QueryOf<Routes[N]["query"]> = {} as QueryOf<Routes[N]["query"]>,
): string {
  const values = parameters as Readonly<Record<string, string>>;
  const path = routeOf(name).path.replace(/\{(\w+)(\*?)\}/g, (_whole, parameter: string, star: string) => {
    const value = values[parameter] ?? "";
    return star === "*" ? value.split("/").map(encodeURIComponent).join("/") : encodeURIComponent(value);
  });
  const written = new URLSearchParams();
  for (const [parameter, value] of Object.entries<unknown>(query))
    for (const each of Array.isArray(value) ? value : [value])
      if (each !== undefined) written.append(parameter, String(each));
  return written.size === 0 ? path : `${path}?${written}`;
}

export interface ContractClient {
  /** The answer as it comes. Rejects as `fetch` does, and with what `refuse` makes of an answer that is no success. */
  open<N extends RouteName>(name: N, asking: Asking<N>): Promise<Response>;
  /** Of a route that answers with JSON. */
  ask<N extends RouteName>(name: N, asking: Asking<N>): Promise<AnswerOf<Routes[N]["answer"]>>;
}
export interface ClientOptions {
  readonly fetch: typeof fetch;
  /** Of the gateway, without a `/` at the end. */
  readonly url: string;
  readonly credential: string;
  readonly refuse: (status: number, text: string) => Error;
}

export function createClient({ fetch, url, credential, refuse }: ClientOptions): ContractClient {
  const open: ContractClient["open"] = async (name, { parameters, query, body, headers = {}, signal }) => {
    const { method, body: taken } = routeOf(name);
    const type: Readonly<Record<string, string>> =
      body === undefined || taken === null ? {} : { "content-type": taken.types[0] ?? "" };
    const response = await fetch(`${url}${addressOf(name, parameters, query)}`, {
      method,
      headers: { authorization: `Bearer ${credential}`, ...type, ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
    if (response.ok) return response;
    throw refuse(response.status, await response.text());
  };
  return {
    open,
    ask: async <N extends RouteName>(name: N, asking: Asking<N>) =>
      (await (await open(name, asking)).json()) as AnswerOf<Routes[N]["answer"]>,
  };
}
