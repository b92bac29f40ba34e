/** What one evaluation may use. The first that is reached ends it; each is a clear error (decisions/0026). */
export const bounds = {
  /** Bytes of the memory that QuickJS runs in. */
  quickJsBytes: 96 * 1024 * 1024,
  /** MiB of V8's heap in the evaluating process, which holds the texts and the result. */
  heapMiB: 80,
  /** Bytes of QuickJS's own stack, and KiB of the stack that the machine code below it has. */
  quickJsStackBytes: 256 * 1024,
  stackKiB: 3900,
  /**
   * Interruptions: QuickJS offers one each 10,000 calls and jumps backwards, so this counts the same on every machine.
   */
  interruptions: 8_000,
  /** Characters of the result as JSON. */
  resultLength: 12 * 1024 * 1024,
  /** Bytes of what the process answers, and of what a specification prints. */
  answerBytes: 64 * 1024 * 1024,
  saidBytes: 64 * 1024,
  /** For what counts no interruptions, such as sorting. From outside, so the process cannot put it off. */
  wallMs: 30_000,
  atOnce: 2,
  waiting: 16,
} as const;
