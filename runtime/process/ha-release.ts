import { mayAsk } from "../../core/documents/permissions.ts";
import type { Further } from "./asked.ts";

/**
 * `POST /ha/release` at the HA Manager: a person has looked at what it holds. `?vm=`: of this VM, its cell's whole name first.
 * `POST /ha/pause`: hosts will be switched off.
 */
const path = /^\/ha\/(?:release|pause)(?:\?|$)/;

export const haReleases: Further = {
  answers: (url) => path.test(url),
  handler:
    (asked) =>
    async ({ method, url, peer }, response) => {
      const json = (status: number, content: object): void => {
        response.writeHead(status, { "content-type": "application/json" });
        response.end(JSON.stringify(content));
      };
      const refuse = (status: number, code: string, message: string): void =>
        json(status, { error: { code, message } });
      if (!mayAsk("ha-manager", peer, method, url)) {
        refuse(403, "forbidden", `only the gateway may say that somebody has looked, and this is "${peer}"`);
        return;
      }
      if (asked.service === null) {
        refuse(503, "busy", "the service is starting: ask again in a moment");
        return;
      }
      if (url.startsWith("/ha/pause")) {
        json(200, (await asked.service.request({ kind: "ha-pause" })) as object);
        return;
      }
      const vm = new URLSearchParams(url.split("?", 2)[1] ?? "").get("vm");
      const [cell = ""] = vm?.split("/", 1) ?? [];
      // In its cell's own document a child's path begins with its own name.
      const own = vm === null ? null : [cell.split(".", 1)[0], ...vm.split("/").slice(1)].join("/");
      const request = vm === null ? { kind: "ha-release" } : { kind: "ha-release", cell, path: own };
      json(200, (await asked.service.request(request)) as object);
    },
};
