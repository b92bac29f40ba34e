import { sha256 } from "../../../model/contract/audit/sha256.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { isObject, lengthOf, toJson, write } from "../../outbox.ts";
import type { Asker } from "../model/audited.ts";
import type { Answers } from "../records.ts";
import type { ControllerState } from "../state.ts";

/**
 * A change that its client asks for again, since it had no answer, is made once (draft-ietf-httpapi-idempotency-key-header). The client names it by
 * a key; the answer is kept under the key, and its user, in the transaction that makes the change. So a crash leaves both or
 * neither, and whoever asks again is answered, or has it done now.
 *
 * What was refused, or only planned, has changed nothing, and is not kept: asked again it is looked at anew.
 */
export interface Once {
  readonly key: string;
  /** SHA-256 (hexadecimal) of what is asked: method, path, query, body. */
  readonly digest: string;
}

/** Of a cell. What goes first is what is oldest; the last answer always stays. */
export const keptAnswers = { most: 10_000, characters: 8 * 1024 * 1024, ms: 24 * 3_600_000 } as const;
/** That go with each new one because of their age: a clock that is wrong for a while empties nothing. */
const mostExpired = 2;

interface KeptAnswer {
  readonly user: string;
  readonly key: string;
  readonly digest: string;
  readonly wallMs: number;
  readonly body: Json;
  readonly version: number;
}
const prefix = "answer/";
export const isAnswerRecord = (key: string): boolean => key.startsWith(prefix);
const nameOf = (user: string, key: string): string => `${user}\n${key}`;

export function restoredAnswers(records: ReadonlyMap<string, Json>): Answers {
  const answers: Answers = { numbers: new Map(), kept: new Map(), characters: 0, next: 1 };
  const found = [...records].filter(([key]) => isAnswerRecord(key));
  for (const [key, value] of found.sort(([one], [other]) => numberOf(one) - numberOf(other)))
    note(answers, numberOf(key), value as unknown as KeptAnswer);
  return answers;
}
const numberOf = (key: string): number => Number(key.slice(prefix.length));

function note(answers: Answers, number: number, { user, key, wallMs, body }: KeptAnswer): void {
  const characters = lengthOf(body as object | null);
  const name = nameOf(user, key);
  answers.numbers.set(name, number);
  answers.kept.set(number, { name, wallMs, characters });
  answers.characters += characters;
  answers.next = number + 1;
}

/**
 * Who asks, so that one user's key is none of another's; the hash of a cell's credential is its own. It is a hash: nothing names a user or an
 * account who has gone.
 */
const userOf = ({ who, account = "", credential = "" }: Asker): string => sha256([who, account, credential].join(" "));

/** What a request says of being made once; null: nothing, or it changes nothing. */
export function onceIn(request: Json): { readonly user: string; readonly once: Once } | null {
  if (!isObject(request) || !isObject(request.once) || !isObject(request.by)) return null;
  if (request.dryRun === true || request.tentative === true) return null;
  return { user: userOf(request.by as unknown as Asker), once: request.once as unknown as Once };
}
export const isSameOnce = (one: Json, other: Json): boolean => {
  const [left, right] = [onceIn(one), onceIn(other)];
  return (
    left !== null &&
    right !== null &&
    left.user === right.user &&
    left.once.key === right.once.key &&
    left.once.digest === right.once.digest
  );
};

/** As a controller answers. `replayed`: it was done before, and this is the answer of then. */
interface Before {
  readonly status: number;
  readonly body: Json;
  readonly version: number;
  readonly replayed?: true;
}
/** The answer of when it was done, or that the key was another request's; null: it was not done. */
export function answeredBefore(state: ControllerState, request: Json): Before | null {
  const asked = onceIn(request);
  if (asked === null) return null;
  const { user, once } = asked;
  const number = state.answers.numbers.get(nameOf(user, once.key));
  if (number === undefined) return null;
  const kept = state.outbox.records.get(`${prefix}${number}`) as unknown as KeptAnswer;
  if (state.now.wallMs - kept.wallMs > keptAnswers.ms) return null;
  if (kept.digest === once.digest) return { status: 200, body: kept.body, version: kept.version, replayed: true };
  const message =
    "this Idempotency-Key was used for another request, which was done: each change has a key of its own, also where it is asked for again with another body";
  const { version } = state.model;
  return { status: 422, body: toJson({ error: { code: "idempotency/other-request", message } }), version };
}

/** To be called in the step that has done it, whose transaction it is part of. */
export function keepAnswer(state: ControllerState, request: Json, body: Json): void {
  const asked = onceIn(request);
  if (asked === null) return;
  const { user, once } = asked;
  const { answers } = state;
  const before = answers.numbers.get(nameOf(user, once.key));
  if (before !== undefined) forget(state, before);
  const { version } = state.model;
  const kept: KeptAnswer = { user, ...once, wallMs: state.now.wallMs, body: asKept(body), version };
  const number = answers.next;
  note(answers, number, kept);
  write(state.outbox, `${prefix}${number}`, kept);
  let expired = 0;
  for (const [oldest, { wallMs }] of answers.kept) {
    const isOver = answers.kept.size > keptAnswers.most || answers.characters > keptAnswers.characters;
    const isOld = expired < mostExpired && state.now.wallMs - wallMs > keptAnswers.ms;
    if (oldest === number || !(isOver || isOld)) return;
    if (!isOver) expired += 1;
    forget(state, oldest);
  }
}
function forget({ answers, outbox }: ControllerState, number: number): void {
  const kept = answers.kept.get(number);
  if (kept === undefined) return;
  answers.kept.delete(number);
  answers.numbers.delete(kept.name);
  answers.characters -= kept.characters;
  write(outbox, `${prefix}${number}`, null);
}

/**
 * A plan names each element of the cell; those that stay as they are would make up most of what is kept. Of the others it says which attributes
 * change and from what to what: what was in a model, a secret perhaps, does not outlast it here.
 */
function asKept(body: Json): Json {
  if (!isObject(body) || !isObject(body.plan) || !Array.isArray(body.plan.steps)) return body;
  const { cell } = body.plan;
  const steps = (body.plan.steps as readonly JsonObject[])
    .filter(({ action }) => action !== "none")
    .map((step) => ({ ...step, causes: [] }));
  const whole = isObject(cell) ? { cell: { ...cell, causes: [] } } : {};
  return { ...body, plan: { ...body.plan, ...whole, steps } };
}
