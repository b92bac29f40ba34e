import { readFileSync, writeFileSync } from "node:fs";
import {
  type AuditHead,
  type AuditRecord,
  type AuditView,
  mostAnswered,
  type Outcome,
  type Ring,
  type ServiceAuditRecord,
} from "../../model/contract/audit/audit.ts";
import { differences, faultsIn } from "../../model/contract/audit/chain.ts";
import { ringOf } from "../../model/contract/audit/rings.ts";
import type { Client } from "../connection/client.ts";
import type { Context } from "../context/context.ts";
import { CommandFailure, exitCodes, usage } from "../terminal/failure.ts";
import { columns, print } from "./people.ts";

/* `cells audit`: who changed what, and who was refused. */

export interface AuditOptions {
  readonly service?: string;
  readonly cell?: string;
  readonly user?: string;
  readonly verb?: string;
  readonly target?: string;
  readonly since?: string;
  readonly until?: string;
  readonly refused?: boolean;
  readonly limit?: number;
}
interface Query {
  readonly service?: string;
  readonly who?: string;
  readonly verb?: string;
  readonly target?: string;
  readonly since?: string;
  readonly until?: string;
  readonly outcome?: Outcome;
  readonly limit?: number;
  readonly after?: number;
  readonly chain?: Ring;
}
const queryOf = ({ cell, service, user, refused, ...same }: AuditOptions): Query => {
  if (cell !== undefined && service !== undefined) throw usage("say --cell or --service, not both");
  const source = cell === undefined ? service : `controller.${cell}`;
  return {
    ...same,
    ...(source === undefined ? {} : { service: source }),
    ...(user === undefined ? {} : { who: user }),
    ...(refused === true ? { outcome: "refused" as const } : {}),
  };
};

const textOf = (record: ServiceAuditRecord): readonly string[] => {
  const { time, service, who, verb, target, what, outcome, why, before, after, source, via } = record;
  const version =
    before === undefined || after === undefined || before === after ? "" : `version ${before} to ${after}`;
  const door = via === undefined ? "" : `by ${via}`;
  const more = [outcome === "refused" ? `refused: ${why ?? ""}` : "", what ?? "", version, door].filter(
    (part) => part !== "",
  );
  return [time, service, who, source ?? "", verb, target, more.join("; ")];
};

export const showAudit = async (context: Context, options: AuditOptions): Promise<void> => {
  const view = await context.client().ask("readAudit", { parameters: {}, query: queryOf(options) });
  const text = view.records.length === 0 ? "nothing was recorded that you may see" : columns(view.records.map(textOf));
  print(context, view, text);
  warnOfSilence(context, view);
};
const warnOfSilence = (context: Context, { silent }: AuditView): void => {
  if (silent.length > 0) context.terminal.warn(`not heard: ${silent.join(", ")}; what they recorded is not there`);
};

/** All that is kept, of each service the changes and then the refusals, in the order of their chain. */
async function everything(client: Client, query: Query): Promise<{ all: readonly Whole[]; view: AuditView }> {
  const view = await client.ask("readAudit", { parameters: {}, query: { ...query, limit: 1 } });
  const all: Whole[] = [];
  for (const { service, refusals } of view.sources) {
    all.push(await wholeOf(client, service, "changes", query));
    // Where they are in one, that has been read.
    if (refusals !== undefined) all.push(await wholeOf(client, service, "refusals", query));
  }
  return { all, view };
}
interface Whole {
  readonly service: string;
  readonly ring: Ring;
  readonly head: AuditHead;
  readonly records: readonly ServiceAuditRecord[];
}
async function wholeOf(client: Client, service: string, ring: Ring, query: Query): Promise<Whole> {
  const records: ServiceAuditRecord[] = [];
  for (;;) {
    const after = records.at(-1)?.n ?? 0;
    const asked = { ...query, service, chain: ring, after, limit: mostAnswered };
    const { sources, records: next, silent } = await client.ask("readAudit", { parameters: {}, query: asked });
    const [source] = sources;
    if (source === undefined)
      throw new CommandFailure(exitCodes.refused, `${silent.join(", ")} does not answer any more`);
    records.push(...next);
    // The oldest may have gone meanwhile, by their age or number.
    const head = ring === "changes" ? source : (source.refusals ?? source);
    if (next.length < mostAnswered) return { service, ring, head, records: records.filter(({ n }) => n >= head.first) };
  }
}

export const exportAudit = async (
  context: Context,
  options: AuditOptions & { readonly out?: string },
): Promise<void> => {
  const { out, ...filter } = options;
  const { all, view } = await everything(context.client(), queryOf(filter));
  const lines = all.flatMap(({ records }) => records.map((record) => JSON.stringify(record)));
  if (out === undefined) for (const line of lines) context.terminal.print(line);
  else {
    writeFileSync(out, lines.map((line) => `${line}\n`).join(""), { flag: "wx", mode: 0o600 });
    print(context, { records: lines.length, out }, `${lines.length} records are in ${out}`);
  }
  warnOfSilence(context, view);
};

/** @param against an earlier export */
export const verifyAudit = async (
  context: Context,
  { service, against }: { readonly service?: string; readonly against?: string },
): Promise<void> => {
  const client = context.client();
  const { user } = await client.ask("whoAmI", { parameters: {} });
  if (user !== null)
    throw new CommandFailure(
      exitCodes.refused,
      `${user.name} sees a part of the records, and only all of them can be verified: use the operator's credential`,
    );
  const earlier = against === undefined ? [] : exported(against);
  const { all, view } = await everything(client, service === undefined ? {} : { service });
  const verified = all.map(({ service, ring, head, records }) => {
    const part = { ...head, records: records.map(withoutService) };
    const own = earlier.filter((record) => record.service === service && ringOf(record) === ring);
    return {
      service,
      chain: ring,
      records: records.length,
      faults: [...faultsIn(part), ...differences(own.map(withoutService), part)],
    };
  });
  const gone = [...new Set(earlier.map((record) => record.service))].filter(
    (name) => (service === undefined || service === name) && !view.sources.some((source) => source.service === name),
  );
  const faults = verified.flatMap((each) => each.faults.map((fault) => `${each.service}, ${each.chain}: ${fault}`));
  const text = verified.map((each) => [
    each.service,
    `${each.records} ${each.chain}`,
    each.faults.length === 0 ? "whole" : "NOT WHOLE",
  ]);
  print(context, { services: verified, gone, silent: view.silent }, [columns(text), ...faults].join("\n"));
  warnOfSilence(context, view);
  if (gone.length > 0)
    context.terminal.warn(`of the export not there now: ${gone.join(", ")}; a cell that was deleted has no records`);
  if (faults.length > 0) throw new CommandFailure(exitCodes.refused, "records were altered, or are missing");
};
const withoutService = ({ service: _, ...record }: ServiceAuditRecord): AuditRecord => record;

function exported(file: string): readonly ServiceAuditRecord[] {
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.flatMap((line, index) => {
    if (line === "") return [];
    try {
      const record = JSON.parse(line) as ServiceAuditRecord;
      if (typeof record.service === "string" && Number.isSafeInteger(record.n)) return [record];
    } catch {
      // Said below.
    }
    throw usage(`line ${index + 1} of ${file} is no record: give it a file that \`cells audit export\` wrote`);
  });
}
