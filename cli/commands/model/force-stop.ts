import { printable } from "../../../model/diagnostics/render-diagnostic.ts";
import { type Context, cellOfPath, printJson } from "../../context/context.ts";
import { CommandFailure, exitCodes, usage } from "../../terminal/failure.ts";
import { power } from "./power.ts";

/** `cells stop VM --force`: what nobody has looked at is said before anything is changed. */
export const forceStop = async (
  context: Context,
  pathText: string,
  { yes, timeoutMs }: { readonly yes: boolean; readonly timeoutMs: number },
): Promise<void> => {
  const { terminal, json } = context;
  const client = context.client();
  const { cell, path } = cellOfPath(pathText);
  const { host, incarnation, unchecked, checked } = await client.forceStop(cell, path, true);
  if (!json) {
    for (const sentence of unchecked) terminal.print(printable(`! ${pathText}  ${sentence}`));
    for (const sentence of checked) terminal.print(printable(`  ${pathText}  ${sentence}`));
  }
  if (!yes) {
    if (json || !terminal.canAsk) throw usage("nobody can be asked here: add --yes to do it");
    if (!(await terminal.ask(`Free ${pathText} of ${host}?`)))
      throw new CommandFailure(exitCodes.refused, "nothing was changed");
  }
  const quiet: Context = { ...context, terminal: { ...terminal, print: () => undefined }, json: false };
  await power(quiet, "stop", pathText, { wait: false, timeoutMs });
  const forced = await client.forceStop(cell, path, false);
  if (json) printJson(context, forced);
  else terminal.print(`${pathText}: incarnation ${incarnation} counts as stopped, without the word of ${host}`);
};
