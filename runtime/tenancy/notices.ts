import type { ServerResponse } from "node:http";
import type { NextNotice } from "../../core/tenancy/subscriptions/notices.ts";
import { boolean, integer, nullable, read, record, text } from "../../model/contract/schema.ts";
import { cellNews } from "../../model/contract/tenancy/subscriptions.ts";
import { Fault } from "../../model/json/reader.ts";
import { type SignedNotice, signatureOf, soonEnough } from "../ha/notices.ts";
import { hashCredential } from "../http/bearer.ts";
import { parseJson, readBody, sendJson, sendRefusal } from "../http/http.ts";
import type { PeerRequest } from "../http/peer-handler.ts";
import { seal, unseal } from "../identity/own/seal.ts";
import { newSession } from "../identity/tickets.ts";
import { type AskService, send } from "./answers.ts";

/*
 * Notices of cells at the edge of `tenancy`: signed here, so that a subscription's secret goes nowhere else. `POST /notices/next` waits for what is to
 * be watched or posted, `POST /notices` tells what became of a cell, `POST /notices/said` what came of one that was posted, and
 * `POST /watches/<uid>` begins a session that reads the cells of one subscription.
 */
const path = /^\/(?:notices(?:\/(?:next|said))?|watches\/([A-Za-z0-9-]{1,64}))$/;
const longestBody = 64 * 1024;

const next = record<{ readonly watched: string | null }>({ watched: nullable(text(64)) });
const news = record({ subscription: text(64), news: cellNews });
const said = record({
  subscription: text(64),
  number: integer(0),
  taken: boolean,
  reason: nullable(text(400)),
});

/** What the gateway posts. */
export interface PostedNotice extends SignedNotice {
  readonly subscription: string;
}
/** What it is answered that asks what is next. */
export interface Told extends Pick<NextNotice, "watches"> {
  /** Absent: nothing is new. */
  readonly watched?: string;
  readonly due?: PostedNotice;
}

export class Notices {
  readonly #key: Buffer;
  /** @param key seals secrets in the store */
  constructor(key: Buffer) {
    this.#key = key;
  }

  /** Of a subscription that is to be, or is changed. */
  seal(uid: string, secret: string): string {
    return seal(this.#key, idOf(uid), secret);
  }

  isAsked = (method: string, url: string): boolean => method === "POST" && path.test(url);

  /** Of the gateway alone, which the caller has looked at. */
  async answer(ask: AskService, { url, body }: PeerRequest, response: ServerResponse): Promise<void> {
    const [, watched] = path.exec(url) ?? [];
    if (watched !== undefined) {
      const session = newSession();
      send(response, await ask({ kind: "watch", uid: watched, session: hashCredential(session) }), { session });
      return;
    }
    const sent = await readBody(body, longestBody);
    const json = sent.ok ? parseJson(sent.value) : sent;
    const value = json.ok ? json.value : null;
    const asked = url === "/notices/next" ? read(next, value) : null;
    const added = url === "/notices" ? read(news, value) : null;
    const word = url === "/notices/said" ? read(said, value) : null;
    if (asked !== null && !(asked instanceof Fault)) await this.#next(ask, asked.watched, response);
    else if (added !== null && !(added instanceof Fault)) send(response, await ask({ kind: "notice-add", ...added }));
    else if (word !== null && !(word instanceof Fault)) send(response, await ask({ kind: "notice-said", ...word }));
    else sendRefusal(response, 400, "bad-request", "the body is not as the gateway of this version writes it");
  }
  async #next(ask: AskService, watched: string | null, response: ServerResponse): Promise<void> {
    const answered = await soonEnough(ask({ kind: "notice-next", watched }));
    const { due, ...told } = (answered ?? {}) as Partial<NextNotice>;
    const signed = due === undefined ? null : this.#signed(due);
    if (due !== undefined && signed === null) {
      const { subscription, number } = due.notice;
      const reason = "its secret was sealed elsewhere: say the URL and its secret anew";
      await ask({ kind: "notice-said", subscription, number, taken: false, reason });
    }
    sendJson(response, 200, { ...told, ...(signed === null ? {} : { due: signed }) } as never);
  }
  #signed({ url, sealed, notice }: NonNullable<NextNotice["due"]>): PostedNotice | null {
    const { subscription, number } = notice;
    const secret = unseal(this.#key, idOf(subscription), sealed);
    if (secret === null) return null;
    const body = JSON.stringify(notice);
    const signature = signatureOf(secret, Math.floor(Date.now() / 1000), body);
    return { subscription, number, url, body, signature };
  }
}
const idOf = (uid: string): string => `subscription/${uid}`;
