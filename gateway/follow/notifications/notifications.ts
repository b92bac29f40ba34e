import { setTimeout as sleep } from "node:timers/promises";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { CellNews, NoticeKind } from "../../../model/contract/tenancy/subscriptions.ts";
import { parseJson } from "../../../runtime/http/http.ts";
import { type KeptConnection, keepConnection, peerRequest } from "../../../runtime/http/https.ts";
import type { ProcessConfiguration } from "../../../runtime/installation.ts";
import type { PostedNotice, Told } from "../../../runtime/tenancy/notices.ts";
import { findPeer } from "../../../runtime/transport/peers.ts";
import { postNotice } from "../../ha/notices.ts";
import { createReceivers, receiverAlone } from "./receivers.ts";
import { type WatchMeans, type WatchTimes, watchCell } from "./watch.ts";

/*
 * Notices of cells to URLs of users: which cells are watched for whom, and what is due, the service `tenancy` says (`core/tenancy/subscriptions/`); here
 * cells are followed and notices posted, since nothing else of the installation has both. Whatever is lost with this process is looked at anew.
 */
const tenancy = peerName("tenancy");
const waitMs = 40_000;
const againMs = 5_000;
/** Where there is no such service, or an earlier version of it. */
const noneMs = 60_000;

interface Watched {
  readonly uid: string;
  readonly cell: string;
  readonly events: readonly NoticeKind[];
  readonly as: string;
}
export interface Notifications {
  readonly sourceOf: WatchMeans["sourceOf"];
  /** What looks whether an address may be posted to. */
  readonly receivers?: () => Promise<(address: string) => boolean>;
  readonly times?: WatchTimes;
}

type Ask = <T>(connection: KeptConnection, path: string, body: object) => Promise<T>;
const asker =
  (configuration: ProcessConfiguration, over: AbortSignal): Ask =>
  async <T>(connection: KeptConnection, path: string, body: object): Promise<T> => {
    const answer = await peerRequest(configuration, tenancy, {
      method: "POST",
      path,
      connection,
      signal: AbortSignal.any([over, AbortSignal.timeout(waitMs)]),
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    const read = parseJson(text);
    if (answer.status !== 200 || !read.ok) throw new Error(`the service tenancy answered with ${answer.status}`);
    return read.value as T;
  };

/** What is watched, by the subscription's UID and the cell, with what is told of it. */
class WatchedCells {
  readonly #watched = new Map<string, { readonly as: string; readonly end: () => void }>();
  readonly #sessions = new Map<string, Promise<string>>();
  readonly #say: (path: string, body: object) => Promise<unknown>;
  readonly #means: Notifications;
  constructor(say: (path: string, body: object) => Promise<unknown>, means: Notifications) {
    this.#say = say;
    this.#means = means;
  }
  /** From now on these, and no others. */
  be(watches: NonNullable<Told["watches"]>): void {
    const wanted = new Map<string, Watched>(
      watches.flatMap(({ uid, cells, events }) =>
        cells.map((cell) => [`${uid} ${cell}`, { uid, cell, events, as: events.join() }] as const),
      ),
    );
    for (const [key, { as, end }] of [...this.#watched])
      if (wanted.get(key)?.as !== as) {
        end();
        this.#watched.delete(key);
        // A subscription that was changed has ended its session.
        this.#sessions.delete(key.split(" ")[0] ?? "");
      }
    for (const [key, each] of wanted)
      if (!this.#watched.has(key)) this.#watched.set(key, { as: each.as, end: this.#begin(each) });
  }
  end(): void {
    for (const { end } of this.#watched.values()) end();
  }
  #begin({ uid, cell, events }: Watched): () => void {
    const to: WatchMeans = {
      session: () => this.#sessionOf(uid),
      ended: () => void this.#sessions.delete(uid),
      sourceOf: this.#means.sourceOf,
      tell: async (news: CellNews) => void (await this.#say("/notices", { subscription: uid, news })),
    };
    return watchCell(cell, events, to, this.#means.times);
  }
  #sessionOf(uid: string): Promise<string> {
    const known = this.#sessions.get(uid);
    if (known !== undefined) return known;
    const made = this.#say(`/watches/${uid}`, {}).then(
      (given) => `Bearer ${(given as { readonly session: string }).session}`,
    );
    // All cells of a subscription are read by one: who begins another ends those before.
    this.#sessions.set(uid, made);
    made.catch(() => this.#sessions.delete(uid));
    return made;
  }
}

/** As long as the process lives. @returns what ends that */
export function followNotifications(configuration: ProcessConfiguration, means: Notifications): () => void {
  const over = new AbortController();
  const { receivers = createReceivers(configuration) } = means;
  // The one waits; what is said goes over the other.
  const [asking, saying] = [keepConnection(configuration, tenancy), keepConnection(configuration, tenancy)];
  const ask = asker(configuration, over.signal);
  const say = (path: string, body: object): Promise<unknown> => ask(saying, path, body);
  const cells = new WatchedCells(say, means);
  const carry = async (due: PostedNotice): Promise<void> => {
    const { subscription, number } = due;
    const reason = await receivers().then(
      (allows) => postNotice(due, receiverAlone(allows)),
      (error: unknown) => (error as Error).message.slice(0, 300),
    );
    await say("/notices/said", { subscription, number, taken: reason === null, reason });
  };
  let known: string | null = null;
  const next = async (): Promise<void> => {
    const told = await ask<Told>(asking, "/notices/next", { watched: known });
    if (told.watches !== undefined) cells.be(told.watches);
    known = told.watched ?? known;
    // Whoever is slow to take one holds up nobody else's. Where the word is lost the notice is carried once more.
    if (told.due !== undefined) void carry(told.due).catch(() => undefined);
  };
  const follow = async (): Promise<void> => {
    while (!over.signal.aborted) {
      try {
        if ((await findPeer(configuration, tenancy)).ok) await next();
        else await sleep(noneMs, undefined, { signal: over.signal, ref: false });
      } catch {
        await sleep(againMs, undefined, { signal: over.signal, ref: false }).catch(() => undefined);
      }
    }
  };
  void follow();
  return () => {
    over.abort();
    cells.end();
    asking.agent.destroy();
    saying.agent.destroy();
  };
}
