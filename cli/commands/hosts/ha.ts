import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import type { HaItem, HaReport } from "../../../model/contract/operator/ha.ts";
import { printable } from "../../../model/diagnostics/render-diagnostic.ts";
import { type Context, cellOfPath, printJson } from "../../context/context.ts";
import { CommandFailure, exitCodes, usage } from "../../terminal/failure.ts";
import { type Paint, table } from "../../terminal/terminal.ts";

/** `cells ha`: what is done about VMs whose host is lost. */
export const listHa = async (context: Context): Promise<void> => {
  const report = await context.client().ha();
  if (context.json) return printJson(context, report);
  await printUnguarded(context);
  for (const line of linesOf(report, context.terminal.paint)) context.terminal.print(line);
};

/** Cells whose HA Manager is gone, as they say it themselves; of which of them. */
const unguardedIn = async (
  context: Context,
  only: (cell: string, manager: string) => boolean,
): Promise<readonly string[]> => {
  const cells = await context
    .client()
    .cells()
    .catch((error: Error) => error);
  if (cells instanceof Error)
    return [printable(`whether each cell has an HA Manager that is there is not known: ${cells.message}`)];
  return cells.flatMap(({ cell, services: { unguarded, haManager = 1 } = {} }) =>
    unguarded === undefined || !only(cell, `ha-manager.${haManager}`) ? [] : [printable(unguarded)],
  );
};
/** But those of which there is an alert beside it. */
const printUnguarded = async (context: Context, alerts: HaReport["alerts"] = []): Promise<void> => {
  const { paint, print } = context.terminal;
  const told = new Set(alerts.flatMap(({ kind, subject }) => (kind === "unguarded" ? [subject] : [])));
  for (const line of await unguardedIn(context, (_cell, manager) => !told.has(manager))) print(paint("yellow", line));
};

/** `cells alerts`: what waits for a person. */
export const listAlerts = async (context: Context): Promise<void> => {
  const report = await context.client().ha();
  if (context.json) return printJson(context, report.alerts ?? []);
  await printUnguarded(context, report.alerts);
  // What the gateway says of itself is no alert of HA; that it says nothing now hides none.
  const status = await context
    .client()
    .status()
    .catch(() => null);
  for (const line of status?.warnings ?? []) context.terminal.print(context.terminal.paint("yellow", printable(line)));
  printAlerts(context, report);
};
const printAlerts = (context: Context, { alerts = [], webhook, mail, silent }: HaReport): void => {
  const { paint, print } = context.terminal;
  for (const line of silentOf(silent)) print(paint("yellow", line));
  const told = (where: string, { waiting, said }: { readonly waiting: number; readonly said: string | null }): void =>
    print(
      printable(
        `alerts are told to ${where}; ${
          waiting === 0
            ? "nothing waits to be told there"
            : `${waiting} to be told there${said === null ? "" : `: ${said}`}`
        }`,
      ),
    );
  if (webhook !== undefined) told(webhook.url, webhook);
  if (mail !== undefined) told(`${mail.to} by mail`, mail);
  if (alerts.length === 0) {
    print("nothing waits for you");
    return;
  }
  const rows = alerts.map(({ kind, subject, since, sentence, acknowledged }) => [
    paint(acknowledged === undefined ? "yellow" : "grey", printable(kind)),
    printable(subject),
    since,
    printable(acknowledged === undefined ? sentence : `(acknowledged ${acknowledged}) ${sentence}`),
  ]);
  for (const line of table([["kind", "about", "since", ""].map((head) => paint("grey", head)), ...rows])) print(line);
};

/** `cells alerts acknowledge KIND [ABOUT]`: somebody looks after it. */
export const acknowledgeAlert = async (context: Context, kind: string, subject: string | undefined): Promise<void> => {
  const report = await context.client().acknowledgeAlert(kind, subject ?? "");
  if (context.json) return printJson(context, report.alerts ?? []);
  printAlerts(context, report);
};

export interface WebhookOptions {
  readonly secretFile?: string;
  readonly remove?: boolean;
}
/** `cells alerts webhook`: where alerts are told to. */
export const setWebhook = async (context: Context, url: string | undefined, options: WebhookOptions): Promise<void> => {
  const client = context.client();
  const { print } = context.terminal;
  if (options.remove === true) {
    if (url !== undefined) throw usage("say a URL, or --remove");
    const removed = await client.forgetWebhook();
    if (context.json) return printJson(context, removed);
    return print(removed.wasThere ? "alerts are told to nobody any more" : "they were told to nobody");
  }
  if (url === undefined) throw usage("say a URL, or --remove");
  const file = options.secretFile;
  const read = file === undefined ? await text(process.stdin) : await readFile(file, "utf8").catch(unreadable(file));
  const registered = await client.setWebhook({ url, secret: read.replace(/\r?\n$/, "") });
  if (context.json) return printJson(context, registered);
  print(
    `alerts are told to ${registered.url}, and a first notice that is none goes there now: \`cells alerts\` says whether it was taken`,
  );
};

export interface MailOptions {
  readonly server?: string;
  readonly from?: string;
  readonly user?: string;
  readonly passwordFile?: string;
  readonly caFile?: string;
  readonly remove?: boolean;
}
/** `cells alerts mail`: who is told of alerts by mail. */
export const setMail = async (context: Context, to: string | undefined, options: MailOptions): Promise<void> => {
  const client = context.client();
  const { print } = context.terminal;
  if (options.remove === true) {
    if (to !== undefined) throw usage("say an address, or --remove");
    const removed = await client.forgetMail();
    if (context.json) return printJson(context, removed);
    return print(removed.wasThere ? "alerts are told to nobody by mail any more" : "they were told to nobody by mail");
  }
  const { server, from, user, passwordFile: file, caFile } = options;
  if (to === undefined) throw usage("say an address, or --remove");
  if (server === undefined || from === undefined) throw usage("say --server and --from");
  if (user === undefined && file !== undefined) throw usage("a password is of somebody: say --user");
  const contentOf = (name: string): Promise<string> => readFile(name, "utf8").catch(unreadable(name));
  const password = user === undefined ? null : file === undefined ? await text(process.stdin) : await contentOf(file);
  const registered = await client.setMail({
    server,
    from,
    to,
    ...(user === undefined || password === null ? {} : { login: { user, password: password.replace(/\r?\n$/, "") } }),
    ...(caFile === undefined ? {} : { ca: (await contentOf(caFile)).trim() }),
  });
  if (context.json) return printJson(context, registered);
  print(
    `alerts are told to ${registered.to} by ${registered.server}, and a first message that is none goes there now: \`cells alerts\` says whether it was taken`,
  );
};
const unreadable = (file: string) => (error: Error) => {
  throw usage(`${file} cannot be read: ${error.message}`);
};

/** `cells ha pause`: hosts will be switched off. */
export const pauseHa = async (context: Context): Promise<void> => {
  const report = await context.client().pauseHa();
  if (context.json) return printJson(context, report);
  for (const line of linesOf(report, context.terminal.paint)) context.terminal.print(line);
  context.terminal.print(
    "the gateway's VM waits for its machine too, and until that is on again no `cells ha release` is heard: switch it off last, and on first",
  );
};

/** `cells ha release [VM]`. */
export const releaseHa = async (context: Context, vm: string | undefined): Promise<void> => {
  const report = await context.client().releaseHa(vm ?? null);
  if (context.json) return printJson(context, report);
  for (const line of linesOf(report, context.terminal.paint)) context.terminal.print(line);
};

/** `cells ha cancel VM`: its incarnation is left alone. `cells ha retry VM`: it is taken up again, or tried at once. */
export const orderHa = async (context: Context, verb: "cancel" | "retry", vm: string): Promise<void> => {
  const client = context.client();
  const report = await (verb === "cancel" ? client.cancelHa(vm) : client.retryHa(vm));
  if (context.json) return printJson(context, report);
  for (const line of linesOf(report, context.terminal.paint)) context.terminal.print(line);
};

const linesOf = (report: HaReport, paint: Paint): readonly string[] => {
  const { protected: count, storm, items, alerts = [], power = [], silent } = report;
  const paused =
    storm === null
      ? []
      : storm.asked === true
        ? [`paused since ${storm.since}, by your word: \`cells ha release\` goes on`]
        : [`paused since ${storm.since}: ${storm.hosts.join(", ")} were lost within minutes`];
  const { length } = alerts;
  const waits =
    length === 0
      ? []
      : [paint("yellow", `${length} ${length === 1 ? "matter waits" : "matters wait"} for you: cells alerts`)];
  const cut = power.map(({ host, kind, agent = kind, address, plug, said }) =>
    printable(
      `the power of ${host} can be cut by ${agent} at ${address}${plug === undefined ? "" : `, plug ${plug}`}${said === null ? "" : `: ${said}`}`,
    ),
  );
  const unheard = silentOf(silent).map((line) => paint("yellow", line));
  return [...unheard, ...paused, ...waits, ...cut, ...queueOf(count, items, paint)];
};
/** Nothing here may be taken for the whole where somebody did not answer. */
const silentOf = (silent: HaReport["silent"] = []): readonly string[] =>
  silent.map(({ manager, sentence }) => printable(`what ${manager} looks after is not shown: ${sentence}`));
const queueOf = (count: number, items: readonly HaItem[], paint: Paint): readonly string[] => {
  const looked = `${count} running ${count === 1 ? "VM is" : "VMs are"} looked after`;
  if (items.length === 0) return [`${looked}, and no host of theirs was lost in the last day`];
  const rows = items.map((item) => [
    printable(item.step),
    printable(item.type),
    printable(item.path),
    item.host,
    item.since,
    summaryOf(item),
  ]);
  return [looked, ...table([["step", "type", "VM", "host", "since", ""].map((head) => paint("grey", head)), ...rows])];
};
const summaryOf = ({ outcome, held, reason }: HaItem): string => printable(outcome ?? held ?? reason);

/** `cells ha why VM`: what each investigator and fencer answered, and when. */
export const whyHa = async (context: Context, path: string): Promise<void> => {
  const { cell, path: own } = cellOfPath(path);
  const report = await context.client().ha();
  const items = report.items.filter((item) => item.path === own && item.cell === cell);
  if (context.json) return printJson(context, items);
  if (items.length === 0)
    throw new CommandFailure(
      exitCodes.refused,
      [
        ...silentOf(report.silent),
        ...(await unguardedIn(context, (each) => each === cell)),
        `nothing was to be done about ${path} in the last day; see \`cells why ${path}\``,
      ].join("\n"),
    );
  for (const item of items) for (const line of detailsOf(item)) context.terminal.print(printable(line));
};

const detailsOf = (item: HaItem): readonly string[] => [
  `${item.path}, incarnation ${item.incarnation} at ${item.host}: ${item.step} since ${item.since}`,
  `  scheduled  ${item.scheduled}  ${item.reason}`,
  ...item.investigators.map(({ by, says, since, sentence }) => `  asked      ${since}  ${by}: ${says}, ${sentence}`),
  ...item.fencers.map(({ by, since, sentence }) => `  fenced by  ${since}  ${by}: ${sentence}`),
  ...(item.held === null ? [] : [`  held       ${item.held}`]),
  ...(item.outcome === null ? [] : [`  in the end ${item.since}  ${item.outcome}`]),
];
