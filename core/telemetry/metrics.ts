import type { Phase } from "../documents/vocabulary.ts";

/**
 * What is measured, as data: a service derives it from its state (`Service.measure`), `runtime/observation/metrics.ts` writes it down.
 * The metrics themselves are in each service's `measure.ts`, or beside its step function where there are few; those of a process
 * are in `runtime/observation/service-numbers.ts`, those of a host in `host/service/observation.ts`.
 * Names follow Prometheus' practice: a prefix, base units (seconds, bytes), `_total` for what only grows.
 */
export interface Metric {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly samples: readonly Sample[];
}
export interface Sample {
  readonly labels: Labels;
  readonly value: number;
  /** Of a histogram's parts: `_bucket`, `_sum`, `_count`. */
  readonly suffix?: "_bucket" | "_sum" | "_count";
}
export type Labels = { readonly [name: string]: string };

export const mebibyte = 1024 * 1024;

export const gauge = (name: string, help: string, samples: readonly Sample[]): Metric => ({
  name,
  help,
  type: "gauge",
  samples,
});
/** `name` ends in `_total`. */
export const counter = (name: string, help: string, samples: readonly Sample[]): Metric => ({
  name,
  help,
  type: "counter",
  samples,
});
export const sample = (value: number, labels: Labels = {}): Sample => ({ labels, value });

const phases: readonly Phase[] = ["waiting", "working", "ready", "failed", "deleting"];
/** How many are in which phase; a phase without any has its zero, so that a graph does not break off. */
export function perPhase(all: Iterable<Phase>, labels: Labels = {}): readonly Sample[] {
  const counts = new Map<Phase, number>(phases.map((phase) => [phase, 0]));
  for (const phase of all) counts.set(phase, (counts.get(phase) ?? 0) + 1);
  return [...counts].map(([phase, count]) => sample(count, { ...labels, phase }));
}
