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
import type { Person } from "../requests/credentials.ts";
import { answerAs } from "../requests/peer-answer.ts";
import { refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";
import type { Questions } from "./questions.ts";

const patienceMs = 10_000;
const unknown = record<{ readonly unknown: true }>({ unknown: exactly(true) });
const faulty = record<{ readonly error: string }>({ error: text() });
const busy = record<{ readonly busy: string }>({ busy: text() });

/** The Placer has no such VM: it may be another one's. */
export const isUnknown = (said: Json): boolean => !(read(unknown, said) instanceof Fault);

/** What questions about placement are asked with. */
export interface Asking {
  readonly configuration: ProcessConfiguration;
  readonly questions: Questions;
  /** Who shows this at the door. */
  whoIs(authorization: string): Person;
}

/** `GET /placement/capacity`: asked of all Placers, each of which knows all hosts, and the VMs of its own cells. */
export function registerCapacity(app: FastifyInstance, asking: Asking): void {
  const { configuration, questions, whoIs } = asking;
  serveRoute(app, "readCapacity", async ({ query, request }, reply) => {
    const { like = null, memoryMiB = null, cpus = null, failures = null } = query;
    if ((like === null) === (memoryMiB === null) || (like !== null && cpus !== null))
      throw refused(400, "bad-request", "say the path of a VM as `like`, or else `memoryMiB` and `cpus`");
    const words = Object.entries({ like, memoryMiB, cpus, failures }).flatMap(([name, value]): [string, string][] =>
      value === null ? [] : [[name, `${value}`]],
    );
    const path = `/capacity?${new URLSearchParams(words)}`;
    const placers = (await listPeers(configuration, "placer")).filter(isPlacer);
    const { person } = whoIs(request.headers.authorization ?? "");
    const said = await questions.answer(person, reply, (signal) =>
      Promise.all(placers.map((peer) => ask(configuration, peer, path, signal))),
    );
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
  left: AbortSignal,
): Promise<CapacityAnswer | "unknown" | null> {
  const body = await bodyOf(configuration, peer, path, { withinMs: patienceMs, left });
  if (body === null) return null;
  return isUnknown(body.value) ? "unknown" : answerAs(capacityAnswer, body.text, peer);
}

/** What a Placer answers, unless whoever asks has left; what it says is wrong with the question is refused. Null: nothing that can be read. */
export async function bodyOf(
  configuration: ProcessConfiguration,
  peer: PeerName,
  path: string,
  { withinMs, left }: { readonly withinMs: number; readonly left: AbortSignal },
): Promise<{ readonly text: string; readonly value: Json } | null> {
  const signal = AbortSignal.any([left, AbortSignal.timeout(withinMs)]);
  const answer = await askPeer(configuration, peer, { method: "GET", path, signal }).catch(() => null);
  if (answer === null || answer.status !== 200) return null;
  const said = await answer.text().catch(() => "");
  let value: Json;
  try {
    value = JSON.parse(said) as Json;
  } catch {
    return null;
  }
  const wrong = read(faulty, value);
  if (!(wrong instanceof Fault)) throw refused(400, "bad-request", wrong.error);
  const isBusy = read(busy, value);
  if (!(isBusy instanceof Fault)) throw refused(503, "busy", `${isBusy.busy} at "${peer}": ask again in a moment`);
  return { text: said, value };
}
