/** Settings of the queue, in milliseconds. Events do not wait for them: they bound polls and retries. */
export const settings = {
  /** `sync.interval` of CloudStack's: items that wait are looked at this often, whatever is heard. */
  lookMs: 60_000,
  /** `time.between.cleanup`: items that have ended are kept this long, for whoever asks. */
  keptMs: 86_400_000,
  /** Somebody says so long that a VM runs whose host is declared dead, before `x.ha.isolated` decides. */
  isolatedMs: 300_000,
  /** A fence that works takes seconds; one that takes so long waits for something. */
  fenceMs: 60_000,
} as const;
