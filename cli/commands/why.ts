import { parseConnection } from "../connection/connection.ts";
import { type Context, cellOfPath, printJson } from "../context/context.ts";
import { renderElementAnswer, renderWhy } from "../output/render.ts";
import { exitCodes } from "../terminal/failure.ts";
import { onlyCell } from "./model/get.ts";

/** `cells why`. */

const isPath = (text: string): boolean => text.includes("/") && !text.startsWith("//");

/**
 * Of a connection: exit code 0 when it passes, 1 when it is blocked. Of an element, a group or a cell: 0 when it is as
 * declared, 1 when something holds it up.
 */
export const why = async (context: Context, words: readonly string[], protocol: string | undefined): Promise<void> => {
  const [only] = words;
  if (only !== undefined && words.length === 1 && /^[^\s:>→]+$/.test(only) && protocol === undefined) {
    await whyElement(context, only);
    return;
  }
  const connection = parseConnection(words, protocol);
  const client = context.client();
  // A path says which cell it is about; names of guests are of that cell, or of the only one.
  const path = [connection.from, connection.to].find(isPath);
  const cell = path === undefined ? await onlyCell(client) : cellOfPath(path).cell;
  const inDocument = (end: string): string => (isPath(end) ? cellOfPath(end).path : end);
  const ends = { from: inDocument(connection.from), to: inDocument(connection.to) };
  const answer = await client.why(cell, { ...connection, ...ends });
  if (context.json) printJson(context, answer);
  else context.terminal.print(renderWhy(answer, context.terminal.paint));
  if (!answer.allowed) process.exitCode = exitCodes.refused;
};

const whyElement = async (context: Context, pathText: string): Promise<void> => {
  const { cell, path } = cellOfPath(pathText);
  const answer = await context.client().whyElement(cell, path);
  if (context.json) printJson(context, answer);
  else context.terminal.print(renderElementAnswer(answer, context.terminal.paint));
  if (answer.checks.some(({ passes }) => !passes)) process.exitCode = exitCodes.refused;
};
