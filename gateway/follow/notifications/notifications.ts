import { peerName } from "../../../model/cell/identifiers.ts";
import type { CellNews, NoticeKind } from "../../../model/contract/tenancy/subscriptions.ts";
import { keepConnection } from "../../../runtime/http/https.ts";
import type { ProcessConfiguration } from "../../../runtime/installation.ts";
import { createTurns } from "../../../runtime/process/one-at-a-time.ts";
import type { PostedNotice, Told } from "../../../runtime/tenancy/notices.ts";
import { postNotice } from "../../ha/notices.ts";
import { askWaiting, whileThere } from "../../requests/waited-on.ts";
import { createReceivers, receiverAlone } from "./receivers.ts";
import { looksEveryMs, type VolumesWatchMeans, watchVolumes } from "./volumes.ts";
import { type WatchMeans, type WatchTimes, watchCell } from "./watch.ts";

/*
 * Notices of cells to URLs of users: which cells are watched for whom, and what is due, the service `tenancy` says (`core/tenancy/subscriptions/`); here
 * cells are followed and notices posted, since nothing else of the installation has both. Whatever is lost with this process is looked at anew.
 */
const tenancy = peerName("tenancy");
/** Where there is no such service, or an earlier version of it. */
const noneMs = 60_000;

interface Watched {
  readonly uid: string;
  readonly cell: string;
  readonly events: readonly NoticeKind[];
  readonly as: string;
  /** Persistent volumes in the place of a cell. */
  readonly volumes?: true;
}
/** No name of a cell. */
const ofVolumes = "<volumes>";
export interface Notifications {
  readonly sourceOf: WatchMeans["sourceOf"];
  /** How CaaS is asked. */
  readonly volumes: Pick<VolumesWatchMeans, "all" | "one">;
  /** What looks whether an address may be posted to. */
  readonly receivers?: () => Promise<(address: string) => boolean>;
  readonly times?: WatchTimes;
  /** Between two looks at persistent volumes. */
  readonly looksEveryMs?: number;
}

/** What is watched, by the subscription's UID and the cell, with what is told of it. */
class WatchedCells {
  readonly #watched = new Map<string, { readonly as: string; readonly end: () => void }>();
  readonly #sessions = new Map<string, Promise<string>>();
  readonly #say: (path: string, body: object) => Promise<unknown>;
  readonly #means: Notifications;
  /** One look at persistent volumes after the other, whosever they are. */
  readonly #inTurn = createTurns();
  constructor(say: (path: string, body: object) => Promise<unknown>, means: Notifications) {
    this.#say = say;
    this.#means = means;
  }
  /** From now on these, and no others. */
  be(watches: NonNullable<Told["watches"]>): void {
    const wanted = new Map<string, Watched>(
      watches.flatMap(({ uid, cells, volumes, events }) => {
        const as = events.join();
        const its: readonly Watched[] = [
          ...cells.map((cell) => ({ uid, cell, events, as })),
          ...(volumes === true && events.includes("volume") ? [{ uid, cell: ofVolumes, events, as, volumes }] : []),
        ];
        return its.map((each) => [`${uid} ${each.cell}`, each] as const);
      }),
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
  #begin({ uid, cell, events, volumes }: Watched): () => void {
    const to: WatchMeans = {
      session: () => this.#sessionOf(uid),
      ended: () => void this.#sessions.delete(uid),
      sourceOf: this.#means.sourceOf,
      tell: async (news: CellNews) => void (await this.#say("/notices", { subscription: uid, news })),
    };
    if (volumes === true) {
      const { all, one } = this.#means.volumes;
      const everyMs = this.#means.looksEveryMs ?? looksEveryMs;
      return watchVolumes({ ...to, all, one }, { everyMs, inTurn: this.#inTurn });
    }
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
  const ask = askWaiting(configuration, asking, over.signal);
  const sayOver = askWaiting(configuration, saying, over.signal);
  const say = (path: string, body: object): Promise<unknown> => sayOver("POST", path, body);
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
    const told = (await ask("POST", "/notices/next", { watched: known })) as unknown as Told;
    if (told.watches !== undefined) cells.be(told.watches);
    known = told.watched ?? known;
    // Whoever is slow to take one holds up nobody else's. Where the word is lost the notice is carried once more.
    if (told.due !== undefined) void carry(told.due).catch(() => undefined);
  };
  void whileThere(configuration, tenancy, { over: over.signal, noneMs }, next);
  return () => {
    over.abort();
    cells.end();
    asking.agent.destroy();
    saying.agent.destroy();
  };
}
