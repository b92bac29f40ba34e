import type { FastifyInstance } from "fastify";
import { trialAnswer } from "../../model/contract/operator/placement.ts";
import { refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";
import { type Asking, aboutVm, askPlacers } from "./ask-placers.ts";

const withinMs = 10_000;

/** `GET /placement/try`: the answer of the Placer whose VM it is; the others know none of that name. */
export function registerTrial(app: FastifyInstance, asking: Asking): void {
  serveRoute(app, "tryPlacement", async ({ query: { vm, host = null }, request }, reply) => {
    const path = `/try?${new URLSearchParams({ vm, ...(host === null ? {} : { host }) })}`;
    const said = await askPlacers(asking, { request, reply, path, withinMs }, aboutVm(trialAnswer));
    const answer = said.find((each) => each !== null && each !== "unknown");
    if (answer !== undefined) return answer;
    if (said.length === 0 || said.includes(null)) throw refused(503, "busy", "no Placer answers");
    throw refused(404, "not-found", `no Placer knows a VM ${vm}: it is there only while it is to run`);
  });
}
