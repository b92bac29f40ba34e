import type { MachineCondition } from "./driver.ts";
import { asRecord } from "./process/lines.ts";
import type { Qmp, QmpEvent } from "./qmp.ts";

/**
 * What QEMU says of its guest while the process goes on: reset, panic, power-off, and CPUs that it stopped because a disk
 * gave an error. The last is taken back here too: with `werror=stop` QEMU never goes on by itself, so `cont` is tried until
 * the disk works. Over NBD that takes two of them: the first finds the connection broken and has it made anew (measured).
 */
export interface ConditionWatch {
  event(event: QmpEvent): void;
  /** A control connection was made, perhaps to a machine whose news nobody heard: looks at how it is. */
  connected(qmp: Qmp): Promise<void>;
  /** Says and does nothing more. */
  close(): void;
}
export interface ConditionNews {
  tell(news: Omit<MachineCondition, "vm" | "incarnation">): void;
  poweredOff(): void;
  /** The guest cannot go on; `why` is a sentence. */
  dead(why: string): void;
}

/** Errors of several requests come together. */
const gatherMs = 50;
/** `settledMs`: CPUs that run this long after `cont` without a new error really run. */
const usualPace = { firstResumeMs: 500, longestResumeMs: 10_000, settledMs: 2000 };
/**
 * Linux tries one way to reset after another until one works; two resets within this time are one. Measured: 17 ms, and 0.3 s where processors are
 * emulated and have little of the machine's. None comes up and resets itself once more in so short a time.
 */
const sameResetMs = 1000;

export const watchCondition = (
  news: ConditionNews,
  pace = usualPace,
  now = (): number => performance.now(),
): ConditionWatch => {
  let qmp: Qmp | null = null;
  let closed = false;
  let stalled = false;
  let resumeMs = pace.firstResumeMs;
  let timer: NodeJS.Timeout | null = null;
  let resetAt = Number.NEGATIVE_INFINITY;
  let lastError = "Input/output error";

  const after = (ms: number, work: () => Promise<void>): void => {
    if (timer !== null) clearTimeout(timer);
    if (closed) return;
    timer = setTimeout(() => {
      timer = null;
      // A connection that breaks meanwhile is made again, and looks again.
      work().catch(() => undefined);
    }, ms);
    timer.unref();
  };
  const look = async (): Promise<void> => {
    if (qmp === null || closed) return;
    const { status } = asRecord(await qmp.execute("query-status"));
    if (closed) return;
    switch (status) {
      case "prelaunch":
        await qmp.execute("cont");
        return;
      case "shutdown":
        news.poweredOff();
        return;
      case "guest-panicked":
        news.dead("its guest's kernel panicked");
        return;
      case "internal-error":
        news.dead("its virtual processors met an error that QEMU cannot handle");
        return;
      case "io-error": {
        const connections = failing(await qmp.execute("query-block"));
        if (closed) return;
        stalled = true;
        news.tell({ condition: "stalled", detail: lastError, connections });
        after(resumeMs, resume);
        resumeMs = Math.min(pace.longestResumeMs, resumeMs * 2);
        return;
      }
      case "running":
        if (!stalled) return;
        stalled = false;
        resumeMs = pace.firstResumeMs;
        news.tell({ condition: "running", detail: "its disks answer again" });
    }
  };
  const resume = async (): Promise<void> => {
    after(pace.settledMs, look);
    await qmp?.execute("cont");
  };
  return {
    event: ({ event, data }) => {
      if (closed) return;
      if (event === "SHUTDOWN" && data.guest === true) news.poweredOff();
      else if (event === "RESET" && data.guest === true) {
        // From the one that was told: a guest that resets itself again and again, more often than that, is told of too.
        if (now() - resetAt < sameResetMs) return;
        resetAt = now();
        news.tell({ condition: "rebooted", detail: "its guest reset itself" });
      } else if (event === "GUEST_PANICKED") after(0, look);
      else if (event === "BLOCK_IO_ERROR" && data.action === "stop") {
        if (typeof data.reason === "string") lastError = data.reason;
        after(gatherMs, look);
      } else if (event === "STOP") after(gatherMs, look);
    },
    connected: async (connection) => {
      qmp = connection;
      await look();
    },
    close: () => {
      closed = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
};

/** Connections whose device has an error, from the answer to `query-block`; devices are named `disk-<connection>`. */
const failing = (answer: unknown): readonly string[] =>
  (Array.isArray(answer) ? answer : []).flatMap((entry) => {
    const { "io-status": status, qdev } = asRecord(entry);
    const connection = typeof qdev === "string" ? /(?:^|\/)disk-([A-Za-z0-9-]+)/.exec(qdev)?.[1] : undefined;
    return connection !== undefined && (status === "failed" || status === "nospace") ? [connection] : [];
  });
