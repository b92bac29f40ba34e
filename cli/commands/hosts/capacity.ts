import type { CapacityAnswer, CapacityQuery } from "../../../model/contract/operator/placement.ts";
import { printable } from "../../../model/diagnostics/render-diagnostic.ts";
import { type Context, printJson } from "../../context/context.ts";
import { plural } from "../../output/status.ts";
import { usage } from "../../terminal/failure.ts";

export interface CapacityOptions {
  readonly like?: string;
  readonly memory?: number;
  readonly cpus?: number;
  readonly failures?: number;
}

/** `cells capacity`: how many more of a VM fit, and after lost hosts. */
export const showCapacity = async (
  context: Context,
  { like, memory, cpus, failures }: CapacityOptions,
): Promise<void> => {
  if ((like === undefined) === (memory === undefined) || (like !== undefined && cpus !== undefined))
    throw usage("say --like with the path of a VM, or else --memory and --cpus");
  const query: CapacityQuery = {
    ...(like === undefined ? {} : { like }),
    ...(memory === undefined ? {} : { memoryMiB: memory }),
    ...(cpus === undefined ? {} : { cpus }),
    ...(failures === undefined ? {} : { failures }),
  };
  const answer = await context.client().ask("readCapacity", { parameters: {}, query });
  if (context.json) return printJson(context, answer);
  for (const line of linesOf(answer)) context.terminal.print(printable(line));
};

const lacks: Readonly<Record<string, string>> = {
  memory: "memory runs out first",
  cpus: "processors run out first",
  hosts: "each host takes one of it",
};
const keeps: Readonly<Record<string, string>> = {
  unreachable: "not heard",
  closed: "take no VMs now",
  pinned: "not where it asks to be",
  apart: "others are there from which it keeps apart",
  dedicated: "dedicated, or held by who is there",
  speed: "too slow",
};

function linesOf({ like, memoryMiB, cpus, more, hosts, runsOut, away, said, failures }: CapacityAnswer): string[] {
  const what = `${like === null ? "" : `like ${like}, `}${memoryMiB} MiB and ${plural(cpus, "processor")}`;
  const lines = [
    more === 0
      ? `no more fits (${what})${runsOut === null ? "" : `: ${lacks[runsOut] ?? runsOut}`}`
      : `${more} more fit at ${plural(hosts, "host")} (${what}); ${lacks[runsOut ?? ""] ?? runsOut ?? ""}`,
  ];
  if (said !== undefined) lines.push(said);
  for (const each of away) lines.push(`${plural(each.hosts, "host")} not counted: ${keeps[each.kind] ?? each.kind}`);
  if (failures === undefined) return lines;
  const { hosts: lost, more: then, lost: names, stranded, every } = failures;
  lines.push(
    `after the loss of ${every ? "any" : "the largest"} ${plural(lost, "host")}: ${then} more, with ${names.join(", ")} lost`,
  );
  if (stranded > 0) lines.push(`! ${plural(stranded, "VM")} of theirs would have no place`);
  return lines;
}
