import type { Refusal } from "../../model/api.ts";
import type { AnswerOf } from "../../model/contract/route.ts";
import type { RouteName, Routes } from "../../model/contract/routes.ts";
import { nextHeader } from "../../model/contract/tenancy/pages.ts";
import { stalledMs } from "../../model/contract/tenancy/volumes/resuming.ts";
import { restAsWritten } from "../../model/contract/tenancy/volumes/uploads.ts";
import { Once } from "./once.ts";

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
  /** Of a list that came as a page: what the next one stands behind; null: there is none. */
  readonly next: string | null;
}

/** A request whose answer is a text, as a stream of events that ends. Rejects with `Refused`. */
export async function askText(_name: RouteName, path: string): Promise<string> {
  return (await answered(path, {})).text;
}
async function answered(
  path: string,
  { headers, ...asked }: { readonly method?: string; readonly headers?: object; readonly body?: string },
): Promise<{ readonly text: string; readonly headers: Response["headers"] }> {
  const own = { "cells-page": "1", ...headers };
  const response = await fetch(path, { ...asked, headers: own, credentials: "same-origin" }).catch((error: Error) => {
    throw new Refused(0, { code: "unreachable", message: `the gateway does not answer: ${error.message}` });
  });
  const text = await response.text();
  if (!response.ok) throw refusedBy(response.status, jsonIn(text));
  return { text, headers: response.headers };
}

/** One request of the published contract, by the name of its route. The cookie says who asks. Rejects with `Refused`. */
export async function ask<N extends RouteName>(
  _name: N,
  method: Routes[N]["method"],
  path: string,
  { body, type = "application/json", headers = {} }: Asked = {},
): Promise<Answered<N>> {
  const own = { ...(body === undefined ? {} : { "content-type": type }), ...headers };
  const sent = body === undefined ? {} : { body };
  const { text, headers: told } = await answered(path, { method, headers: own, ...sent });
  const version = /^"(\d+)"$/.exec(told.get("etag") ?? "")?.[1];
  return {
    value: jsonIn(text) as AnswerOf<Routes[N]["answer"]>,
    version: version === undefined ? null : Number(version),
    next: told.get(nextHeader),
  };
}
const refusedBy = (status: number, read: unknown): Refused =>
  new Refused(
    status,
    (read as Refusal | null)?.error ?? { code: "gateway", message: `the gateway answered ${status}` },
  );

export interface Uploading {
  readonly told: (sent: number, all: number) => void;
  readonly signal: AbortSignal;
  /** So many octets are there already; absent: none, and nothing stays of what breaks off. */
  readonly from?: number;
}
/** Sends a file, and says how much of it is on its way: `fetch` does not. Rejects with `Refused`, also where it is left by `signal`. */
export function upload(path: string, file: Blob, { told, signal, from }: Uploading): Promise<unknown> {
  const isKept = from !== undefined;
  const begun = from ?? 0;
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const fail = (code: string, message: string) => (): void => reject(new Refused(0, { code, message }));
    const isStill = fail("unreachable", `nothing was taken for ${stalledMs / 1000} s`);
    const stalled = (): void => {
      isStill();
      request.abort();
    };
    const watch = (): ReturnType<typeof setTimeout> | undefined =>
      isKept ? setTimeout(stalled, stalledMs) : undefined;
    let still = watch();
    request.open("PUT", path);
    if (begun > 0) request.setRequestHeader("content-range", restAsWritten({ from: begun, length: file.size }));
    request.setRequestHeader("cells-page", "1");
    request.setRequestHeader("content-type", "application/octet-stream");
    request.upload.onprogress = ({ loaded }) => {
      clearTimeout(still);
      // What comes behind the last octet is an answer, however long it takes.
      if (begun + loaded < file.size) still = watch();
      told(begun + loaded, file.size);
    };
    request.onloadend = () => clearTimeout(still);
    request.onload = () => {
      const read = jsonIn(request.responseText);
      if (request.status < 300) resolve(read);
      else reject(refusedBy(request.status, read));
    };
    request.onerror = fail(
      "unreachable",
      isKept ? "the connection broke off" : "the upload broke off: nothing of it is kept, and it can be tried again",
    );
    request.onabort = fail("left", "the upload was left: nothing of it is kept");
    signal.addEventListener("abort", () => request.abort(), { once: true });
    request.send(begun > 0 ? file.slice(begun) : file);
  });
}
function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const once = new Once(() => crypto.randomUUID());
/** A change that is made once, also where its answer is lost and somebody asks for it again. */
export const askOnce = <N extends RouteName>(
  name: N,
  method: Routes[N]["method"],
  path: string,
  asked: Asked = {},
): Promise<Answered<N>> =>
  once.ask(path.split("?")[0] ?? path, JSON.stringify([method, path, asked]), (key) =>
    ask(name, method, path, { ...asked, headers: { ...asked.headers, "idempotency-key": key } }),
  );
