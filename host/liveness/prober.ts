import type { Json } from "../../model/json/json.ts";
import { wakeable } from "../../runtime/process/wakeable.ts";
import type { NetworkDriver } from "../drivers/network/driver.ts";
import type { HostRequest } from "../host-requests.ts";
import {
  createLiveness,
  dueProbes,
  type HealthChange,
  nextDueMs,
  type Probe,
  type ProbeTarget,
  setTargets,
  takeResult,
} from "./liveness.ts";

export interface ProberOptions {
  readonly network: Pick<NetworkDriver, "probe">;
  readonly request: (request: Json) => Promise<Json>;
  readonly log: (event: string, fields: { readonly [key: string]: Json }) => void;
  /** Default: the machine's. */
  readonly time?: ProberTime;
}
/** `nowMs` is monotonic; `after` returns what cancels it. */
export interface ProberTime {
  readonly nowMs: () => number;
  readonly after: (ms: number, run: () => void) => () => void;
}
const machineTime: ProberTime = {
  nowMs: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};
export interface Prober {
  /** Something may have changed in what is to be probed. */
  wake(): void;
  close(): void;
}

/** Sends the probes that `liveness.ts` asks for and reports what they change. It judges nothing. */
export const createProber = ({ network, request, log, time = machineTime }: ProberOptions): Prober => {
  const liveness = createLiveness(time.nowMs());
  const ask = (message: HostRequest): Promise<Json> => request(message as unknown as Json);
  let cancel: (() => void) | null = null;
  let closed = false;

  const send = async (probe: Probe): Promise<void> => {
    const { interface: uid, protocol, port, timeoutMs } = probe;
    const answered = await network.probe(uid, { protocol, port }, timeoutMs).catch((error: Error) => {
      log("probe-failed", { vm: probe.vm, why: error.message });
      return null;
    });
    if (closed) return;
    const change = takeResult(liveness, { probe, answered }, time.nowMs());
    if (change !== null) report(change);
    turn();
  };
  const report = (change: HealthChange): void => {
    ask({ kind: "health", change }).catch(() => undefined);
  };
  /** Sends what is due and sleeps until something is. */
  const turn = (): void => {
    cancel?.();
    cancel = null;
    if (closed) return;
    for (const probe of dueProbes(liveness, time.nowMs())) void send(probe);
    const waitMs = nextDueMs(liveness, time.nowMs());
    // Not 0: with all places taken what is due waits for an answer, which takes the next turn at once.
    if (waitMs !== null) cancel = time.after(Math.max(20, waitMs), turn);
  };
  // It fails when the service is ending.
  const wake = wakeable(
    async () => {
      const targets = (await ask({ kind: "probe-targets" })) as unknown as readonly ProbeTarget[];
      setTargets(liveness, targets, time.nowMs());
      turn();
    },
    () => closed,
  );
  return {
    wake: () => {
      void wake();
    },
    close: () => {
      closed = true;
      cancel?.();
    },
  };
};
