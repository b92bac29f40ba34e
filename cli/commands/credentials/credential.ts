import { printable } from "../../../model/diagnostics/render-diagnostic.ts";
import { writeClientConfiguration } from "../../connection/client-config.ts";
import { type Context, printJson } from "../../context/context.ts";
import { usage } from "../../terminal/failure.ts";

/** `cells credential`: what opens one cell and nothing else, for the people who look after it. */

/** With `file`, a configuration for `CELLS_CONFIG` is written there, readable by its owner; otherwise it is printed, once. */
export const addCredential = async (
  context: Context,
  cell: string,
  { note, path, readOnly }: { readonly note: string; readonly path?: string; readonly readOnly?: boolean },
  file: string | undefined,
): Promise<void> => {
  const { terminal, json } = context;
  const client = context.client();
  if (readOnly === true && path === undefined)
    throw usage("--read-only is of a part of the cell: name it with --path, as shop/data");
  const part = path === undefined ? {} : ({ path, access: readOnly === true ? "read" : "write" } as const);
  const made = await client.addCredential(cell, { note, ...part });
  const { url, authority } = client;
  const configuration = { url, credential: made.credential, ...(authority === undefined ? {} : { authority }) };
  if (file !== undefined) {
    writeClientConfiguration(configuration, file);
    if (json) printJson(context, { id: made.id, file });
    else terminal.print(`${file} opens the cell ${cell}: CELLS_CONFIG=${file} cells get ${cell}`);
    return;
  }
  if (json) printJson(context, { id: made.id, ...configuration });
  else terminal.print(`${made.credential}\nThis is its only appearance: the cloud keeps no more than a hash of it.`);
};

export const listCredentials = async (context: Context, cell: string): Promise<void> => {
  const credentials = await context.client().credentials(cell);
  if (context.json) printJson(context, credentials);
  else if (credentials.length === 0)
    context.terminal.print(`${cell} has no credential of its own; the operator's opens it`);
  else
    for (const { id, created, note, path, access } of credentials) {
      const part = path === undefined ? "" : `${access === "read" ? "reads" : "reads and changes"} ${path} alone  `;
      context.terminal.print(printable(`${id}  ${created}  ${part}${note}`).trimEnd());
    }
};

export const revokeCredential = async (context: Context, cell: string, id: string): Promise<void> => {
  await context.client().revokeCredential(cell, id);
  if (context.json) printJson(context, { id });
  else
    context.terminal.print(
      `the credential ${id} of ${cell} opens nothing any more, and the sessions that it opened have ended`,
    );
};
