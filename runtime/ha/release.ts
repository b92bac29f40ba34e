import { mayAsk } from "../../core/documents/permissions.ts";
import type { ByHandRefusal } from "../../core/ha/people/by-hand.ts";
import { isObject } from "../../core/outbox.ts";
import type { Json } from "../../model/json/json.ts";
import { sendJson, sendRefusal } from "../http/http.ts";
import { askedBy } from "../observation/asked-by.ts";
import type { Further } from "../process/asked.ts";

/**
 * `POST /ha/release` at the HA Manager: a person has looked at what it holds. `?vm=`: of this VM, its cell's whole name first.
 * `POST /ha/pause`: hosts will be switched off. `POST /ha/cancel?vm=` and `/ha/retry?vm=`: a VM is left alone, or tried at once.
 * `POST /ha/acknowledge?alert=&subject=`: somebody looks after an alert.
 */
const path = /^\/ha\/(release|pause|cancel|retry|acknowledge)(?:\?|$)/;

export const haReleases: Further = {
  answers: (url) => path.test(url),
  handler: (asked) => async (incoming, response) => {
    const { method, url, peer } = incoming;
    const json = (status: number, content: object): void => sendJson(response, status, content);
    const refuse = (status: number, code: string, message: string): void =>
      sendRefusal(response, status, code, message);
    const answer = (said: Json): void => {
      const refusal = isObject(said) ? (said.refusal as unknown as ByHandRefusal | undefined) : undefined;
      if (refusal === undefined) json(200, said as object);
      else refuse(refusal.status, refusal.status === 404 ? "ha/nothing" : "ha/begun", refusal.message);
    };
    if (!mayAsk("ha-manager", peer, method, url)) {
      refuse(403, "forbidden", `only the gateway may say that somebody has looked, and this is "${peer}"`);
      return;
    }
    if (asked.service === null) {
      refuse(503, "busy", "the service is starting: ask again in a moment");
      return;
    }
    const verb = path.exec(url)?.[1] ?? "release";
    const query = new URLSearchParams(url.split("?", 2)[1] ?? "");
    if (verb === "acknowledge") {
      const [alert, subject] = [query.get("alert") ?? "", query.get("subject") ?? ""];
      const by = askedBy(incoming, { verb: "acknowledgeAlert", target: `${alert} ${subject}`.trim() });
      answer(await asked.service.request({ kind: "ha-acknowledge", alert, subject }, by));
      return;
    }
    const vm = query.get("vm");
    const [cell = ""] = vm?.split("/", 1) ?? [];
    // In its cell's own document a child's path begins with its own name.
    const own = vm === null ? null : [cell.split(".", 1)[0], ...vm.split("/").slice(1)].join("/");
    const about = vm === null || verb === "pause" ? {} : { cell, path: own };
    const by = askedBy(incoming, { verb: `${verb}Ha`, target: vm ?? "all" });
    answer(await asked.service.request({ kind: `ha-${verb}`, ...about }, by));
  },
};
