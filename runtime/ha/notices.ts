import { createHmac } from "node:crypto";
import { text } from "node:stream/consumers";
import { mayAsk } from "../../core/documents/permissions.ts";
import type { Notice, Webhook } from "../../core/ha/people/alert.ts";
import { isObject, toJson } from "../../core/outbox.ts";
import { isoTime } from "../../model/cell/iso-time.ts";
import { type AlertNotice, webhookWord } from "../../model/contract/operator/ha.ts";
import { read } from "../../model/contract/schema.ts";
import type { Json } from "../../model/json/json.ts";
import { Fault } from "../../model/json/reader.ts";
import { parseJson, sendJson, sendRefusal } from "../http/http.ts";
import { openSeal, type Seal } from "../identity/own/seal.ts";
import { askedBy } from "../observation/asked-by.ts";
import type { Further } from "../process/asked.ts";

/*
 * Notices of alerts at the HA Manager's edge: signed here, so that the secret goes nowhere else, and carried by the gateway, which alone has a way
 * outside. `GET /notice` waits for the next one and gives it as it is to be posted; `POST /notice` says what came of it.
 */
const path = /^\/(?:webhook|notice)$/;
/** Shorter than what anybody waits for an answer. */
const waitMs = 25_000;
const longestBody = 4096;

/** @param directory of the HA Manager's process */
export const openWebhookSeal = (directory: string): Promise<Seal> => openSeal(directory, "power.key", "webhook");

/** What the gateway posts. */
export interface SignedNotice {
  readonly number: number;
  readonly url: string;
  readonly body: string;
  readonly signature: string;
}

/** `t=<seconds since 1970>,v1=<HMAC-SHA-256 of "<t>.<body>">`: who has an old one cannot pass it off as new. */
export const signatureOf = (secret: string, seconds: number, body: string): string =>
  `t=${seconds},v1=${createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex")}`;

const signed = (seal: Seal, { url, sealed }: Webhook, notice: Notice): SignedNotice | null => {
  const secret = seal.open(sealed);
  if (secret === null) return null;
  const { number, event, alert, at } = notice;
  const told: AlertNotice = {
    number,
    event,
    at: isoTime(at),
    alert:
      alert === null
        ? null
        : {
            kind: alert.kind,
            subject: alert.subject,
            since: isoTime(alert.since),
            sentence: alert.sentence,
            ...(alert.acknowledged === undefined ? {} : { acknowledged: isoTime(alert.acknowledged) }),
          },
  };
  const body = JSON.stringify(told);
  return { number, url, body, signature: signatureOf(secret, Math.floor(Date.now() / 1000), body) };
};

export const alertNotices = (seal: Seal): Further => ({
  answers: (url) => path.test(url),
  handler:
    ({ service }) =>
    async (incoming, response) => {
      const { method, url, peer } = incoming;
      const json = (status: number, content: object): void => sendJson(response, status, content);
      const refuse = (status: number, code: string, message: string): void =>
        sendRefusal(response, status, code, message);
      if (!mayAsk("ha-manager", peer, method, url))
        return refuse(403, "forbidden", `only the gateway carries notices of alerts, and this is "${peer}"`);
      if (service === null) return refuse(503, "busy", "the service is starting: ask again in a moment");
      if (method === "GET") {
        const next = await nextNotice<Webhook>(service, "ha-notice-wait");
        if (next === null) return json(200, {});
        const { receiver, notice } = next;
        const told = signed(seal, receiver, notice);
        if (told !== null) return json(200, told);
        const reason = "its secret was sealed elsewhere: say the webhook anew";
        await service.request({ kind: "ha-notice-said", number: notice.number, taken: false, reason });
        return json(200, {});
      }
      const target = "webhook";
      if (method === "DELETE") {
        const by = askedBy(incoming, { verb: "forgetWebhook", target });
        return json(200, (await service.request({ kind: "ha-webhook-remove" }, by)) as object);
      }
      const sent = await text(incoming.body).catch(() => "");
      const body = sent.length > longestBody ? null : parseJson(sent);
      const said = body?.ok === true ? body.value : null;
      if (method === "POST") {
        const { number = null, taken = false, reason = null } = isObject(said) ? said : {};
        await service.request({ kind: "ha-notice-said", number, taken, reason });
        return json(200, {});
      }
      const word = read(webhookWord, said);
      if (word instanceof Fault) return refuse(400, "bad-request", "the body is {url, secret}");
      const webhook: Webhook = { url: word.url, sealed: seal.seal(word.secret) };
      const by = askedBy(incoming, { verb: "setWebhook", target, what: word.url });
      await service.request(toJson({ kind: "ha-webhook-set", webhook }), by);
      json(200, { url: word.url });
    },
});
interface Next<Receiver> {
  readonly receiver: Receiver;
  readonly notice: Notice;
}
/** The next one for a receiver, waited for; null: there was none. */
export const nextNotice = async <Receiver>(
  service: { request(request: Json): Promise<Json> },
  kind: "ha-notice-wait" | "ha-mail-wait",
): Promise<Next<Receiver> | null> => {
  const next = await soonEnough(service.request({ kind }));
  const { receiver, notice } = (isObject(next) ? next : {}) as unknown as Partial<Next<Receiver>>;
  return receiver === undefined || notice === undefined ? null : { receiver, notice };
};
/** Null: there is no answer yet, and nobody waits for longer. */
export const soonEnough = <T>(answer: Promise<T>): Promise<T | null> => {
  const late = new Promise<null>((resolve) => {
    setTimeout(() => resolve(null), waitMs).unref();
  });
  return Promise.race([answer, late]);
};
