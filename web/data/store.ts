import { type Followed, narrowed, nothingFollowed } from "../../model/contract/follow/reduce.ts";
import type { CodeOf, SignedIn } from "../../model/contract/tenancy/sign-in.ts";
import type { NewRegistration } from "../../model/contract/tenancy/tenancy.ts";
import { dropDrafts } from "../state/cell/drafts.ts";
import { isOut, isTouchDue } from "../state/people/signed-in.ts";
import { aliveMs, type FromTab, heardBy, type ToTab } from "../state/tabs.ts";
import { ask, Refused } from "./api.ts";

declare const WORKER_FILE: string;

/** What the page knows. Every change makes another object. */
export interface Known {
  /** Null: nobody, so far as is known; undefined: it is being asked. */
  readonly who: SignedIn | null | undefined;
  /** Why nobody is in, where there is something to say. */
  readonly out: string | null;
  readonly followed: Followed;
  /** When the stream was last heard (`Date.now`); null: not yet. */
  readonly heardMs: number | null;
  /** The moment that somebody has picked in the time line; null: none. */
  readonly markedMs: number | null;
}
let known: Known = { who: undefined, out: null, followed: nothingFollowed, heardMs: null, markedMs: null };
const listeners = new Set<() => void>();
const set = (change: Partial<Known>): void => {
  known = { ...known, ...change };
  for (const listener of listeners) listener();
};
export const store = {
  get: (): Known => known,
  subscribe: (listener: () => void): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
};

export const mark = (markedMs: number | null): void => set({ markedMs });

let port: MessagePort | null = null;
let topics: readonly string[] = [];
const say = (said: FromTab): void => port?.postMessage(said);

function connect(): void {
  if (port !== null) return;
  const policy = window.trustedTypes?.createPolicy("cells", { createScriptURL: () => `/ui/${WORKER_FILE}` });
  const url = policy?.createScriptURL("") ?? `/ui/${WORKER_FILE}`;
  port = new SharedWorker(url as string, { type: "module" }).port;
  port.onmessage = ({ data }) => hear(data as ToTab);
  setInterval(() => say({ kind: "alive" }), aliveMs);
  window.addEventListener("pagehide", () => say({ kind: "leave" }));
  window.addEventListener("pageshow", () => say({ kind: "follow", topics }));
}
function hear(said: ToTab): void {
  if (said.kind === "signed-out") leave("the sign-in is over");
  else if (said.kind === "event") {
    const { followed, isGap } = heardBy(known.followed, said.event, topics);
    set({ followed, heardMs: Date.now() });
    if (isGap) say({ kind: "follow", topics, anew: true });
  }
}
/** What this tab shows. */
export function show(wanted: readonly string[]): void {
  if (wanted.join(" ") === topics.join(" ")) return;
  topics = wanted;
  set({ followed: narrowed(known.followed, new Set(topics)) });
  connect();
  say({ kind: "follow", topics });
}

const leave = (out: string | null): void => {
  topics = [];
  say({ kind: "follow", topics });
  set({ who: null, out, followed: nothingFollowed, heardMs: null, markedMs: null });
};
/** Who is in, by the cookie that the browser has. */
export async function look(): Promise<void> {
  try {
    set({ who: (await ask("readSignIn", "GET", "/login")).value, out: null });
  } catch (error) {
    set({ who: null, out: error instanceof Refused && error.status !== 401 ? error.message : null });
  }
}
/** Whom a one-time code signs in. Rejects with what the gateway has against it. */
export async function readCode(oneTimeCode: string): Promise<CodeOf> {
  return (await ask("readSignInCode", "POST", "/login/codes/read", { body: JSON.stringify({ oneTimeCode }) })).value;
}
/** Rejects with what the gateway has against it. */
export async function signIn(body: object): Promise<void> {
  set({ who: (await ask("signIn", "POST", "/login", { body: JSON.stringify(body) })).value, out: null });
}
/** By an invitation: an account, its first user, who is in then. Rejects with what the gateway has against it. */
export async function register(body: NewRegistration): Promise<void> {
  const { value } = await ask("register", "POST", "/registrations", { body: JSON.stringify(body) });
  await signIn({ user: value.name, domain: value.domain, password: body.password });
}
/** Rejects where the gateway has not said that the cookie is over: whoever sits here is in still. */
export async function signOut(): Promise<void> {
  await ask("signOut", "DELETE", "/login").catch((error: unknown) => {
    if (!isOut(error)) throw error;
  });
  dropDrafts(sessionStorage);
  leave(null);
}

let touchedMs = Date.now();
/** Somebody uses the page: the gateway hears it now and then, so that whoever writes for an hour is not idle. */
export function touch(): void {
  if (known.who == null || !isTouchDue(touchedMs, Date.now())) return;
  touchedMs = Date.now();
  void ask("readSignIn", "GET", "/login").catch((error: unknown) => {
    if (isOut(error)) leave("the sign-in is over");
  });
}
