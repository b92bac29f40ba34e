import type { Refusal } from "../../model/api.ts";
import type { AnswerOf } from "../../model/contract/route.ts";
import type { RouteName, Routes } from "../../model/contract/routes.ts";

/** The gateway refused, or could not be reached (status 0). */
export class Refused extends Error {
  readonly status: number;
  readonly code: string;
  readonly refusal: Refusal["error"];
  constructor(status: number, refusal: Refusal["error"]) {
    super(refusal.message);
    this.status = status;
    this.code = refusal.code;
    this.refusal = refusal;
  }
}
export interface Asked {
  readonly body?: string;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
}
export interface Answered<N extends RouteName> {
  readonly value: AnswerOf<Routes[N]["answer"]>;
  /** Of a model, from its `ETag`; null: the answer has none. */
  readonly version: number | null;
}

/** One request of the published contract, by the name of its route. The cookie says who asks. Rejects with `Refused`. */
export async function ask<N extends RouteName>(
  _name: N,
  method: Routes[N]["method"],
  path: string,
  { body, type = "application/json", headers = {} }: Asked = {},
): Promise<Answered<N>> {
  const own = { "cells-page": "1", ...(body === undefined ? {} : { "content-type": type }), ...headers };
  const asked = { method, headers: own, credentials: "same-origin", ...(body === undefined ? {} : { body }) } as const;
  const response = await fetch(path, asked).catch((error: Error) => {
    throw new Refused(0, { code: "unreachable", message: `the gateway does not answer: ${error.message}` });
  });
  const text = await response.text();
  const read = jsonIn(text);
  if (!response.ok)
    throw new Refused(
      response.status,
      (read as Refusal | null)?.error ?? { code: "gateway", message: `the gateway answered ${response.status}` },
    );
  const version = /^"(\d+)"$/.exec(response.headers.get("etag") ?? "")?.[1];
  return { value: read as AnswerOf<Routes[N]["answer"]>, version: version === undefined ? null : Number(version) };
}
function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
