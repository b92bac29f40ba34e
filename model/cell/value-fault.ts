/** A value that is not what its attribute takes. */
export class ValueFault {
  readonly code: string;
  readonly message: string;
  readonly hint: string | undefined;
  constructor(code: string, message: string, hint?: string) {
    this.code = code;
    this.message = message;
    this.hint = hint;
  }
}
