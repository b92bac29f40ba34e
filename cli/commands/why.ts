import type { Trial } from "../../model/contract/operator/placement.ts";
import { Refused } from "../connection/client.ts";
import { parseConnection } from "../connection/connection.ts";
import { type Context, cellOfPath, printJson } from "../context/context.ts";
import { renderElementAnswer, renderWhy } from "../output/render.ts";
import { exitCodes, usage } from "../terminal/failure.ts";
import { onlyCell } from "./model/get.ts";

/** `cells why`. */

const isPath = (text: string): boolean => text.includes("/") && !text.startsWith("//");

/**
 * Of a connection: exit code 0 when it passes, 1 when it is blocked. Of an element, a group or a cell: 0 when it is as
 * declared, 1 when something holds it up.
 */
export const why = async (
  context: Context,
  words: readonly string[],
  { protocol, hosts = false }: { readonly protocol?: string; readonly hosts?: boolean } = {},
): Promise<void> => {
  const [only] = words;
  if (only !== undefined && words.length === 1 && /^[^\s:>→]+$/.test(only) && protocol === undefined) {
    await whyElement(context, only, hosts);
    return;
  }
  if (hosts) throw usage("`--hosts` is about one VM: write its path alone, shop/web/vm");
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

const whyElement = async (context: Context, pathText: string, byHost: boolean): Promise<void> => {
  const { cell, path } = cellOfPath(pathText);
  const client = context.client();
  const answer = await client.whyElement(cell, path);
  const tried = byHost ? await triedBy(client, pathText, context.terminal.warn) : null;
  if (context.json) printJson(context, tried === null ? answer : { ...answer, hosts: tried.hosts });
  else context.terminal.print(renderElementAnswer(answer, context.terminal.paint));
  if (!context.json && tried !== null) context.terminal.print(byHostText(tried.hosts));
  if (answer.checks.some(({ passes }) => !passes)) process.exitCode = exitCodes.refused;
};

/** Hosts are the operator's; whoever else asks is told of the VM as without `--hosts`. */
async function triedBy(
  client: ReturnType<Context["client"]>,
  vm: string,
  warn: (text: string) => void,
): Promise<{ readonly hosts: readonly Trial[] } | null> {
  try {
    return await client.ask("tryPlacement", { parameters: {}, query: { vm } });
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 403) throw error;
    warn("what each host says of it is for the operator's credential");
    return null;
  }
}

/** Of each host whether it would take the VM now, and why not. */
function byHostText(hosts: readonly Trial[]): string {
  if (hosts.length === 0) return "there is no other host";
  return hosts
    .map(({ host, refusal }) => {
      if (refusal === undefined) return `  ${host}: takes it`;
      const { why: because, lifts } = refusal;
      return `  ${host}: ${because}${lifts === "" ? "" : `; to lift that: ${lifts}`}`;
    })
    .join("\n");
}
