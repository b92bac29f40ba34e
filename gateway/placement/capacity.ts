import type { FastifyInstance } from "fastify";
import type { PeerName } from "../../model/cell/identifiers.ts";
import { type CapacityAnswer, capacityAnswer } from "../../model/contract/operator/placement.ts";
import { exactly, read, record, text } from "../../model/contract/schema.ts";
import type { Json } from "../../model/json/json.ts";
import { Fault } from "../../model/json/reader.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { listPeers } from "../../runtime/transport/peers.ts";
import { isPlacer } from "../observation/rooms.ts";
import { askPeer } from "../requests/ask-peer.ts";
import { answerAs } from "../requests/peer-answer.ts";
import { refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";

const patienceMs = 10_000;
const unknown = record<{ readonly unknown: true }>({ unknown: exactly(true) });
const faulty = record<{ readonly error: string }>({ error: text() });

/** `GET /placement/capacity`: asked of all Placers, each of which knows all hosts, and the VMs of its own cells. */
export function registerCapacity(app: FastifyInstance, configuration: ProcessConfiguration): void {
  serveRoute(app, "readCapacity", async ({ query }) => {
    const { like = null, memoryMiB = null, cpus = null, failures = null } = query;
    if ((like === null) === (memoryMiB === null) || (like !== null && cpus !== null))
      throw refused(400, "bad-request", "say the path of a VM as `like`, or else `memoryMiB` and `cpus`");
    const words = Object.entries({ like, memoryMiB, cpus, failures }).flatMap(([name, value]): [string, string][] =>
      value === null ? [] : [[name, `${value}`]],
    );
    const path = `/capacity?${new URLSearchParams(words)}`;
    const placers = (await listPeers(configuration, "placer")).filter(isPlacer);
    const said = await Promise.all(placers.map((peer) => ask(configuration, peer, path)));
    const answers = said.filter((each) => each !== null && each !== "unknown");
    // Who has promised more than the others have heard of knows best.
    const [least] = answers.sort((one, other) => one.more - other.more);
    if (least !== undefined) return least;
    if (said.includes("unknown"))
      throw refused(
        404,
        "not-found",
        `no Placer knows a VM ${like}: it is there only while it is to run. Ask by memoryMiB and cpus.`,
      );
    throw refused(503, "busy", "no Placer answers");
  });
}

/** Null: it says nothing, or nothing that can be read. */
async function ask(
  configuration: ProcessConfiguration,
  peer: PeerName,
  path: string,
): Promise<CapacityAnswer | "unknown" | null> {
  const body = await bodyOf(configuration, peer, path, patienceMs);
  if (body === null) return null;
  return read(unknown, body.value) instanceof Fault ? answerAs(capacityAnswer, body.text, peer) : "unknown";
}

/** What a Placer answers; what it says is wrong with the question is refused. Null: nothing that can be read. */
export async function bodyOf(
  configuration: ProcessConfiguration,
  peer: PeerName,
  path: string,
  withinMs: number,
): Promise<{ readonly text: string; readonly value: Json } | null> {
  const signal = AbortSignal.timeout(withinMs);
  const answer = await askPeer(configuration, peer, { method: "GET", path, signal }).catch(() => null);
  if (answer === null || answer.status !== 200) return null;
  const said = await answer.text();
  let value: Json;
  try {
    value = JSON.parse(said) as Json;
  } catch {
    return null;
  }
  const wrong = read(faulty, value);
  if (!(wrong instanceof Fault)) throw refused(400, "bad-request", wrong.error);
  return { text: said, value };
}
