import { text } from "node:stream/consumers";
import { mayAsk } from "../../core/documents/permissions.ts";
import type { Mail, Notice } from "../../core/ha/people/alert.ts";
import { isObject, toJson } from "../../core/outbox.ts";
import { isoTime } from "../../model/cell/iso-time.ts";
import { mailWord } from "../../model/contract/operator/ha.ts";
import { read } from "../../model/contract/schema.ts";
import { Fault } from "../../model/json/reader.ts";
import { parseJson, sendJson, sendRefusal } from "../http/http.ts";
import { openSeal, type Seal } from "../identity/own/seal.ts";
import { askedBy } from "../observation/asked-by.ts";
import type { Further } from "../process/asked.ts";
import { nextNotice } from "./notices.ts";

/*
 * Alerts by mail at the HA Manager's edge: `GET /mail` waits for the next one and gives the gateway, which alone has a way outside, the message
 * and how it gets to its server; `POST /mail` says what came of it. The password is sealed here, and opened for that one answer.
 */
const path = /^\/mail$/;
const longestBody = 16_384;

/** @param directory of the HA Manager's process */
export const openMailSeal = (directory: string): Promise<Seal> => openSeal(directory, "power.key", "mail");

/** What the gateway sends. */
export interface DueMail {
  readonly number: number;
  readonly server: string;
  readonly login: { readonly user: string; readonly password: string } | null;
  readonly ca: string | null;
  readonly from: string;
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  /** The same in each attempt, so that one that comes twice is known. */
  readonly messageId: string;
}

const heads = {
  opened: "an alert",
  acknowledged: "somebody looks after an alert",
  ended: "an alert is over",
} as const;

/** What is said to somebody, in lines. */
export const messageOf = ({ event, alert, at }: Notice): Pick<DueMail, "subject" | "text"> => {
  if (event === "test" || alert === null)
    return {
      subject: "[cells] alerts are told here",
      text: "From now on you are told here when an alert is opened, acknowledged or over. This message is none.\n",
    };
  const about = [alert.kind, alert.subject].filter((word) => word !== "").join(" ");
  const lines = [
    alert.sentence,
    "",
    `${event} ${isoTime(at)}, open since ${isoTime(alert.since)}`,
    "`cells alerts` shows all that wait for you; `cells alerts acknowledge` says that you look after one.",
  ];
  // A header is one line, whatever a path has in it.
  return {
    subject: `[cells] ${heads[event]}: ${about}`.replace(/[^\x20-\x7e]/g, "?").slice(0, 200),
    text: `${lines.join("\n")}\n`,
  };
};

const dueOf = (seal: Seal, mail: Mail, notice: Notice): DueMail | null => {
  const { server, from, to, login, ca } = mail;
  const password = login === null ? null : seal.open(login.sealed);
  if (login !== null && password === null) return null;
  const domain = from.slice(from.lastIndexOf("@") + 1);
  return {
    number: notice.number,
    server,
    from,
    to,
    ca,
    ...messageOf(notice),
    login: login === null || password === null ? null : { user: login.user, password },
    messageId: `<cells.${notice.number}.${notice.at}@${domain}>`,
  };
};

export const mailNotices = (seal: Seal): Further => ({
  answers: (url) => path.test(url),
  handler:
    ({ service }) =>
    async (incoming, response) => {
      const { method, url, peer } = incoming;
      const json = (status: number, content: object): void => sendJson(response, status, content);
      const refuse = (status: number, code: string, message: string): void =>
        sendRefusal(response, status, code, message);
      if (!mayAsk("ha-manager", peer, method, url))
        return refuse(403, "forbidden", `only the gateway carries mail about alerts, and this is "${peer}"`);
      if (service === null) return refuse(503, "busy", "the service is starting: ask again in a moment");
      if (method === "GET") {
        const next = await nextNotice<Mail>(service, "ha-mail-wait");
        if (next === null) return json(200, {});
        const due = dueOf(seal, next.receiver, next.notice);
        if (due !== null) return json(200, due);
        const reason = "the password was sealed elsewhere: say the mail server anew";
        await service.request({ kind: "ha-mail-said", number: next.notice.number, taken: false, reason });
        return json(200, {});
      }
      const target = "mail";
      if (method === "DELETE") {
        const by = askedBy(incoming, { verb: "forgetMail", target });
        return json(200, (await service.request({ kind: "ha-mail-remove" }, by)) as object);
      }
      const sent = await text(incoming.body).catch(() => "");
      const body = sent.length > longestBody ? null : parseJson(sent);
      const said = body?.ok === true ? body.value : null;
      if (method === "POST") {
        const { number = null, taken = false, reason = null } = isObject(said) ? said : {};
        await service.request({ kind: "ha-mail-said", number, taken, reason });
        return json(200, {});
      }
      const word = read(mailWord, said);
      if (word instanceof Fault) return refuse(400, "bad-request", "the body is {server, from, to, login, ca}");
      const { server, from, to, login, ca = null } = word;
      const mail: Mail = {
        server,
        from,
        to,
        ca,
        login: login === undefined ? null : { user: login.user, sealed: seal.seal(login.password) },
      };
      const by = askedBy(incoming, { verb: "setMail", target, what: `${to} by ${server}` });
      await service.request(toJson({ kind: "ha-mail-set", mail }), by);
      json(200, { server, to });
    },
});
