import type { HostName } from "../../../model/cell/identifiers.ts";
import { whyNot as whyNotNow } from "../../../model/contract/actions/actions.ts";
import type { Json } from "../../../model/json/json.ts";
import { isBoot, isGeneration } from "../../documents/life-numbers.ts";
import type { ActualPresenceDeath } from "../../documents/presence.ts";
import { isObject, toJson, write } from "../../outbox.ts";
import { type GroupState, type HostView, isGone, type KnownLife, thresholdCap, thresholdOf } from "./state.ts";

/*
 * The certain end of a host: its power is known to be off. That is nothing which silence could show, so somebody who knows
 * it says it, for the boot that the host was in; a later boot is another one, and no word about the past reaches it. A
 * member takes the word only of a host that it does not hear, and that others do not hear either as far as it can see: a
 * host which still runs would have its machines started a second time. What it took is durable before it is told, never
 * taken back, and taken over by the other members where they would take it themselves.
 *
 * Rejected: a vote on it. Nobody in the group knows anything about a power supply; a majority would only be in the way of
 * whoever does, when a majority's own VMs were on that host.
 */

/** Asks whether a host's end could be said (`end` null), or says it. */
export interface EndRequest {
  readonly kind: "host-end";
  readonly host: HostName;
  readonly end: { readonly generation: number; readonly boot: number } | null;
}
export interface EndAnswer {
  /** The latest life that this member ever heard of; null: none. */
  readonly known: KnownLife | null;
  /** Why the host's end is not taken from anybody now, a sentence; null: it is. */
  readonly against: string | null;
  /** The last boot that is known to be over; null: none is. */
  readonly ended: number | null;
}

/** What one of them answered; null: it makes no sense. */
export function readEndAnswer(answer: Json): EndAnswer | null {
  if (!isObject(answer)) return null;
  const { known, against, ended } = answer;
  const isKnown =
    known === null ||
    (isObject(known) && isGeneration(known.generation) && (known.boot === null || isBoot(known.boot)));
  const isSound = isKnown && (against === null || typeof against === "string") && (ended === null || isBoot(ended));
  return isSound ? (answer as unknown as EndAnswer) : null;
}

/** What several members know together. Only where `against` is null, `known` is a life with a boot. */
export function mergeEnds(host: HostName, answers: readonly EndAnswer[]): EndAnswer {
  let known: KnownLife | null = null;
  let ended: number | null = null;
  for (const answer of answers) {
    if (answer.known !== null && (known === null || isLater(answer.known, known))) known = answer.known;
    if (answer.ended !== null) ended = Math.max(ended ?? 0, answer.ended);
  }
  const said = answers.find(({ against }) => against !== null)?.against ?? null;
  return { known, ended, against: said ?? unknowable(host, known) };
}
const isLater = (a: KnownLife, b: KnownLife): boolean =>
  a.generation > b.generation || (a.generation === b.generation && (a.boot ?? 0) > (b.boot ?? 0));
function unknowable(host: HostName, known: KnownLife | null): string | null {
  if (known === null) return `nobody knows of any life of host ${host}: there is nothing that could have ended`;
  return known.boot === null
    ? `host ${host} is of a version that does not say when its machine started: bring it back with the present one`
    : null;
}

/** Record `life/<host>`. */
export const lifeRecord = (host: HostName): string => `life/${host}`;
/** Whether the end of a boot that another member tells of is taken from it: as from the operator, and of no boot that never was. */
export function isEndToTake(state: GroupState, view: HostView, { generation, ended }: ActualPresenceDeath): boolean {
  const { known, declared } = view;
  if (ended === undefined || ended <= (declared?.ended ?? -1) || known === null) return false;
  return generation <= known.generation && ended <= (known.boot ?? -1) && whyNot(state, view) === null;
}

export function knownIn(value: Json | undefined): KnownLife | null {
  if (!isObject(value) || !isGeneration(value.generation)) return null;
  return { generation: value.generation, boot: isBoot(value.boot) ? value.boot : null };
}

/** What a host says of itself is kept, so that its end can still be said when nobody who heard it is left. */
export function noteLife(state: GroupState, view: HostView, said: Json): void {
  const now = knownIn(said);
  const { known } = view;
  if (now === null || (known !== null && now.generation < known.generation && (now.boot ?? 0) <= (known.boot ?? 0)))
    return;
  if (known !== null && known.generation === now.generation && known.boot === now.boot) return;
  view.known = now;
  write(state.outbox, lifeRecord(view.host), now);
}

/** Both that a later generation is over, and that a later boot is, stay so. Null: the second says nothing new. */
export function laterDeath(known: ActualPresenceDeath | null, said: ActualPresenceDeath): ActualPresenceDeath | null {
  const ended = Math.max(known?.ended ?? -1, said.ended ?? -1);
  const isLater = known === null || said.generation > known.generation;
  if (!isLater && ended === (known.ended ?? -1)) return null;
  const { ended: _ended, endedIn: _endedIn, ...death } = isLater ? said : known;
  const { endedIn } = known !== null && ended === known.ended ? known : said;
  return ended < 0 ? death : { ...death, ended, ...(endedIn === undefined ? {} : { endedIn }) };
}

export const readEndRequest = (request: Json): EndRequest | null => {
  if (!isObject(request) || request.kind !== "host-end" || typeof request.host !== "string") return null;
  const { end } = request;
  const isSound = end === null || (isObject(end) && isGeneration(end.generation) && isBoot(end.boot));
  return isSound ? (request as unknown as EndRequest) : null;
};

/** @param declare carries out what is said */
export function answerEnd(
  state: GroupState,
  { host, end }: EndRequest,
  declare: (view: HostView, death: ActualPresenceDeath) => void,
  wallMs: number,
): Json {
  const view = state.hosts.get(host);
  if (view === undefined)
    return toJson({ known: null, ended: null, against: `there is no host ${host}` } satisfies EndAnswer);
  const against = whyNot(state, view) ?? (end === null ? null : whyNotThat(view, end));
  if (against === null && end !== null) {
    const { generation, boot } = end;
    const over = { ended: boot, endedIn: generation };
    declare(view, { host, generation, incarnation: 0, declaredAt: wallMs, reporters: view.reports.size, ...over });
  }
  return toJson({ known: view.known, against, ended: view.declared?.ended ?? null } satisfies EndAnswer);
}

/** A word about a boot that the host never said it was in would end those that are to come. */
function whyNotThat(
  { host, known }: HostView,
  { generation, boot }: { generation: number; boot: number },
): string | null {
  // Who asks has what the other members know: one that knows nothing of the host stands in nobody's way.
  if (known === null || (generation <= known.generation && boot <= (known.boot ?? -1))) return null;
  return `host ${host} was never heard in boot ${boot}: ask for its end again`;
}

function whyNot(state: GroupState, view: HostView): string | null {
  const { host } = view;
  // Just started (null): whether it hears the host will show in a moment.
  const presence = view.reachable === null ? "unknown" : view.reachable ? "up" : "dead";
  const against = whyNotNow("dead", null, { host, administration: "enabled", presence });
  if (against !== null) return against.why;
  const seers = seersOf(state, view);
  return seers.length === 0
    ? null
    : `${seers.join(", ")} may hear host ${host} still, or have lost it only now: that shows within some 20 s`;
}

/** Living hosts that this member hears and that do not report it, unless enough others do. */
function seersOf(state: GroupState, view: HostView): readonly HostName[] {
  if (isGone(view)) return [];
  const others = [...state.hosts.values()].filter((other) => other !== view && !isGone(other));
  const heard = others.filter(({ reachable }) => reachable === true);
  const reporters = heard.filter(({ host }) => view.reports.has(host)).length;
  if (reporters > thresholdOf(others.length + 1, state.options.threshold ?? thresholdCap)) return [];
  return heard.filter(({ host }) => !view.reports.has(host)).map(({ host }) => host);
}
