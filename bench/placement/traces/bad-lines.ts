/** What is no line of a trace: where, why, and what is expected there. */
export class BadLine extends Error {}

/*
 * Traces of a month and a million VMs have lines that are none. One in a thousand may be left out, each named; with more of them it is
 * another format, or a file that was cut or mixed up, and what is measured with the rest of it would say nothing.
 */
const oneIn = 1000;
const toldAtMost = 20;

export class BadLines {
  /** Sentences of the first ones. */
  readonly told: string[] = [];
  count = 0;
  private lines = 0;

  /**
   * @param read throws what a line lacks as a `BadLine`
   * @returns what is read, or null of a line that is left out
   * @throws an error that names the line with which there are too many
   */
  line<T>(read: () => T): T | null {
    this.lines += 1;
    try {
      return read();
    } catch (error) {
      if (!(error instanceof BadLine)) throw error;
      this.count += 1;
      if (this.told.length < toldAtMost) this.told.push(error.message);
      if (this.count > Math.ceil(this.lines / oneIn))
        throw new Error(
          `${error.message} (with it ${this.count} of ${this.lines} lines are none; one in ${oneIn} may be left out)`,
        );
      return null;
    }
  }
}
