/*
 * For which command of which personality somebody asks, and from where: a personality says it with each request (`Cells-Via`), and it stands in the record of
 * what is done. It is that personality's word and nobody's proof: whoever has a credential may say the same, so nothing is allowed by it.
 */
export const viaHeader = "cells-via";

export interface Via {
  /** Its name, as `caas`. */
  readonly personality: string;
  /** As its own interface calls it. */
  readonly command: string;
  /** By which the personality finds the request again. */
  readonly id: string;
  /** Address of its client; absent: it does not know. */
  readonly source?: string;
}

const form = /^[a-z][a-z0-9-]{0,31};[A-Za-z0-9_.:/-]{1,64};[A-Za-z0-9_-]{1,64}(?:;[0-9A-Fa-f:.%a-z]{1,64})?$/;

export const viaText = ({ personality, command, id, source }: Via): string =>
  [personality, command, id, ...(source === undefined ? [] : [source])].join(";");

/** The same of what a personality does by a right of its own: its `id` begins with the UID of the user who had it done. */
export const viaBy = (via: string, user: string): string => {
  const [personality = "", command = "", id = "", ...source] = via.split(";");
  return [personality, command, `${user.replace(/[^A-Za-z0-9-]/g, "-")}_${id}`.slice(0, 64), ...source].join(";");
};

/** What stands in a record; undefined: nothing was said, or nothing that is well-formed. */
export const viaIn = (header: string | readonly string[] | undefined): string | undefined =>
  typeof header === "string" && form.test(header) ? header : undefined;
