import type { FollowEvent } from "../../model/contract/follow/follow.ts";
import { type FromTab, sweepMs, Tabs } from "../state/tabs.ts";

/** The worker that all tabs of a browser share: what `web/state/tabs.ts` decides, with a browser's streams and clock. */
const tabs = new Tabs({
  nowMs: () => Date.now(),
  later: (ms, after) => {
    const timer = setTimeout(after, ms);
    return () => clearTimeout(timer);
  },
  open: (topics, heard, over) => {
    const source = new EventSource(`/follow?${new URLSearchParams(topics.map((topic) => ["topic", topic]))}`);
    let isOpen = true;
    for (const kind of ["snapshot", "delta", "ended", "beat"])
      source.addEventListener(kind, (message) => {
        if (isOpen) heard(JSON.parse((message as MessageEvent<string>).data) as FollowEvent);
      });
    source.addEventListener("error", () => {
      // A stream that breaks is asked for again by the browser; it gives up where the answer was no stream.
      if (isOpen && source.readyState === EventSource.CLOSED) over();
    });
    return () => {
      isOpen = false;
      source.close();
    };
  },
  whyRefused: async (topics) => {
    if ((await fetch("/login")).status === 401) return "signed-out";
    const cells = topics.flatMap((topic) => (topic.startsWith("cell:") ? [topic.slice("cell:".length)] : []));
    const asked = await Promise.all(cells.map(async (cell) => [`cell:${cell}`, await whyNot(cell)] as const));
    return new Map(asked.flatMap(([topic, why]) => (why === null ? [] : [[topic, why] as const])));
  },
});
/** Null: the cell is there, or who would have to say so does not answer. */
async function whyNot(cell: string): Promise<string | null> {
  const answer = await fetch(`/cells/${encodeURIComponent(cell)}`).catch(() => null);
  if (answer === null || ![403, 404].includes(answer.status)) return null;
  const said = (await answer.json().catch(() => null)) as { readonly error?: { readonly message?: string } } | null;
  return said?.error?.message ?? `the gateway answered ${answer.status}`;
}
setInterval(() => tabs.sweep(), sweepMs);

(self as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = ({ ports: [port] }) => {
  if (port === undefined) return;
  const hear = tabs.add((said) => port.postMessage(said));
  port.onmessage = ({ data }) => hear(data as FromTab);
};
