/** What an operator's request about a machine is answered that is not carried out: HTTP status, code, sentence. */
export class Refused extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}
