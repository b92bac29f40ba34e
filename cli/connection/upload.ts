import { createReadStream } from "node:fs";
import { type ClientRequest, type OutgoingHttpHeaders, request as plainRequest } from "node:http";
import { request as tlsRequest } from "node:https";
import { Transform } from "node:stream";
import { text as textOf } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { unreachable } from "../terminal/failure.ts";

export interface ImageUpload {
  readonly name: string;
  readonly file: string;
  readonly format: "raw" | "qcow2";
  readonly replace: boolean;
  /** Of the file; sent is what it has now, never more. */
  readonly bytes: number;
  readonly onProgress: (sentBytes: number) => void;
}

interface Answer {
  readonly status: number;
  readonly text: string;
}
/** By a connection of its own. */
const begin = (url: string, method: string, credential: string, headers: OutgoingHttpHeaders): ClientRequest =>
  (url.startsWith("https:") ? tlsRequest : plainRequest)(url, {
    method,
    agent: false,
    headers: { authorization: `Bearer ${credential}`, ...headers },
  });
const answerOf = (outgoing: ClientRequest): Promise<Answer> =>
  new Promise((resolve, reject) => {
    outgoing.once("response", (response) => {
      textOf(response).then((text) => resolve({ status: response.statusCode ?? 0, text }), reject);
    });
    outgoing.once("error", reject);
  });

/** What is asked for so long that `fetch` would give it up before its answer. */
export async function askLong(
  url: string,
  credential: string,
  { method, body }: { readonly method: string; readonly body: object },
): Promise<Answer> {
  const text = JSON.stringify(body);
  const outgoing = begin(url, method, credential, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
  });
  outgoing.end(text);
  try {
    return await answerOf(outgoing);
  } catch (error) {
    throw unreachable(new URL(url).origin, error);
  }
}

/** Ways of a connection to end that are nobody's answer. */
const broken = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ERR_STREAM_PREMATURE_CLOSE",
]);
export interface SentFile extends Pick<ImageUpload, "file" | "bytes" | "onProgress"> {
  /** Octets that are there already; absent: none. */
  readonly from?: number;
  readonly headers?: OutgoingHttpHeaders;
  /** It breaks off where nothing is taken for so long; absent: it waits. */
  readonly stalledMs?: number;
}

/**
 * Sends a file as the body of a PUT, as fast as it is taken, and resolves with the answer, which may come before the last
 * byte. `fetch` would neither announce a stream's length nor tell how far it is.
 */
export async function sendFile(
  url: string,
  credential: string,
  { file, bytes, onProgress, from = 0, headers = {}, stalledMs }: SentFile,
): Promise<Answer> {
  const outgoing = begin(url, "PUT", credential, {
    "content-type": "application/octet-stream",
    "content-length": bytes - from,
    ...headers,
    // A refusal may come before the last byte went out: it must not be lost with a connection closed behind it.
    connection: "keep-alive",
  });
  let sent = from;
  const stalled = (): void =>
    void outgoing.destroy(Object.assign(new Error(`no byte was taken for ${stalledMs} ms`), { code: "ETIMEDOUT" }));
  const timer = stalledMs === undefined ? undefined : setTimeout(stalled, stalledMs);
  const count = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      sent += chunk.length;
      timer?.refresh();
      // What comes then is an answer, however long it takes.
      if (sent === bytes) clearTimeout(timer);
      onProgress(sent);
      done(null, chunk);
    },
  });
  const answer = answerOf(outgoing);
  const body = bytes === from ? [] : [createReadStream(file, { start: from, end: bytes - 1 })];
  const sending = body[0] === undefined ? Promise.resolve(void outgoing.end()) : pipeline(body[0], count, outgoing);
  try {
    // A file that cannot be read, or has become shorter, ends the request; an answer ends the sending.
    return await Promise.race([answer, sending.then(() => answer)]);
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (broken.has(code)) throw unreachable(new URL(url).origin, error);
    throw error;
  } finally {
    clearTimeout(timer);
    outgoing.destroy();
    await sending.catch(() => undefined);
    await answer.catch(() => undefined);
  }
}
