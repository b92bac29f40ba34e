/**
 * Bounds on what a submitted specification may cost before it is refused (LANGUAGE, Limits). Each is a clear error.
 */
export const limits = {
  /** Characters of all texts of a bundle together. */
  textLength: 16 * 1024 * 1024,
  /** Attributes of the tree, copies made by `extends` included: this is what bounds exponential templates. */
  attributes: 2_000_000,
  /** Components or vectors inside one another. */
  nesting: 256,
  /** References followed one after another, by links, by `extends` and by `<ref:…>`. */
  references: 1000,
  /** Files that include one another. */
  includeDepth: 64,
  /** Diagnostics reported of one specification. */
  diagnostics: 50,
} as const;
