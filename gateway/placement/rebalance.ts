import type { FastifyInstance } from "fastify";
import { rebalancePlan } from "../../model/contract/operator/placement.ts";
import { read, record, text } from "../../model/contract/schema.ts";
import { Fault } from "../../model/json/reader.ts";
import { listPeers } from "../../runtime/transport/peers.ts";
import { isPlacer } from "../observation/rooms.ts";
import { answerAs } from "../requests/peer-answer.ts";
import { refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";
import { type Asking, bodyOf } from "./capacity.ts";

/** A plan for thousands of VMs takes a while. */
const patienceMs = 45_000;
const wrong = record<{ readonly wrong: string }>({ wrong: text() });

/** `GET /placement/rebalance`: a plan of each Placer. */
export function registerRebalance(app: FastifyInstance, asking: Asking): void {
  const { configuration, questions, whoIs } = asking;
  serveRoute(app, "readRebalance", async ({ query: { goal, host = null }, request }, reply) => {
    const path = `/rebalance?${new URLSearchParams({ goal, ...(host === null ? {} : { host }) })}`;
    const placers = (await listPeers(configuration, "placer")).filter(isPlacer);
    const { person } = whoIs(request.headers.authorization ?? "");
    const plans = await questions.answer(person, reply, (left) =>
      Promise.all(
        placers.map(async (peer) => {
          const body = await bodyOf(configuration, peer, path, { withinMs: patienceMs, left });
          if (body === null) throw refused(503, "busy", `"${peer}" does not answer`);
          const fault = read(wrong, body.value);
          if (!(fault instanceof Fault)) throw refused(500, "internal", `the plan was not right: ${fault.wrong}`);
          return answerAs(rebalancePlan, body.text, peer);
        }),
      ),
    );
    return { plans };
  });
}
