import type { OutgoingHttpHeaders } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { routeNames, routeOf } from "../../model/contract/routes.ts";
import { mostOfPage, nextHeader } from "../../model/contract/tenancy/pages.ts";
import type { PersistentVolume, VolumeDetails } from "../../model/contract/tenancy/volumes/volumes.ts";
import { bearerOf } from "../../runtime/http/bearer.ts";
import { parseJson } from "../../runtime/http/http.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import type { VolumesWatchMeans } from "../follow/notifications/volumes.ts";
import { caas, hasVolumes } from "../requests/beside.ts";
import { passBack } from "../requests/forward.ts";
import { refusalIn, refused } from "../requests/refused.ts";
import { isOfCaas, leaves, passRoute, withoutBodies } from "../requests/serve.ts";
import type { Passes } from "../sign-in/passes.ts";

/*
 * Persistent volumes are CaaS' (decision 148). Whoever comes to the gateway itself, as its page does, is passed on to it, with what stands for his
 * credential in the place of that (decision 201).
 */
/** As a controller may take, which is asked behind it. */
const idleTimeoutMs = 11 * 60_000;
/** Of a look for a notice. */
const seenMs = 30_000;
const mostPages = 4;
const passedOn: readonly string[] = ["content-type", "content-length", "accept"];

export function registerPersistent(
  app: FastifyInstance,
  configuration: ProcessConfiguration,
  passes: Pick<Passes, "give">,
): void {
  withoutBodies(app, (scope) => {
    for (const name of routeNames.filter(isOfCaas)) {
      const { headers = {} } = routeOf(name);
      const names = [...passedOn, ...Object.keys(headers).map((each) => each.toLowerCase())];
      passRoute(scope, name, (request, reply) => passOn({ configuration, passes, names }, request, reply));
    }
  });
}

interface Way {
  readonly configuration: ProcessConfiguration;
  readonly passes: Pick<Passes, "give">;
  /** Of headers that are passed on. */
  readonly names: readonly string[];
}
async function passOn(
  { configuration, passes, names }: Way,
  { method, url, headers, raw }: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  if (!(await hasVolumes(configuration)))
    throw refused(404, "no-volumes", "CaaS keeps persistent volumes, and there is none beside this gateway");
  const { shown, over } = passes.give(bearerOf(headers.authorization) ?? "");
  const gone = leaves(reply);
  gone.addEventListener("abort", over);
  const own: OutgoingHttpHeaders = { authorization: `Bearer ${shown}` };
  for (const name of names) if (headers[name] !== undefined) own[name] = headers[name];
  const hasBody = headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
  const answer = await peerRequest(configuration, caas, {
    method,
    path: url,
    headers: own,
    signal: gone,
    idleTimeoutMs,
    ...(hasBody ? { body: raw } : {}),
  }).catch(() => {
    throw refused(502, "unreachable", "CaaS, which keeps persistent volumes, does not answer");
  });
  // Of a body that is refused the rest is read all the same: the client hears nothing before it has sent it.
  raw.resume();
  reply.hijack();
  await passBack(answer, reply.raw);
}

/** What CaaS shows somebody, asked for a notice of it: by a pass, as whatever is passed on to it. Rejects with its refusal. */
export function volumesSeen(
  configuration: ProcessConfiguration,
  passes: Pick<Passes, "give">,
): Pick<VolumesWatchMeans, "all" | "one"> {
  const ask = async (authorization: string, path: string) => {
    if (!(await hasVolumes(configuration))) throw refused(404, "no-volumes", "there are no persistent volumes");
    const { shown, over } = passes.give(bearerOf(authorization) ?? "");
    try {
      const headers = { authorization: `Bearer ${shown}` };
      const signal = AbortSignal.timeout(seenMs);
      const answer = await peerRequest(configuration, caas, { method: "GET", path, headers, signal });
      const text = await answer.text();
      if (answer.status !== 200) throw refusalIn(answer.status, text, "unreachable", "CaaS does not say it");
      const read = parseJson(text);
      return { value: read.ok ? read.value : null, next: answer.headers[nextHeader.toLowerCase()] };
    } finally {
      over();
    }
  };
  return {
    all: async (authorization) => {
      const found: PersistentVolume[] = [];
      let after = "";
      for (let page = 0; page < mostPages; page += 1) {
        const { value, next } = await ask(authorization, `/volumes?limit=${mostOfPage}${after}`);
        found.push(...(value as unknown as readonly PersistentVolume[]));
        if (typeof next !== "string") break;
        after = `&after=${encodeURIComponent(next)}`;
      }
      return found;
    },
    one: async (authorization, uid) => (await ask(authorization, `/volumes/${uid}`)).value as unknown as VolumeDetails,
  };
}
