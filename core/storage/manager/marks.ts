import type { PeerName } from "../../../model/cell/identifiers.ts";
import type { AgentMark, AgentSeen, Mark } from "../../documents/bin.ts";
import { desire, isObject, log, sameJson, toJson, write } from "../../outbox.ts";
import { type AgentView, type ManagerState, serverOf } from "./state.ts";

/** What this manager has seen of an agent's mark (`../agent/mark.ts`). Durable: record `mark/<agent>`. */
interface SeenRecord {
  /** The agent's present start. */
  readonly start: string;
  /** The last mark that was confirmed, of whichever start. */
  readonly last: Mark | null;
  /** The last one of an earlier start. */
  readonly before: Mark | null;
  /** The last adoption by an operator that it told of. */
  readonly adoption?: Mark;
}

/** At a start: a server that was removed is a new one if it ever joins again. */
export function forgetMarks(state: ManagerState): void {
  for (const key of [...state.outbox.records.keys()]) {
    const [kind, name] = key.split("/");
    if (kind === "mark" && !state.agents.has(name as PeerName)) write(state.outbox, key, null);
  }
}

/**
 * Another machine has the server's name. Where volumes of the former one are known it may have its disk, so that what was seen
 * of it counts; otherwise nothing of it is left.
 */
export function forgetFormer(state: ManagerState, agent: AgentView): void {
  agent.older = false;
  for (const volume of state.volumes.values()) if (volume.agent === agent.name) return;
  write(state.outbox, `mark/${agent.name}`, null);
}

const adoptionOf = (seen: SeenRecord | null): Pick<SeenRecord, "adoption"> =>
  seen?.adoption === undefined ? {} : { adoption: seen.adoption };

/** At each start of an agent it is told what was seen last before; what it then counts is seen. */
export function takeMark(state: ManagerState, agent: AgentView, mark: AgentMark): void {
  const key = `mark/${agent.name}`;
  const stored = state.outbox.records.get(key);
  let seen = (isObject(stored) ? stored : null) as SeenRecord | null;
  const isFirstWord = seen?.start !== mark.start;
  if (seen?.start !== mark.start)
    seen = { start: mark.start, last: seen?.last ?? null, before: seen?.last ?? null, ...adoptionOf(seen) };
  // A blank server counts until it has heard what was seen before. What it counted by then is no later state of the other's
  // disk, which may only have to be mounted again.
  const mayBeBlank = seen.last !== null && seen.last.start !== mark.start && (isFirstWord || mark.tick === 1);
  if (mark.tick > 0 && !mayBeBlank) seen = { ...seen, last: { start: mark.start, tick: mark.tick } };
  const { adoption } = mark;
  const isNews = adoption === undefined || !sameJson(toJson(adoption), toJson(seen.adoption ?? {}));
  if (adoption !== undefined) seen = { ...seen, adoption };
  write(state.outbox, key, seen);
  const said: AgentSeen = { start: seen.start, last: seen.before };
  desire(state.outbox, agent.name, "seen", toJson(said) as object);
  if (agent.older && mark.adopted === true && isNews) {
    agent.older = false;
    state.outbox.effects.push({ kind: "recovered", at: agent.name });
    log(state.outbox, "recovery/adopted", { server: serverOf(agent.name) });
  }
}
