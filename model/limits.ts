/**
 * Bounds on what a submitted specification may cost before it is refused. Each is a clear error.
 */
export const limits = {
  /** Characters of all texts of a bundle together. */
  textLength: 16 * 1024 * 1024,
  /** Attributes of the tree, copies made by `extends` included: this is what bounds exponential templates. */
  attributes: 2_000_000,
  /** Characters of names and texts of the tree, copies included. */
  characters: 64 * 1024 * 1024,
  /**
   * Words, signs and values of all SmartFrog texts of a bundle; named attributes, objects and arrays of a JSON text. What is written costs some ten times
   * the memory of what a template repeats, since its place is remembered.
   */
  tokens: 450_000,
  /**
   * Characters of a YAML text, and its names, values, signs and line ends. It is read through a library that keeps each of
   * them as an object: some eight for a line, each a kilobyte of memory at the worst.
   */
  yamlLength: 1024 * 1024,
  yamlTokens: 150_000,
  /** Attributes that aliases and merge keys of a YAML text copy. */
  aliased: 100_000,
  /**
   * Elements of a cell; of a document also those of its child cells. A cell is looked at as a whole with each change, and
   * its controller holds all of it.
   */
  elements: 50_000,
  /** Of a cell: a host counts what each lets pass. */
  compiledRules: 250_000,
  /** Characters of these. A host has each at most twice, and takes 128 MiB of one controller. */
  compiledCharacters: 32 * 1024 * 1024,
  /** Names in the paths of all elements together: each element in many groups inside one another has a long path. */
  pathNames: 1_000_000,
  /** Characters of the paths of all elements together. */
  pathCharacters: 8 * 1024 * 1024,
  /** Attributes that placements make. */
  placed: 100_000,
  /**
   * Attributes of a document with functions or assertions, copies included: each copy has functions of its own. Copies of
   * what is written out, with nothing to work out in it, do not count.
   */
  withFunctions: 100_000,
  /** Tags of one attribute. */
  tags: 100,
  /** Steps of working out expressions: parts of expressions, items of vectors joined, compared and written as text. */
  evaluation: 4_000_000,
  /** Components or vectors inside one another. */
  nesting: 256,
  /** References followed one after another, by links, by `extends` and by `<ref:…>`. */
  references: 1000,
  /**
   * Volumes of which each is a copy of the one before, the first one counted. The host of a VM opens all of them before it
   * starts (16 took 1.5 s), and who manages storage goes through all of them with every change.
   */
  layers: 16,
  /**
   * Of `x.data` of one VM: attributes and items at every depth, and bytes of its JSON text. Each is a file on the volume that
   * the guest is shown, which its host holds in memory beside the guest's own: at most some 3 MiB come of it.
   */
  dataEntries: 1000,
  dataBytes: 64 * 1024,
  /** Files that include one another. */
  includeDepth: 64,
  /** Diagnostics reported of one specification. */
  diagnostics: 50,
} as const;

/** Told by whoever meets the first element too many. */
export const tooManyElements = {
  code: "limit/elements",
  message: `There are more than ${limits.elements} elements`,
  hint: "Split the cell into several.",
} as const;

/** Keys by which zones are signed are named like hosts (RFC 8945, 4.2), and so shortly that an answer with a signature is one packet. */
export const zoneKeyName = /^(?=.{1,63}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;

/** Of what is remembered only the newest `most` stay: those that were set or added last. */
export function keepNewest<K>(kept: Map<K, unknown> | Set<K>, most: number): void {
  for (const oldest of kept.keys()) {
    if (kept.size <= most) break;
    kept.delete(oldest);
  }
}
