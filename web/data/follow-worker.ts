import type { FollowEvent } from "../../model/contract/follow/follow.ts";
import { type Followed, nothingFollowed, reduced } from "../../model/contract/follow/reduce.ts";
import { type FromTab, goneMs, type ToTab } from "./shared.ts";

/**
 * One stream for all tabs of a browser, which gives an origin six connections only. Each tab says which topics it shows; the stream
 * has all of them. A tab that comes later gets what the worker knows as a snapshot, and is then told what the others are told.
 */
interface Tab {
  readonly port: MessagePort;
  topics: readonly string[];
  heardMs: number;
}
const tabs = new Set<Tab>();
let followed: Followed = nothingFollowed;
let source: EventSource | null = null;
let open = "";
let retry: ReturnType<typeof setTimeout> | undefined;
const retryMs = 2_000;

const wanted = (): string => [...new Set([...tabs].flatMap(({ topics }) => topics))].sort().join(" ");
const tell = (said: ToTab, only = (_tab: Tab): boolean => true): void => {
  for (const tab of tabs) if (only(tab)) tab.port.postMessage(said);
};
const shows = (topic: string | undefined) => (tab: Tab) => topic === undefined || tab.topics.includes(topic);

function look(anew = false): void {
  const topics = wanted();
  if (topics === open && source !== null && !anew) return;
  source?.close();
  source = null;
  open = topics;
  clearTimeout(retry);
  if (topics === "") return;
  const query = new URLSearchParams(topics.split(" ").map((topic) => ["topic", topic]));
  const made = new EventSource(`/follow?${query}`);
  source = made;
  for (const kind of ["snapshot", "delta", "ended", "beat"])
    made.addEventListener(kind, (message) => heard(JSON.parse((message as MessageEvent<string>).data) as FollowEvent));
  made.addEventListener("error", () => {
    if (made !== source) return;
    tell({ kind: "broken" });
    // A browser gives up where the answer was no stream: why, another request says.
    if (made.readyState === EventSource.CLOSED) void askWhy();
  });
}
async function askWhy(): Promise<void> {
  source = null;
  const status = await fetch("/login").then(
    (answer) => answer.status,
    () => 0,
  );
  if (status === 401) tell({ kind: "signed-out" });
  else retry = setTimeout(() => look(true), retryMs);
}
function heard(event: FollowEvent): void {
  const next = reduced(followed, event);
  followed = next.followed;
  if (next.isGap) look(true);
  else tell({ kind: "event", event }, shows(event.topic));
}
/** What is known of a topic, as an event. */
function snapshotOf(topic: string): FollowEvent | null {
  const known = followed.topics.get(topic);
  if (known === undefined) return null;
  const { run, n, rows, stale } = known;
  return {
    ...{ kind: "snapshot", time: new Date().toISOString(), topic, run, n, rows },
    ...(stale === null ? {} : { stale }),
  };
}

function hear(tab: Tab, said: FromTab): void {
  tab.heardMs = Date.now();
  if (said.kind === "leave") tabs.delete(tab);
  else if (said.kind === "follow") {
    const before = new Set(tab.topics);
    tab.topics = said.topics;
    for (const topic of said.topics) {
      const snapshot = before.has(topic) ? null : snapshotOf(topic);
      if (snapshot !== null) tab.port.postMessage({ kind: "event", event: snapshot } satisfies ToTab);
    }
  } else return;
  look();
  const still = new Set(open.split(" "));
  followed = { ...followed, topics: new Map([...followed.topics].filter(([topic]) => still.has(topic))) };
}
setInterval(() => {
  for (const tab of tabs) if (Date.now() - tab.heardMs > goneMs) tabs.delete(tab);
  look();
}, goneMs);

(self as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = ({ ports: [port] }) => {
  if (port === undefined) return;
  const tab: Tab = { port, topics: [], heardMs: Date.now() };
  tabs.add(tab);
  port.onmessage = ({ data }) => hear(tab, data as FromTab);
};
