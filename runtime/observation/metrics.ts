import { readdirSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { counter, gauge, type Labels, type Metric, type Sample, sample } from "../../core/telemetry/metrics.ts";

/**
 * Prometheus' text exposition format 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/), written and
 * kept without a library: why stands in decisions/0012-metrics-without-a-library.md.
 */
export const metricsMediaType = "text/plain; version=0.0.4; charset=utf-8";

const escapeHelp = (text: string): string => text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
const escapeLabel = (text: string): string => escapeHelp(text).replaceAll('"', '\\"');
const numberText = (value: number): string => {
  if (Number.isNaN(value)) return "NaN";
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? "+Inf" : "-Inf";
};
const labelsText = (labels: Labels): string => {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return parts.length === 0 ? "" : `{${parts.join(",")}}`;
};

/** One exposition; metrics of one name are brought together, as the format wants it. Those without samples are left out. */
export const encodeMetrics = (metrics: readonly Metric[]): string =>
  mergeMetrics(metrics)
    .filter(({ samples }) => samples.length > 0)
    .map(({ name, help, type, samples }) => {
      const lines = samples.map(
        ({ labels, value, suffix = "" }) => `${name}${suffix}${labelsText(labels)} ${numberText(value)}\n`,
      );
      return `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n${lines.join("")}`;
    })
    .join("");

/** Every name once, in the order of first appearance; the first help counts. Samples of another type are left out. */
export const mergeMetrics = (metrics: readonly Metric[]): readonly Metric[] => {
  const merged = new Map<string, { metric: Metric; samples: Sample[] }>();
  for (const metric of metrics) {
    const known = merged.get(metric.name) ?? { metric, samples: [] };
    merged.set(metric.name, known);
    if (known.metric.type === metric.type) for (const each of metric.samples) known.samples.push(each);
  }
  return [...merged.values()].map(({ metric, samples }) => ({ ...metric, samples }));
};

/** The same with one more label in front of each sample's own. */
export const withLabels = (metrics: readonly Metric[], labels: Labels): readonly Metric[] =>
  metrics.map((metric) => ({
    ...metric,
    samples: metric.samples.map((each) => ({ ...each, labels: { ...labels, ...each.labels } })),
  }));

/** Something that is counted up. Its series are bounded by what its callers give as labels: never what a client chose. */
export interface Counter {
  add(amount: number, labels?: Labels): void;
  /** One of its series, for who counts often: to find it by its labels costs more than to count. */
  of(labels: Labels): { add(amount: number): void };
  metric(): Metric;
}
export const createCounter = (name: string, help: string): Counter => {
  interface Series {
    readonly labels: Labels;
    value: number;
  }
  const values = new Map<string, Series>();
  const seriesOf = (labels: Labels): Series => {
    const key = labelsText(labels);
    const found = values.get(key) ?? { labels, value: 0 };
    values.set(key, found);
    return found;
  };
  return {
    add: (amount, labels = {}) => {
      seriesOf(labels).value += amount;
    },
    of: (labels) => {
      const series = seriesOf(labels);
      return {
        add: (amount) => {
          series.value += amount;
        },
      };
    },
    metric: () =>
      counter(
        name,
        help,
        [...values.values()].map(({ labels, value }) => sample(value, labels)),
      ),
  };
};

/** Upper bounds in seconds, from a step of a service to a commit on a slow disk. */
export const durationBuckets = [0.0001, 0.0005, 0.001, 0.01, 0.1, 1] as const;

export interface Histogram {
  observe(value: number, labels?: Labels): void;
  /** As `Counter.of`. */
  of(labels: Labels): { observe(value: number): void };
  metric(): Metric;
}
/** Counts observations per bucket; `buckets` are ascending upper bounds, inclusive, without infinity. */
export const createHistogram = (
  name: string,
  help: string,
  buckets: readonly number[] = durationBuckets,
): Histogram => {
  interface Series {
    readonly labels: Labels;
    readonly counts: number[];
    sum: number;
    count: number;
  }
  const series = new Map<string, Series>();
  const seriesOf = (labels: Labels): Series => {
    const key = labelsText(labels);
    const found = series.get(key) ?? { labels, counts: buckets.map(() => 0), sum: 0, count: 0 };
    series.set(key, found);
    return found;
  };
  const note = (one: Series, value: number): void => {
    const bucket = buckets.findIndex((bound) => value <= bound);
    if (bucket >= 0) one.counts[bucket] = (one.counts[bucket] ?? 0) + 1;
    one.sum += value;
    one.count += 1;
  };
  return {
    observe: (value, labels = {}) => note(seriesOf(labels), value),
    of: (labels) => {
      const one = seriesOf(labels);
      return { observe: (value) => note(one, value) };
    },
    metric: () => ({
      name,
      help,
      type: "histogram",
      samples: [...series.values()].flatMap(({ labels, counts, sum, count }) => {
        let below = 0;
        const lines = buckets.map((bound, index): Sample => {
          below += counts[index] ?? 0;
          return { suffix: "_bucket", labels: { ...labels, le: numberText(bound) }, value: below };
        });
        return [
          ...lines,
          { suffix: "_bucket", labels: { ...labels, le: "+Inf" }, value: count },
          { suffix: "_sum", labels, value: sum },
          { suffix: "_count", labels, value: count },
        ];
      }),
    }),
  };
};

/** How long this process keeps what is due waiting, seconds: one turn of its event loop, measured now. */
const eventLoopDelay = (): Promise<number> =>
  new Promise((resolve) => {
    const begin = performance.now();
    setImmediate(() => resolve((performance.now() - begin) / 1000));
  });

const openDescriptors = (): number => {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return 0;
  }
};

/** What every process says of itself, under the names that Prometheus' own client libraries use. */
export const processMetrics = async (): Promise<readonly Metric[]> => {
  const delay = await eventLoopDelay();
  const { user, system } = process.cpuUsage();
  const { active, idle } = performance.eventLoopUtilization();
  return [
    counter("process_cpu_seconds_total", "CPU time spent, user and system.", [sample((user + system) / 1e6)]),
    gauge("process_resident_memory_bytes", "Resident memory.", [sample(process.memoryUsage.rss())]),
    gauge("process_open_fds", "Open file descriptors.", [sample(openDescriptors())]),
    gauge("process_start_time_seconds", "Start of the process, seconds since 1970.", [
      sample(performance.timeOrigin / 1000),
    ]),
    gauge("nodejs_eventloop_lag_seconds", "Time that one turn of the event loop took at the time of asking.", [
      sample(delay),
    ]),
    counter("nodejs_eventloop_active_seconds_total", "Time in which the event loop was busy.", [sample(active / 1000)]),
    counter("nodejs_eventloop_idle_seconds_total", "Time in which the event loop had nothing to do.", [
      sample(idle / 1000),
    ]),
    gauge("nodejs_heap_used_bytes", "Memory in use on the JavaScript heap.", [sample(process.memoryUsage().heapUsed)]),
  ];
};
