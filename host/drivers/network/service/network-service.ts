import { wakeable } from "../../../../runtime/process/wakeable.ts";
import { allCalls, type Call, calls, type ModeDriver, PartlyFailed } from "./mode-driver.ts";

/**
 * The service layer of the paper: one loop for every networking mode, and no mode named in it.
 *
 * A pass looks at the whole state: what is in place, what the last good view says, what failed before. A new view, another local
 * configuration and the word to flush only say that a pass is due; asked for often meanwhile, there is one more. Between them a pass
 * comes by itself, so that what somebody deletes by hand comes back.
 *
 * An invalid view is refused whole, and the last good one stays in force. The end of the service takes nothing away.
 */
export interface NetworkServiceOptions<Global, Local, Configuration> {
  /** By name. */
  readonly drivers: ReadonlyMap<string, ModeDriver<Global, Local, Configuration>>;
  /** Of this machine; read anew whenever it may have changed. */
  readonly configuration: () => Promise<Configuration>;
  /** Told after each pass. */
  readonly report?: (state: NetworkServiceState) => void;
  /** Between passes that nobody asks for. */
  readonly periodMs?: number;
}
export interface NetworkServiceState {
  /** Of the view in force; null: none has come. */
  readonly mode: string | null;
  /** What keeps the driver from working at all. */
  readonly missing: readonly string[];
  /** What is still to be done, and why it is not. */
  readonly failed: Readonly<Partial<Record<Call | "configuration" | "upgrade" | "read" | "flush", string>>>;
  /** Of what failed, but for some parts is in place: these, by their names, with why. */
  readonly partly?: Readonly<Partial<Record<Step, ReadonlyMap<string, string>>>>;
  /** Why the latest view is not in force; null: it is. */
  readonly refused: string | null;
  /** What nobody wants any more and stays in place, as sentences; nothing is due because of it. */
  readonly left: readonly string[];
  /** What of the view in force is left out or may go wrong, as sentences: the first of them. Absent: nothing. */
  readonly warnings?: readonly string[];
}
export interface OfferedView<Global> {
  /** Name of the driver. */
  readonly mode: string;
  readonly global: Global;
}
type Step = keyof NetworkServiceState["failed"];

const defaultPeriodMs = 5000;
/** In this order. */
const order: readonly Call[] = ["network", "securityGroup", "addressing"];
const [mostWarnings, longestWarning] = [20, 500];
/** A view may name thousands of groups, and all of them in one sentence. */
const bounded = (warnings: readonly string[]): readonly string[] => {
  const more = warnings.length - mostWarnings;
  const first = warnings.slice(0, mostWarnings);
  return [...first, ...(more > 0 ? [`and ${more} more`] : [])].map((text) =>
    text.length > longestWarning ? `${text.slice(0, longestWarning - 1)}…` : text,
  );
};
const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export class NetworkService<Global, Local, Configuration> {
  readonly #options: NetworkServiceOptions<Global, Local, Configuration>;
  readonly #failed = new Map<Step, unknown>();
  #view: OfferedView<Global> | null = null;
  #refused: string | null = null;
  #missing: readonly string[] = [];
  /** By which the driver of this name was set up; null: none is. */
  #ready: string | null = null;
  #upgraded: string | null = null;
  #warnings: readonly string[] = [];
  #due = 0;
  #flush = false;
  #changed = true;
  #isStopped = false;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: NetworkServiceOptions<Global, Local, Configuration>) {
    this.#options = options;
  }

  get state(): NetworkServiceState {
    const failed = [...this.#failed];
    const partly = failed.flatMap(([step, error]) => (error instanceof PartlyFailed ? [[step, error.parts]] : []));
    return {
      mode: this.#view?.mode ?? null,
      missing: this.#missing,
      failed: Object.fromEntries(failed.map(([step, error]) => [step, reasonOf(error)])),
      ...(partly.length === 0 ? {} : { partly: Object.fromEntries(partly) }),
      refused: this.#refused,
      left: this.#driver()?.left?.() ?? [],
      ...(this.#warnings.length === 0 ? {} : { warnings: this.#warnings }),
    };
  }

  /** A new view. One of a mode that nobody drives is refused. */
  offer(view: OfferedView<Global>): Promise<void> {
    if (!this.#options.drivers.has(view.mode)) return this.refuse(`nothing here drives the mode ${view.mode}`);
    this.#refused = null;
    this.#view = view;
    this.#warnings = bounded(this.#driver()?.warnings?.(view.global) ?? []);
    return this.look();
  }
  /** A view came that is none. */
  refuse(why: string): Promise<void> {
    this.#refused = why;
    return this.look();
  }
  /** The local configuration may be another one. */
  reconfigure(): Promise<void> {
    this.#changed = true;
    return this.look();
  }
  /** All is put in place anew. */
  flush(): Promise<void> {
    this.#flush = true;
    return this.look();
  }

  /** Passes by itself, until `stop`. */
  start(): void {
    this.#timer ??= setInterval(() => void this.look(), this.#options.periodMs ?? defaultPeriodMs);
  }
  /** Ends after the pass that runs; all stays in place. */
  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#isStopped = true;
    await this.look();
    this.#isStopped = false;
  }
  /** The machine leaves: what the driver has put there goes. */
  async leave(): Promise<void> {
    await this.stop();
    await this.#driver()?.cleanup();
    this.#view = null;
    this.#warnings = [];
    this.#ready = null;
  }

  /** A pass, and another one where it was asked for meanwhile; done when both are. */
  readonly look = wakeable(
    async () => {
      await this.#pass();
      this.#options.report?.(this.state);
    },
    () => this.#isStopped,
    (error) => {
      throw error;
    },
  );

  #driver(): ModeDriver<Global, Local, Configuration> | undefined {
    return this.#view === null ? undefined : this.#options.drivers.get(this.#view.mode);
  }

  /** Whether it worked; its reason is kept until it does. */
  async #try(step: Step, work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      this.#failed.delete(step);
      return true;
    } catch (error) {
      this.#failed.set(step, error);
      return false;
    }
  }

  async #pass(): Promise<void> {
    const [driver, view] = [this.#driver(), this.#view];
    if (driver === undefined || view === null) return;
    if (!(await this.#setUp(driver, view))) return;
    // Before anything is read: what a flush may change is seen.
    if (this.#flush && !(await this.#flushed(driver))) return;
    let local: Local | null = null;
    const isRead = await this.#try("read", async () => {
      local = await driver.read();
    });
    if (!isRead || local === null) return;
    this.#due |= driver.scrub(view.global, local) & allCalls;
    const [found, read]: [Local, () => Promise<Local>] = [local, () => driver.read()];
    // Each call sees what the one before has put in place, and the first what the pass has read.
    let seen = async (): Promise<Local> => found;
    for (const call of order) {
      if ((this.#due & calls[call]) === 0) {
        this.#failed.delete(call);
        continue;
      }
      let behind = read;
      const isMade = await this.#try(call, async () =>
        driver[call](view.global, await seen(), (next) => {
          behind = next;
        }),
      );
      if (isMade) this.#due &= ~calls[call];
      seen = isMade ? behind : read;
    }
  }

  async #flushed(driver: ModeDriver<Global, Local, Configuration>): Promise<boolean> {
    const isDone = await this.#try("flush", () => driver.flush());
    if (!isDone) return false;
    this.#flush = false;
    this.#due = allCalls;
    return true;
  }

  /** The driver of the view's mode, with the configuration of now; one of another mode goes first. */
  async #setUp(driver: ModeDriver<Global, Local, Configuration>, view: OfferedView<Global>): Promise<boolean> {
    const before =
      this.#ready !== null && this.#ready !== view.mode ? this.#options.drivers.get(this.#ready) : undefined;
    if (before !== undefined) {
      if (!(await this.#try("flush", () => before.cleanup()))) return false;
      this.#ready = null;
      this.#due = 0;
    }
    if (this.#changed || this.#ready !== view.mode) {
      const isRead = await this.#try("configuration", async () => {
        this.#missing = await driver.init(await this.#options.configuration());
      });
      if (!isRead) return this.#ready === view.mode;
      this.#changed = false;
      this.#ready = this.#missing.length === 0 ? view.mode : null;
      // What is missing may come while nobody says so.
      if (this.#ready === null) this.#changed = true;
    }
    if (this.#ready === null) return false;
    if (this.#upgraded === view.mode) return true;
    const isUpgraded = await this.#try("upgrade", () => driver.upgrade(view.global));
    if (isUpgraded) this.#upgraded = view.mode;
    return isUpgraded;
  }
}
