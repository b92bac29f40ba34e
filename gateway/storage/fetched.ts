import type { IncomingMessage } from "node:http";
import { receiverAlone } from "../follow/notifications/receivers.ts";
import type { Resolve } from "../ha/names-outside.ts";
import { outsideOf, requestAt } from "../ha/notices.ts";
import { refused } from "../requests/refused.ts";

/*
 * Bytes behind a URL that a stranger names. Where it may lead is the same as for what he has posted: what everybody on the Internet reaches, looked at
 * before, and what was looked at is what is spoken to. He is told nothing of what is behind it but the bytes, whose SHA-256 he knows already.
 */
export interface FetchMeans {
  /** What looks whether an address may be asked. */
  readonly receivers: () => Promise<(address: string) => boolean>;
  readonly resolve?: Resolve;
}
export interface Fetched {
  readonly body: IncomingMessage;
  readonly length: number;
}
/** Until it begins to answer. */
const answerMs = 15_000;

const unfit = (why: string) => refused(400, "upload/source", `the URL is refused: ${why}`);

/** Rejects with a refusal where there is nothing to be had. @param over ends it at any time */
export async function fetchOutside(written: string, means: FetchMeans, over: AbortSignal): Promise<Fetched> {
  const url = URL.parse(written);
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:"))
    throw unfit("it begins with https:// or http://, and names a host");
  if (url.username !== "" || url.password !== "") throw unfit("a user and a password in it would be told to everybody");
  const allows = receiverAlone(await means.receivers());
  const address = await outsideOf(url, allows, means.resolve).catch((error: Error) => {
    throw unfit(error.message);
  });
  const begun = AbortSignal.timeout(answerMs);
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const asked = { method: "GET", headers: { "accept-encoding": "identity" }, signal: over };
    const request = requestAt(address, url, asked, resolve);
    const late = (): void => void request.destroy(new Error(`no answer within ${answerMs / 1000} s`));
    begun.addEventListener("abort", late);
    request.once("response", () => begun.removeEventListener("abort", late));
    request.once("error", reject);
    request.end();
  }).catch((error: Error) => {
    throw refused(502, "upload/source", `${url.host} gives nothing: ${error.message.slice(0, 300)}`);
  });
  try {
    return { body: answer, length: lengthOf(answer, url.host) };
  } catch (error) {
    answer.destroy();
    throw error;
  }
}

function lengthOf({ statusCode = 0, headers }: IncomingMessage, host: string): number {
  if (statusCode >= 300 && statusCode < 400)
    throw unfit(`${host} answered with ${statusCode}, and redirects are not followed: name what it leads to`);
  if (statusCode !== 200) throw unfit(`${host} answered with ${statusCode}, and only 200 has the bytes`);
  const { "content-encoding": encoding = "identity", "content-length": length = "" } = headers;
  if (encoding !== "identity") throw unfit(`${host} sends it in another encoding than as it is`);
  if (!/^\d{1,15}$/.test(length)) throw unfit(`${host} does not say how long it is (Content-Length)`);
  return Number(length);
}
