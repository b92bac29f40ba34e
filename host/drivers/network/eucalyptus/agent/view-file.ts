import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { NetworkView } from "../../../../../model/eucalyptus/view/network-view.ts";
import { writeView } from "../../../../../model/eucalyptus/view/write-view.ts";
import { realFiles, renameDurably } from "../../../../../runtime/process/durable-files.ts";
import { wakeable } from "../../../../../runtime/process/wakeable.ts";
import { type NetworkAgent, viewFile } from "./agent.ts";

type Follower = Pick<NetworkAgent, "look" | "prolong">;
/** Views that come from the Network View Manager, written where the agent looks: the latest one whole, or the one before it. */
export class ViewFile {
  readonly #directory: string | null;
  readonly #failed: (why: string) => void;
  #view: NetworkView | null = null;
  #agent: Follower = { look: async () => {}, prolong: async () => {} };
  /** For the agent: until when a network host carries its cluster. */
  readonly lease: { untilMs: number | null } = { untilMs: null };

  /** @param directory null: there is no agent */
  constructor(directory: string | null, failed: (why: string) => void) {
    this.#directory = directory;
    this.#failed = failed;
  }
  readonly put = (view: NetworkView): void => {
    this.#view = view;
    void this.#write();
  };
  /** Who looks at the file when there is another one. */
  follow(agent: Follower): void {
    this.#agent = agent;
    void agent.look();
  }
  /** @param leftMs null: it carries without a lease */
  readonly hold = (leftMs: number | null): void => {
    this.lease.untilMs = leftMs === null ? null : performance.now() + leftMs;
    void this.#agent.prolong();
  };
  readonly #write = wakeable(
    async () => {
      const view = this.#view;
      if (view === null || this.#directory === null) return;
      const path = join(this.#directory, viewFile);
      await mkdir(this.#directory, { recursive: true });
      await realFiles.write(`${path}.new`, writeView(view), 0o644);
      await renameDurably(`${path}.new`, path);
      await this.#agent.look();
    },
    () => false,
    (error) => this.#failed(error.message),
  );
}
