import type { JsonObject } from "../json/json.ts";
import type { Of, Schema } from "./schema.ts";

/*
 * What one row of the table of routes says. `routes.ts` holds the table itself.
 */

export type Method = "GET" | "PUT" | "PATCH" | "POST" | "DELETE";

/**
 * `operator`: the operator's credential alone. `cell`: that, a credential of the cell in the path, or where there is none in
 * the path of any cell, or the session of a user whose role allows it. `tenant`: the operator's, or such a session. `capability`: no
 * credential, but what a request before it gave. `anyone`: none is needed.
 */
export type Who = "operator" | "cell" | "tenant" | "capability" | "anyone";

/**
 * Which process answers: the gateway itself, the cell's controller (the gateway passes the request on), the controller of
 * the root cell alone, or CaaS, which stands before a gateway and passes all the rest on to it. The gateway passes on to CaaS what is that one's.
 */
export type Server = "gateway" | "controller" | "root-controller" | "caas";

/** A parameter in a header. */
export interface Parameter {
  readonly schema: JsonObject;
  readonly doc: string;
}
/** A parameter in the query. */
export interface QueryParameter extends Parameter {
  readonly required: boolean;
  /** It may be given several times. */
  readonly repeated: boolean;
  /** How it is refused (400) where it is not as the schema says; absent: as `bad-request`, with the place. */
  readonly refusal?: { readonly code: string; readonly message: string };
}
export interface Body {
  /** Media types in which it may come, the usual one first. */
  readonly types: readonly string[];
  /** Of the JSON; null: bytes. */
  readonly schema: JsonObject | null;
}
export interface Answer {
  readonly status: number;
  /** Null: the connection becomes a WebSocket. */
  readonly type: string | null;
  /** Of the JSON or, in a stream of events, of each event; null: bytes or text. */
  readonly schema: JsonObject | null;
  /** It may go on for as long as the client listens. */
  readonly stream: boolean;
  /** Headers that it may have. */
  readonly headers?: { readonly [name: string]: Parameter };
}

interface Details {
  /** A sentence. */
  readonly doc: string;
  /** More that a client has to know, in Markdown. */
  readonly more?: string;
  readonly query?: { readonly [name: string]: QueryParameter };
  readonly headers?: { readonly [name: string]: Parameter };
  /** Absent: none is read. */
  readonly body?: Body;
  readonly answer: Answer;
}
export interface Route extends Omit<Details, "query" | "body"> {
  readonly method: Method;
  /** `/cells/{cell}/model/{path*}`; the last parameter may be `{name*}`, one part of a path or several. */
  readonly path: string;
  readonly who: Who;
  readonly at: Server;
  readonly query: { readonly [name: string]: QueryParameter };
  /** Null: none is read. */
  readonly body: Body | null;
}

/** A route of which the compiler knows what it takes and gives. */
export interface Typed<Line extends string, S extends Server, D extends Details> extends Route {
  readonly path: Line extends `${string} ${infer Path}` ? Path : never;
  readonly at: S;
  readonly query: D extends { readonly query: infer Q extends Route["query"] } ? Q : Record<never, never>;
  readonly body: D extends { readonly body: infer B extends Body } ? B : null;
  readonly answer: D["answer"];
}
export function route<const Line extends `${Method} /${string}`, const S extends Server, const D extends Details>(
  line: Line,
  who: Who,
  at: S,
  details: D,
): Typed<Line, S, D> {
  const [method, path] = line.split(" ");
  return { query: {}, body: null, ...details, method, path, who, at } as unknown as Typed<Line, S, D>;
}

// --- types of a route ---------------------------------------------------------------------------------------------

/** Names in a path: of `/bin/{server}/{file}`, `server` and `file`. */
export type ParameterNames<P extends string> = P extends `${string}{${infer Name}}${infer Rest}`
  ? (Name extends `${infer Bare}*` ? Bare : Name) | ParameterNames<Rest>
  : never;
type ValueOf<Q> = Q extends { readonly repeated: true; readonly schema: infer S }
  ? readonly Of<S>[]
  : Q extends { readonly schema: infer S }
    ? Of<S>
    : never;
type RequiredNames<Q> = { [K in keyof Q]: Q[K] extends { readonly required: true } ? K : never }[keyof Q];
/** What a client says in the query. */
export type QueryOf<Q> = { readonly [K in RequiredNames<Q>]: ValueOf<Q[K]> } & {
  readonly [K in Exclude<keyof Q, RequiredNames<Q>>]?: ValueOf<Q[K]> | undefined;
};
export type BodyOf<B> = B extends { readonly schema: infer S } ? (S extends null ? never : Of<S>) : never;
export type AnswerOf<A> = A extends { readonly schema: infer S } ? (S extends null ? never : Of<S>) : never;

// --- making them --------------------------------------------------------------------------------------------------

export const may = <T>(schema: Schema<T>, doc: string) => ({ schema, doc, required: false, repeated: false }) as const;
export const must = <T>(schema: Schema<T>, doc: string) => ({ schema, doc, required: true, repeated: false }) as const;
export const several = <T>(schema: Schema<T>, doc: string) =>
  ({ schema, doc, required: false, repeated: true }) as const;

export const jsonType = "application/json";
export const bytesType = "application/octet-stream";
export const eventsType = "text/event-stream";

export const sends = <T>(schema: Schema<T>, types: readonly string[] = [jsonType]) => ({ types, schema }) as const;
export const gives = <T>(schema: Schema<T>, status = 200) =>
  ({ status, type: jsonType, schema, stream: false }) as const;
export const givesEvents = <T>(schema: Schema<T>) => ({ status: 200, type: eventsType, schema, stream: true }) as const;
export const givesBytes = (type: string) => ({ status: 200, type, schema: null, stream: false }) as const;
export const givesSocket = { status: 101, type: null, schema: null, stream: true } as const;

/** The path as clients know it: what the root cell's controller alone serves is below `/cells/root`. */
export const publishedPath = ({ path, at }: Pick<Route, "path" | "at">): string =>
  at === "root-controller" ? path.replace("{cell}", "root") : path;

/** A path's parameters, in its order. */
export const parametersIn = (path: string): readonly { readonly name: string; readonly several: boolean }[] =>
  [...path.matchAll(/\{([^}*]+)(\*?)\}/g)].map(([, name = "", star]) => ({ name, several: star === "*" }));
