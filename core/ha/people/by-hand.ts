import { whyNot } from "../../../model/contract/actions/actions.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { Instant } from "../../env.ts";
import { isObject, log } from "../../outbox.ts";
import { beginPause, endStorm } from "../guards.ts";
import { isActive, type WorkItem } from "../item.ts";
import { createAsking, type HaState, saveItem } from "../state.ts";
import { acknowledge } from "./alerts.ts";

/*
 * What people say of the queue: that they have looked, that a VM is to be left alone, or that something is to be tried at once. Nothing
 * here is a fence: whatever they say, an incarnation is over only when that is certain.
 */

/** Why a word changes nothing. */
export interface ByHandRefusal {
  readonly status: 404 | 409;
  readonly message: string;
}

/** A request that is none of these changes nothing. */
export function takeWord(state: HaState, request: Json, now: Instant): ByHandRefusal | null {
  if (!isObject(request)) return null;
  const { kind, cell, path } = request;
  if (kind === "ha-pause") beginPause(state, now);
  if (kind === "ha-acknowledge") return acknowledged(state, request, now);
  if (kind === "ha-release" && typeof path !== "string") endStorm(state);
  if (typeof path !== "string" || typeof cell !== "string") return null;
  const about: About = { cell, path };
  if (kind === "ha-release") release(state, about);
  if (kind === "ha-cancel") return cancel(state, about);
  return kind === "ha-retry" ? retry(state, about) : null;
}
function acknowledged(state: HaState, request: JsonObject, now: Instant): ByHandRefusal | null {
  const [alert, subject] = [String(request.alert), String(request.subject)];
  if (acknowledge(state, alert, subject, now)) return null;
  const about = subject === "" ? "" : ` about ${subject}`;
  return { status: 404, message: `there is no open alert "${alert}"${about}; \`cells alerts\` shows those that are` };
}
interface About {
  readonly cell: string;
  readonly path: string;
}
const isAbout =
  ({ cell, path }: About) =>
  (item: WorkItem): boolean =>
    item.cell === cell && item.path === path;
const activeOf = ({ active }: HaState, about: About): WorkItem | undefined => [...active.values()].find(isAbout(about));
/** One that a person has cancelled, of the incarnation that is protected. */
const cancelledOf = ({ ended, wanted }: HaState, about: About): WorkItem | undefined =>
  [...ended.values()].find(
    (item) =>
      isAbout(about)(item) && item.cancelled === true && wanted.get(item.vm)?.document.incarnation === item.incarnation,
  );
const nothing = ({ path }: About): ByHandRefusal => ({
  status: 404,
  message: `nothing is being done about ${path}; \`cells ha\` shows what is`,
});

/** An operator has looked at a VM that is held. */
function release(state: HaState, about: About): void {
  const item = activeOf(state, about);
  if (item?.held === undefined) return;
  log(state.outbox, "ha/released", { vm: item.vm, path: item.path, cell: item.cell });
  saveItem(state, { ...item, released: true });
  state.dirty.add(item.vm);
}

/** This incarnation is left alone until somebody has it tried again; what has begun to be fenced is not half alive. */
function cancel(state: HaState, about: About): ByHandRefusal | null {
  const item = activeOf(state, about);
  const inOrder = [...state.orderly.active.values()].find(isAbout(about));
  const work = inOrder ?? item;
  if (work === undefined) return cancelledOf(state, about) === undefined ? nothing(about) : null;
  const { path, type, step } = work;
  const against = whyNot("cancelWork", null, { path, type, step, isHeld: false });
  if (against !== null || item === undefined) return against === null ? null : { status: 409, message: against.why };
  log(state.outbox, "ha/cancelled", { vm: item.vm, path: item.path, cell: item.cell, incarnation: item.incarnation });
  saveItem(state, { ...item, cancelled: true });
  state.dirty.add(item.vm);
  return null;
}

/** What was cancelled is due again; of what waits everybody is asked anew. */
function retry(state: HaState, about: About): ByHandRefusal | null {
  const item = activeOf(state, about) ?? cancelledOf(state, about);
  if (item === undefined) return nothing(about);
  log(state.outbox, "ha/retried", { vm: item.vm, path: item.path, cell: item.cell, incarnation: item.incarnation });
  if (isActive(item.step)) {
    const { peers, strays } = state.asking.get(item.host) ?? createAsking();
    state.asking.set(item.host, { ...createAsking(), strays: new Set([...peers, ...strays]) });
    state.probes.delete(item.host);
    state.looksDue.add(item.host);
  } else {
    const { cancelled: _cancelled, ...due } = item;
    saveItem(state, due);
  }
  state.dirty.add(item.vm);
  return null;
}
