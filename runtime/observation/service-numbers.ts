import type { NodeInput } from "../../core/distribution/node/types.ts";
import { isObject } from "../../core/outbox.ts";
import { gauge, type Metric, sample } from "../../core/telemetry/metrics.ts";
import { createCounter, createHistogram } from "./metrics.ts";

/**
 * The numbers of a service's loop: what comes in, how long a step and a commit take, and how long inputs wait for their
 * step. The last is the delay of the event loop as work feels it, and costs no timer that would wake an idle process.
 */
export interface ServiceNumbers {
  /** A batch begins whose oldest input has waited so long. */
  waited(ms: number): void;
  step<T>(input: NodeInput, work: () => T): T;
  commit(writes: number, work: () => void): void;
  sent(frame: string): void;
  metrics(now: { readonly queued: number; readonly timers: number; readonly storeBytes: number }): readonly Metric[];
}

const frameOf = (input: NodeInput): string | null => {
  if (input.kind !== "frame") return null;
  const name = isObject(input.frame) ? input.frame.frame : undefined;
  // What a peer sends is not to make series of its own.
  return typeof name === "string" && knownFrames.has(name) ? name : "unknown";
};
const knownFrames = new Set(
  "hello goodbye life desire desired-complete recovered subscribe unsubscribe repair ack kept actual actual-complete digest repaired".split(
    " ",
  ),
);

/** The names are few. */
const remembered = <T>(make: (name: string) => T): ((name: string) => T) => {
  const known = new Map<string, T>();
  return (name) => {
    const found = known.get(name) ?? make(name);
    known.set(name, found);
    return found;
  };
};

/** Longer than that, and whatever else runs in the process waited too long: signs of life are due every two seconds. */
const heldMs = 1000;

/** @param onHeld what took too long (`step actual`, `commit`), and for how many milliseconds */
export const createServiceNumbers = (onHeld: (by: string, ms: number) => void = () => undefined): ServiceNumbers => {
  const took = (by: string, begin: number): number => {
    const ms = performance.now() - begin;
    if (ms > heldMs) onHeld(by, Math.round(ms));
    return ms / 1000;
  };
  const inputs = createCounter("cells_inputs_total", "Inputs of the service and its connections, by kind.");
  const received = createCounter("cells_distribution_frames_received_total", "Frames of peers, by kind.");
  const frames = createCounter("cells_distribution_frames_sent_total", "Frames to peers, by kind.");
  const steps = createHistogram(
    "cells_step_duration_seconds",
    "Time of one step by kind of input. A step of a controller is a whole reconciliation of its cell.",
  );
  const commits = createHistogram("cells_commit_duration_seconds", "Time until a batch of writes was on disk.");
  const written = createCounter("cells_records_written_total", "Records and documents written or deleted.");
  const waited = createHistogram(
    "cells_input_wait_seconds",
    "Time that the oldest input of a batch waited for its step.",
  );
  const inputsOf = remembered((kind) => inputs.of({ kind }));
  const receivedOf = remembered((frame) => received.of({ frame }));
  const framesOf = remembered((frame) => frames.of({ frame }));
  const stepsOf = remembered((input) => steps.of({ input }));
  return {
    waited: (ms) => waited.observe(ms / 1000),
    step: (input, work) => {
      const begin = performance.now();
      inputsOf(input.kind).add(1);
      const frame = frameOf(input);
      if (frame !== null) receivedOf(frame).add(1);
      try {
        return work();
      } finally {
        stepsOf(input.kind).observe(took(`step ${input.kind}`, begin));
      }
    },
    commit: (writes, work) => {
      if (writes === 0) return;
      const begin = performance.now();
      work();
      commits.observe(took("commit", begin));
      written.add(writes);
    },
    sent: (frame) => framesOf(frame).add(1),
    metrics: ({ queued, timers, storeBytes }) => [
      ...[inputs, received, frames, steps, commits, written, waited].map((each) => each.metric()),
      gauge("cells_queue_inputs", "Inputs that wait for their step.", [sample(queued)]),
      gauge("cells_timers", "Timers that run.", [sample(timers)]),
      gauge("cells_store_bytes", "Size of the service's store.", [sample(storeBytes)]),
    ],
  };
};
