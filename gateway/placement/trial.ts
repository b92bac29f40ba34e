import type { FastifyInstance } from "fastify";
import { trialAnswer } from "../../model/contract/operator/placement.ts";
import { listPeers } from "../../runtime/transport/peers.ts";
import { isPlacer } from "../observation/rooms.ts";
import { answerAs } from "../requests/peer-answer.ts";
import { refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";
import { type Asking, bodyOf, isUnknown } from "./capacity.ts";

const patienceMs = 10_000;

/** `GET /placement/try`: the answer of the Placer whose VM it is; the others know none of that name. */
export function registerTrial(app: FastifyInstance, asking: Asking): void {
  const { configuration, questions, whoIs } = asking;
  serveRoute(app, "tryPlacement", async ({ query: { vm, host = null }, request }, reply) => {
    const path = `/try?${new URLSearchParams({ vm, ...(host === null ? {} : { host }) })}`;
    const placers = (await listPeers(configuration, "placer")).filter(isPlacer);
    const { person } = whoIs(request.headers.authorization ?? "");
    const said = await questions.answer(person, reply, (left) =>
      Promise.all(
        placers.map(async (peer) => {
          const body = await bodyOf(configuration, peer, path, { withinMs: patienceMs, left });
          if (body === null) return null;
          return isUnknown(body.value) ? "unknown" : answerAs(trialAnswer, body.text, peer);
        }),
      ),
    );
    const answer = said.find((each) => each !== null && each !== "unknown");
    if (answer !== undefined) return answer;
    if (said.length === 0 || said.includes(null)) throw refused(503, "busy", "no Placer answers");
    throw refused(404, "not-found", `no Placer knows a VM ${vm}: it is there only while it is to run`);
  });
}
