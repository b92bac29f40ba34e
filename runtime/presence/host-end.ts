import { text } from "node:stream/consumers";
import { mayAsk } from "../../core/documents/permissions.ts";
import { type EndRequest, readEndRequest } from "../../core/presence/group/end.ts";
import { hostName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { Further } from "../process/asked.ts";

/**
 * `GET` and `PUT /hosts/<name>/end` at a member of the Presence group: the certain end of a host, which the root cell's
 * controller says for the operator, and the HA Manager of a power that was read as off; nobody else.
 */
const path = /^\/hosts\/([^/?]+)\/end$/;
const longestBody = 1024;

export const hostEnds: Further = {
  answers: (url) => path.test(url),
  handler:
    (asked) =>
    async ({ method, url, peer, body, headers }, response) => {
      const json = (status: number, content: object | Json): void => {
        response.writeHead(status, { "content-type": "application/json" });
        response.end(JSON.stringify(content));
      };
      const refuse = (status: number, code: string, message: string): void =>
        json(status, { error: { code, message } });
      if (!mayAsk("presence", peer, method, url)) {
        refuse(
          403,
          "forbidden",
          `the root cell's controller and the HA Manager alone may say that a host has ended, not "${peer}"`,
        );
        return;
      }
      const host = hostName(path.exec(url)?.[1] ?? "");
      const isLong = Number(headers["content-length"] ?? 0) > longestBody;
      const end = method === "GET" ? null : isLong ? undefined : parse(await text(body));
      const request = end === undefined ? null : readEndRequest({ kind: "host-end", host, end } as unknown as Json);
      if (request === null || (method === "PUT" && request.end === null))
        refuse(400, "bad-request", 'the body is {"generation": <number>, "boot": <number>}');
      else if (asked.service === null) refuse(503, "busy", "the service is starting: ask again in a moment");
      else json(200, await asked.service.request(request satisfies EndRequest as unknown as Json));
    },
};

const parse = (body: string): Json | undefined => {
  try {
    return JSON.parse(body) as Json;
  } catch {
    return undefined;
  }
};
