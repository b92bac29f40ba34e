import type { FastifyReply, FastifyRequest } from "fastify";
import type { PeerName } from "../../model/cell/identifiers.ts";
import { exactly, read, record, type Schema, text } from "../../model/contract/schema.ts";
import type { Json } from "../../model/json/json.ts";
import { Fault } from "../../model/json/reader.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { listPeers } from "../../runtime/transport/peers.ts";
import { isPlacer } from "../observation/rooms.ts";
import { askPeer } from "../requests/ask-peer.ts";
import type { Person } from "../requests/credentials.ts";
import { saidAs } from "../requests/peer-answer.ts";
import { refused } from "../requests/refused.ts";
import type { Questions } from "./questions.ts";

const unknown = record<{ readonly unknown: true }>({ unknown: exactly(true) });
const faulty = record<{ readonly error: string }>({ error: text() });
const busy = record<{ readonly busy: string }>({ busy: text() });

/** What questions about placement are asked with. */
export interface Asking {
  readonly configuration: ProcessConfiguration;
  readonly questions: Questions;
  /** Who shows this at the door. */
  whoIs(authorization: string): Person;
}
interface Question {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly path: string;
  readonly withinMs: number;
}

/** Of each Placer what `take` makes of its answer; null: it says nothing, or nothing that can be read. */
export async function askPlacers<T>(
  { configuration, questions, whoIs }: Asking,
  { request, reply, path, withinMs }: Question,
  take: (said: Json | null, peer: PeerName) => T,
): Promise<readonly T[]> {
  const placers = (await listPeers(configuration, "placer")).filter(isPlacer);
  const { person } = whoIs(request.headers.authorization ?? "");
  return questions.answer(person, reply, (left) =>
    Promise.all(
      placers.map(async (peer) => {
        const signal = AbortSignal.any([left, AbortSignal.timeout(withinMs)]);
        return take(await saidBy(configuration, peer, path, signal), peer);
      }),
    ),
  );
}

/** What a Placer answers about one VM. "unknown": it has no such VM, which may be another one's. */
export const aboutVm =
  <T>(schema: Schema<T>) =>
  (said: Json | null, peer: PeerName): T | "unknown" | null => {
    if (said === null) return null;
    return read(unknown, said) instanceof Fault ? saidAs(schema, said, peer) : "unknown";
  };

/** What it says is wrong with the question is refused. */
async function saidBy(
  configuration: ProcessConfiguration,
  peer: PeerName,
  path: string,
  signal: AbortSignal,
): Promise<Json | null> {
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
  return value;
}
