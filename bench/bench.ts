/** One measured line of a table. What is compared was measured in one run, since the machine is shared and its speed drifts. */
export interface Figure {
  readonly what: string;
  /** "×" for a ratio. */
  readonly unit: "×" | "ns" | "ms" | "s" | "MiB" | "KB" | "%" | "1/s" | "deaths" | "VMs" | "frames";
  readonly value: number;
  /** Lowest and highest of what `value` stands for; null where there is just one. */
  readonly range: readonly [number, number] | null;
  /** The value is to be at most this; null: it only explains the others. */
  readonly atMost: number | null;
  /** A few words on what it is made of. */
  readonly note?: string;
}

export interface BenchOptions {
  /** Seconds instead of minutes: shows that the bench works, and its figures mean little. */
  readonly quick: boolean;
  /** Also what takes an hour or more, for those benches that have such a thing. Default: no. */
  readonly long?: boolean;
  /** Directory for drawings, of those benches that draw. Default: `figures` in the cache. */
  readonly into?: string;
  /** A trace of arrivals, for `placement`. Default: its own mix. */
  readonly trace?: string;
  /** Tells a person who waits how far it is. */
  readonly say: (line: string) => void;
}

/** Measures one thing. It leaves nothing behind, also when it fails, and throws a sentence when it cannot measure. */
export interface Bench {
  readonly title: string;
  /** What is compared with what, and how it is counted. */
  readonly method: string;
  run(options: BenchOptions): Promise<readonly Figure[]>;
}
