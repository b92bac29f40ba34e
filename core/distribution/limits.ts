export const limits = {
  /** Of one encoded frame. */
  frameBytes: 8 * 1024 * 1024,
  /** Of a key or a prefix, in characters. */
  keyLength: 1024,
  /** Of a value as JSON text, in characters: at most three bytes each, so that it always fits into a frame. */
  valueLength: 2 * 1024 * 1024,
  /**
   * Objects and arrays of a value inside one another. What a specification may nest (256) lies in documents with levels of
   * their own. Without a bound of ours it is the stack's, and that is another one wherever a value is written or compared.
   */
  nesting: 512,
  /** Prefixes that one client may follow at one server. */
  subscriptions: 4096,
} as const;
