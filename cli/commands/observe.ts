import { setTimeout as sleep } from "node:timers/promises";
import type { ServiceEvent } from "../../model/api.ts";
import { keepNewest } from "../../model/limits.ts";
import { parseMetrics } from "../../runtime/observation/metrics-text.ts";
import { watchServices } from "../connection/changes.ts";
import { type Client, clientFromConfiguration, Refused } from "../connection/client.ts";
import { type Context, cellOfPath, printJson } from "../context/context.ts";
import { follow } from "../output/follow.ts";
import { hasUtf8, renderStatus } from "../output/status.ts";
import { asServiceEvent, readSince, renderServiceEvent } from "../output/timeline.ts";
import { CommandFailure, exitCodes, usage } from "../terminal/failure.ts";
import { onlyCell } from "./model/get.ts";
import { testbedStatus } from "./up.ts";

/** `cells status`, `cells events` and `cells metrics`: what the installation is and what happens in it. */

const picture = async (client: Client, context: Context): Promise<string> => {
  const [installation, cells] = await Promise.all([client.status(), client.cells()]);
  const { url, cloud } = client;
  const asked = { url, ...(cloud === undefined ? {} : { by: cloud.by, file: cloud.file }) };
  if (context.json) return JSON.stringify({ cloud: asked, ...installation, cells }, null, 2);
  const { paint, columns } = context.terminal;
  const view = { paint, columns, utf8: hasUtf8(process.env), nowMs: Date.now() };
  return renderStatus(installation, cells, {
    ...view,
    cloud: `${url}${cloud === undefined ? "" : `, by ${cloud.by}`}`,
  });
};

/** At most one drawing per this time, however many events there are. */
const pictureEveryMs = 500;

/** Draws the status again whenever something happens, until Ctrl-C. */
const watchStatus = async (client: Client, context: Context): Promise<void> => {
  const { terminal } = context;
  const changes = watchServices(client, new Date().toISOString());
  try {
    for (;;) {
      const text = await picture(client, context);
      if (context.json) terminal.print(JSON.stringify(JSON.parse(text)));
      else if (terminal.live) terminal.draw(text.split("\n"));
      else terminal.print(`${text}\n`);
      await sleep(pictureEveryMs);
      await changes.next(Number.POSITIVE_INFINITY);
    }
  } finally {
    changes.close();
  }
};

/** The installation as the gateway sees it; when that does not answer, the testbed's own processes. */
export const status = async (
  context: Context,
  { directory, named, watch }: { readonly directory?: string; readonly named: boolean; readonly watch: boolean },
): Promise<void> => {
  try {
    const client = named ? clientFromConfiguration(directory) : context.client();
    if (watch) await watchStatus(client, context);
    else context.terminal.print(await picture(client, context));
  } catch (error) {
    if (!(error instanceof CommandFailure) || error.exitCode !== exitCodes.unreachable) throw error;
    await testbedStatus(context, directory);
    throw error;
  }
};

export interface EventsOptions {
  readonly follow: boolean;
  /** A cell, for its own events as its controller keeps them; undefined: those of all services. */
  readonly own: string | undefined;
  readonly cell: string | undefined;
  readonly service: string | undefined;
  readonly since: string | undefined;
}

/** How many events are remembered, so that none is shown twice after a reconnect. */
const rememberedEvents = 5_000;
const reconnectMs = 1_000;

interface Opening {
  readonly query: { readonly follow?: boolean; readonly past?: boolean; readonly since?: string };
  readonly opened: () => void;
}
async function* eventsOf(
  client: Client,
  { own, cell, service }: EventsOptions,
  { query, opened }: Opening,
): AsyncGenerator<ServiceEvent> {
  if (own === undefined) {
    const about = { ...(cell === undefined ? {} : { cell }), ...(service === undefined ? {} : { service }) };
    yield* client.stream("followServices", { parameters: {}, query: { ...query, ...about } }, opened);
    return;
  }
  for await (const event of client.stream("followCell", { parameters: { cell: own }, query }, opened))
    yield asServiceEvent(event);
}

/**
 * Events of all services, or of one cell, in one form. With `follow` they begin now unless `since` is given. If the gateway
 * goes away, it reconnects and shows nothing twice.
 */
export const events = async (context: Context, options: EventsOptions): Promise<void> => {
  const { terminal } = context;
  const client = context.client();
  const since = options.since === undefined ? null : readSince(options.since, Date.now());
  if (since?.ok === false) throw usage(since.error);
  const shown = new Set<string>();
  let from = since?.value ?? null;
  const query = (): Opening["query"] => ({
    ...(options.follow ? { follow: true } : {}),
    ...(from !== null ? { since: from } : options.follow ? { past: false } : {}),
  });
  const show = (event: ServiceEvent): void => {
    const key = `${event.service} ${event.id}`;
    if (shown.has(key)) return;
    shown.add(key);
    keepNewest(shown, rememberedEvents);
    if (from === null || event.time > from) from = event.time;
    terminal.print(context.json ? JSON.stringify(event) : renderServiceEvent(event, terminal.paint, Date.now()));
  };
  for (let connected = false; ; ) {
    try {
      const opened = (): void => {
        connected = true;
      };
      for await (const event of eventsOf(client, options, { query: query(), opened })) show(event);
      if (!options.follow) return;
    } catch (error) {
      // A first connection that fails is an error; one that was there before is made again.
      if (!options.follow || !connected || error instanceof Refused) throw error;
    }
    await sleep(reconnectMs);
  }
};

/** `cells watch`: shows a cell as it changes, until Ctrl-C. */
export const watch = async (context: Context, cellText: string | undefined): Promise<void> => {
  const client = context.client();
  const cell = cellText === undefined ? await onlyCell(client) : cellOfPath(cellText).cell;
  if (context.json) {
    await events(context, { follow: true, own: cell, cell: undefined, service: undefined, since: undefined });
    return;
  }
  await client.model(cell, "", false);
  await follow(client, cell, context.terminal, { timeoutMs: Number.POSITIVE_INFINITY, until: () => false });
};

export const metrics = async (context: Context, service: string | undefined): Promise<void> => {
  const text = await context.client().metrics(service ?? null);
  if (!context.json) {
    context.terminal.print(text.trimEnd());
    return;
  }
  const read = parseMetrics(text);
  if (!read.ok) throw new CommandFailure(exitCodes.refused, `the gateway's metrics cannot be read: ${read.error}`);
  printJson(context, read.value);
};
