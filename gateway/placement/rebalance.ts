import type { FastifyInstance } from "fastify";
import { rebalancePlan } from "../../model/contract/operator/placement.ts";
import { read, record, text } from "../../model/contract/schema.ts";
import { Fault } from "../../model/json/reader.ts";
import { saidAs } from "../requests/peer-answer.ts";
import { refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";
import { type Asking, askPlacers } from "./ask-placers.ts";

/** A plan for thousands of VMs takes a while. */
const withinMs = 45_000;
const wrong = record<{ readonly wrong: string }>({ wrong: text() });

/** `GET /placement/rebalance`: a plan of each Placer. */
export function registerRebalance(app: FastifyInstance, asking: Asking): void {
  serveRoute(app, "readRebalance", async ({ query: { goal, host = null }, request }, reply) => {
    const path = `/rebalance?${new URLSearchParams({ goal, ...(host === null ? {} : { host }) })}`;
    const plans = await askPlacers(asking, { request, reply, path, withinMs }, (said, peer) => {
      if (said === null) throw refused(503, "busy", `"${peer}" does not answer`);
      const fault = read(wrong, said);
      if (!(fault instanceof Fault)) throw refused(500, "internal", `the plan was not right: ${fault.wrong}`);
      return saidAs(rebalancePlan, said, peer);
    });
    return { plans };
  });
}
