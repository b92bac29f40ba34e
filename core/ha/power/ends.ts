import { type HostName, hostName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Instant } from "../../env.ts";
import { isObject, log, toJson, write } from "../../outbox.ts";
import { hasEnded } from "../../presence/group/deaths.ts";
import { type EndAnswer, mergeEnds } from "../../presence/group/end.ts";
import type { HaState } from "../state.ts";
import type { PowerOff } from "./power-state.ts";

/*
 * A power that was read as off is told to the Presence group, as an operator tells it (decision 36): then every controller knows that what ran
 * in that boot has ended, also of VMs that nobody starts elsewhere. The group takes it once it does not hear the host itself; until then the edge asks again.
 */

/** What the edge is to tell the group. */
export interface DueEnd {
  readonly host: HostName;
  readonly boot: number;
}

/** One that nobody takes, as of a host that has left the installation, is not said for ever. */
const saidForMs = 86_400_000;

export const dueEnds = ({ power: { offs }, deaths }: HaState, { wallMs }: Instant): readonly DueEnd[] =>
  [...offs.values()].flatMap(({ host, boot, at, told }) =>
    told === true || wallMs - at > saidForMs || hasEnded(deaths, host, boot) ? [] : [{ host, boot }],
  );

/** Answers what the edge asks. @returns undefined: it is no such request */
export function answerEnds(state: HaState, request: Json, now: Instant): Json | undefined {
  if (!isObject(request)) return undefined;
  const { kind, host, boot } = request;
  if (kind === "ha-ends-next") return toJson(dueEnds(state, now));
  if (kind !== "ha-end-told" || typeof host !== "string") return undefined;
  const off = state.power.offs.get(hostName(host));
  if (off === undefined || off.boot !== boot || off.told === true) return {};
  const told: PowerOff = { ...off, told: true };
  write(state.outbox, `off/${off.host}`, told);
  state.power.offs.set(off.host, told);
  log(state.outbox, "ha/end-told", { host, boot });
  return {};
}

/** What is to be said to the group after what its members answered; "over": nothing any more; "wait": ask again. */
export function endToSay(
  { host, boot }: DueEnd,
  answers: readonly EndAnswer[],
): { readonly generation: number; readonly boot: number } | "over" | "wait" {
  if (answers.length === 0) return "wait";
  const { known, against, ended } = mergeEnds(host, answers);
  if (ended !== null && ended >= boot) return "over";
  if (known === null || known.boot === null || known.boot < boot) return "wait";
  // It is there again, and has shown by a later boot that this one is over.
  if (known.boot > boot) return "over";
  return against === null ? { generation: known.generation, boot } : "wait";
}
