import type { OrphanList, ServiceOrphans } from "../../model/api.ts";
import { printable } from "../../model/diagnostics/render-diagnostic.ts";
import { type Context, printJson } from "../context/context.ts";
import { exitCodes, usage } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";

/**
 * `cells orphans list`, `release`, `adopt` and `end`: documents that stay in force although whoever desired them has lost its store, or
 * has an older one.
 */
export const listOrphans = async (context: Context): Promise<void> => {
  const list = await context.client().orphans();
  if (context.json) return printJson(context, list);
  if (list.services.length === 0)
    context.terminal.print("nothing is left over: every store is whole, as far as anybody knows");
  print(context.terminal, list);
};

const keysShown = 5;

/** `receiver` is the service itself where it found out by itself, as the authority does. */
const forkOf = (service: string, { receiver, forked }: ServiceOrphans["receivers"][number]): string =>
  receiver === service
    ? `${service}: its own store was lost; it goes on with what it had kept beside. Once you have looked: \`cells orphans release ${service}\``
    : forked
      ? `${service}: its own store was lost or is older than what ${receiver} holds`
      : `${service}: the store of ${receiver} was lost or is older; what it does not say is not taken for gone`;

const linesOf = ({ service, clients, receivers }: ServiceOrphans): readonly string[] => [
  ...clients.flatMap(({ client, forked, kept, keys, orphans }) => [
    forked
      ? `${service}: the store of ${client} was lost or is older; ${kept} of its documents are kept as they are`
      : `${service}: ${client} did not repeat ${orphans} of its documents, which stay in force`,
    ...keys.slice(0, keysShown).map((key) => `  not repeated: ${key}`),
    ...(orphans > keysShown ? [`  and ${orphans - Math.min(keysShown, keys.length)} more: --json names them`] : []),
  ]),
  ...receivers.map((each) => forkOf(service, each)),
];
const print = (terminal: Terminal, { services, missing }: OrphanList): void => {
  for (const line of services.flatMap(linesOf)) terminal.print(printable(line));
  for (const { service, why } of missing) terminal.warn(printable(`not known of ${service}: ${why}`));
};

/** What the peer desires counts again, everywhere: a service that was away keeps what it has, and is to be told once it answers. */
export const releaseOrphans = async (context: Context, peer: string): Promise<void> => {
  const list = await context.client().releaseOrphans(peer);
  if (list.missing.length > 0) process.exitCode = exitCodes.notAsDeclared;
  if (context.json) return printJson(context, list);
  const counts = `what ${printable(peer)} desires counts again; documents that it does not know stay in force`;
  context.terminal.print(peer === "authority" ? "the authority's store counts as it is" : counts);
  print(context.terminal, list);
  if (list.missing.length === 0) return;
  const names = list.missing.map(({ service }) => printable(service)).join(", ");
  context.terminal.warn(
    `not told: ${names}. Say it once more when they answer: \`cells orphans release ${printable(peer)}\``,
  );
};

/** What goes on there is what the client declares anew. */
export const adoptOrphan = async (context: Context, service: string, client: string, key: string): Promise<void> => {
  const left = await context.client().adoptOrphan(service, client, key);
  if (context.json) return printJson(context, left);
  context.terminal.print(`${printable(key)} is what ${printable(client)} declares; it goes on as it is`);
  print(context.terminal, { services: [left], missing: [] });
};

/** Asks nothing: the keys are said, or `--all`. */
export const endOrphans = async (
  context: Context,
  service: string,
  client: string,
  { keys, all }: { readonly keys: readonly string[]; readonly all: boolean },
): Promise<void> => {
  if (all === keys.length > 0)
    throw usage("say which documents, by their keys, or --all for all that it did not repeat");
  const left = await context.client().endOrphans(service, client, keys);
  if (context.json) return printJson(context, left);
  context.terminal.print(`${service} takes them for taken back; what they kept there ends as if ${client} had said so`);
  print(context.terminal, { services: [left], missing: [] });
};
