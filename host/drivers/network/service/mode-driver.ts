/** The three calls of a driver, as bits of what `scrub` answers: the paper's. */
export const calls = { network: 1, securityGroup: 2, addressing: 4 } as const;
export type Call = keyof typeof calls;
export const allCalls = calls.network | calls.securityGroup | calls.addressing;

/** Of a call that has made all but some parts: why not, by the name of each. */
export class PartlyFailed extends Error {
  readonly parts: ReadonlyMap<string, string>;

  constructor(parts: ReadonlyMap<string, string>) {
    super([...parts.values()].join("; "));
    this.parts = parts;
  }
}

/**
 * What is in place behind a call, as far as the calls behind it ask: a call that knows it without reading all says so. It counts for nothing should the
 * call fail.
 */
export type Next<Local> = (local: () => Promise<Local>) => void;
/**
 * What a networking mode does on a machine. Registered by its name; the service that drives it knows no mode.
 *
 * Each call is given what is in place, and is done when what it was asked for is so; it may be asked for again at any time. A call that fails
 * throws an error with a sentence, or `PartlyFailed`, and is asked for again.
 */
export interface ModeDriver<Global, Local, Configuration> {
  /** What is missing on this machine, as sentences: nothing is asked of the driver before there is nothing. Touches nothing. */
  init(configuration: Configuration): Promise<readonly string[]>;
  /** Once, before the first `scrub`: what an earlier version has left is made into what this one knows. */
  upgrade(global: Global): Promise<void>;
  /** The local view: what is in place. */
  read(): Promise<Local>;
  /** Which calls are to be made, as bits of `calls`. */
  scrub(global: Global, local: Local): number;
  /** Whatever is in place counts as something else: the three calls, which follow, write all of it anew. What is closed stays closed meanwhile. */
  flush(): Promise<void>;
  network(global: Global, local: Local, next: Next<Local>): Promise<void>;
  securityGroup(global: Global, local: Local, next: Next<Local>): Promise<void>;
  addressing(global: Global, local: Local, next: Next<Local>): Promise<void>;
  /** The machine leaves; a service that stops takes nothing away. */
  cleanup(): Promise<void>;
  /** What nobody wants any more and cannot be taken away, as sentences: it keeps nothing else from being in place. */
  left?(): readonly string[];
  /** What of a view is left out or may go wrong, as sentences. */
  warnings?(global: Global): readonly string[];
}
