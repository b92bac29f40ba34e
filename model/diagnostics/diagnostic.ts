/** A place in a submitted text. Lines and columns count from 1; `length` is in characters of that line (at least 1). */
export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly length: number;
}

/** Another place that has to do with a fault, such as where the template or file that holds it is used. */
export interface RelatedPosition {
  readonly message: string;
  readonly position: Position;
}

/** One thing that is wrong with a specification, as its author reads it. */
export interface Diagnostic {
  /** Stable code, e.g. `syntax/expected`, `schema/unknown-attribute`, `reference/dangling`. */
  readonly code: string;
  readonly message: string;
  /** What would have been right, as a sentence; absent where nothing sensible can be said. */
  readonly hint?: string;
  readonly position?: Position;
  /** Path of the element or component it is about, where there is one. */
  readonly path?: string;
  /** From the inside outwards: where a template was used, where a file was included. */
  readonly related?: readonly RelatedPosition[];
}
