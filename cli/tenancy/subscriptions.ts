import { type NoticeKind, noticeKinds, type SubscriptionSummary } from "../../model/contract/tenancy/subscriptions.ts";
import type { Context } from "../context/context.ts";
import { readSecret } from "../secrets/read-secret.ts";
import { usage } from "../terminal/failure.ts";
import { columns, print } from "./people.ts";

/* `cells subscription`: URLs that are told what becomes of cells. */

const howItGoes = ({ waiting, said, dead }: SubscriptionSummary): string =>
  [
    waiting === 0 ? "all taken" : `${waiting} waiting`,
    ...(said === null ? [] : [said]),
    ...(dead.length === 0 ? [] : [`given up: ${dead.map(({ number }) => number).join(", ")}`]),
  ].join("; ");

export const listSubscriptions = async (context: Context): Promise<void> => {
  const all = await context.client().all("listSubscriptions");
  const rows = all.map((each) => [
    each.uid,
    each.user,
    each.url,
    toldOf(each),
    each.events.join(", "),
    howItGoes(each),
  ]);
  print(context, all, all.length === 0 ? "nobody is told anything that you may see" : columns(rows));
};

const toldOf = ({ cells, volumes }: Pick<SubscriptionSummary, "cells" | "volumes">): string =>
  [...cells, ...(volumes === true ? ["persistent volumes"] : [])].join(", ");

interface Asked {
  readonly volumes?: boolean;
  readonly cell?: readonly string[];
  readonly event?: readonly string[];
  readonly secretFile?: string;
}
const cellsOf = (cell: readonly string[]): readonly string[] => cell.flatMap((each) => each.split(","));
function eventsOf(event: readonly string[]): readonly NoticeKind[] {
  return event
    .flatMap((each) => each.split(","))
    .map((each) => {
      const kind = noticeKinds.find((known) => known === each);
      if (kind === undefined) throw usage(`\`${each}\` is no event: ${noticeKinds.join(", ")} are`);
      return kind;
    });
}

export const addSubscription = async (
  context: Context,
  url: string,
  { cell, volumes, event, secretFile }: Asked,
): Promise<void> => {
  if (cell === undefined && volumes !== true)
    throw usage("say of what: --cell NAME, or --volumes for persistent volumes");
  const secret = await readSecret(secretFile, "--secret-file");
  const events = event === undefined ? {} : { events: eventsOf(event) };
  const body = { url, secret, cells: cellsOf(cell ?? []), ...(volumes === true ? { volumes } : {}), ...events };
  const made = await context.client().ask("addSubscription", { parameters: {}, body });
  const told = `${made.url} is told of ${toldOf(made)}; a first notice that is a test goes there now`;
  print(context, made, `${made.uid}\n${told}: \`cells subscription list\` says whether it was taken`);
};

export const changeSubscription = async (
  context: Context,
  uid: string,
  { url, cell, volumes, event, secretFile }: Asked & { readonly url?: string },
): Promise<void> => {
  const body = {
    ...(url === undefined ? {} : { url }),
    ...(url === undefined && secretFile === undefined ? {} : { secret: await readSecret(secretFile, "--secret-file") }),
    ...(cell === undefined ? {} : { cells: cellsOf(cell) }),
    ...(volumes === undefined ? {} : { volumes }),
    ...(event === undefined ? {} : { events: eventsOf(event) }),
  };
  const changed = await context.client().ask("changeSubscription", { parameters: { uid }, body });
  print(context, changed, `${changed.url} is told of ${toldOf(changed)}: ${changed.events.join(", ")}`);
};

export const deleteSubscription = async (context: Context, uid: string): Promise<void> => {
  const gone = await context.client().ask("deleteSubscription", { parameters: { uid } });
  print(context, gone, `${gone.url} is told nothing more`);
};
