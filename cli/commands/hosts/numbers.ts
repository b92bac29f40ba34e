import type { CellCounters } from "../../../model/contract/operator/numbers/counters.ts";
import type { History, MachineHistory, Series } from "../../../model/contract/operator/numbers/history.ts";
import { printable } from "../../../model/diagnostics/render-diagnostic.ts";
import { type Context, cellOfPath, printJson } from "../../context/context.ts";
import { table } from "../../terminal/terminal.ts";

/** `cells counters`: what the rules and interfaces of a cell let pass and dropped. */
export async function showCounters(context: Context, cell: string): Promise<void> {
  const answer = await context.client().ask("readCounters", { parameters: { cell } });
  if (context.json) return printJson(context, answer);
  const { paint } = context.terminal;
  const lines = rowsOf(answer);
  const [head = [], ...rest] = lines;
  for (const line of table([head.map((word) => paint("grey", word)), ...rest])) context.terminal.print(line);
  if (rest.length === 0) context.terminal.print(`nothing of ${cell} was counted`);
  const { missing, silent } = answer;
  const who = silent === undefined ? `${missing}` : silent.map(printable).join(", ");
  if (missing > 0) context.terminal.print(paint("yellow", `hosts that do not say what they count: ${who}`));
}

function rowsOf({ rules, interfaces, machines }: CellCounters): readonly (readonly string[])[] {
  const ofRules = rules.map(({ path, packets, bytes }) => [printable(path), "passed", `${packets}`, `${bytes}`]);
  const ofInterfaces = interfaces.flatMap(({ path, sent, received, drops }) => [
    [printable(path), "sent", `${sent.packets}`, `${sent.bytes}`],
    [printable(path), "received", `${received.packets}`, `${received.bytes}`],
    ...Object.entries(drops).map(([reason, count]) => [
      printable(path),
      `dropped: ${printable(reason)}`,
      `${count}`,
      "",
    ]),
  ]);
  const ofMachines = machines.map(({ path, diskBytes }) => [printable(path), "disks", "", `${diskBytes}`]);
  return [["ELEMENT", "WHAT", "PACKETS", "BYTES"], ...ofRules, ...ofInterfaces, ...ofMachines];
}

/** `cells history`: the last hour of hosts and cells, each as a line. */
export async function showHistory(context: Context): Promise<void> {
  const answer = await context.client().ask("readHistory", { parameters: {} });
  if (context.json) return printJson(context, answer);
  for (const line of linesOf(answer)) context.terminal.print(line);
}

/** `cells history VM`: the last hour of one machine, for whoever may read it. */
export async function showMachineHistory(context: Context, path: string): Promise<void> {
  const { cell, path: vm } = cellOfPath(path);
  const answer = await context.client().ask("readMachineHistory", { parameters: { cell }, query: { vm } });
  if (context.json) return printJson(context, answer);
  for (const line of linesOfMachine(answer)) context.terminal.print(line);
}
function linesOfMachine({ everyMs, moments, load, residentMiB, network, disk, isWhole }: MachineHistory) {
  const said = { CPU: load, "MEMORY MiB": residentMiB, "NETWORK B/s": network, "DISKS B/s": disk };
  const rows = Object.entries(said).flatMap(([title, series]) => {
    const heard = series.filter((each) => each !== null);
    const most = Math.max(...heard);
    return heard.length === 0 ? [] : [[title, curve(series, most), `${Math.min(...heard)}`, `${most}`]];
  });
  if (rows.length === 0)
    return [
      isWhole
        ? "nothing was heard of it in the last hour, or since the gateway began"
        : "nothing was heard of it, or there was no room for it among the others",
    ];
  return [...table([["WHAT", "", "LEAST", "MOST"], ...rows]), spanOf(moments, everyMs)];
}
const spanOf = (moments: number, everyMs: number): string =>
  `${Math.max(1, Math.round((moments * everyMs) / 60_000))} min, the present at the right`;

function linesOf({ everyMs, moments, load, usedMiB, running, leftOut }: History): readonly string[] {
  if (moments === 0) return ["the gateway has only just begun: in 10 s there is something to show"];
  const part = (title: string, all: Readonly<Record<string, Series>>) =>
    Object.entries(all).map(([name, series]) => {
      const said = series.filter((each) => each !== null);
      const [least, most] = [Math.min(...said), Math.max(...said)];
      return [printable(name), title, curve(series, most), `${least}`, `${most}`];
    });
  const rows = [...part("CPU", load), ...part("MEMORY MiB", usedMiB), ...part("VMS RUNNING", running)];
  const lines = table([["OF", "WHAT", "", "LEAST", "MOST"], ...rows]);
  return [...lines, spanOf(moments, everyMs), ...(leftOut === 0 ? [] : [`for ${leftOut} more there was no room`])];
}

const [signs, columns] = ["▁▂▃▄▅▆▇█", 60] as const;
/** Of several moments in one column the highest; nothing where nothing was heard. */
export function curve(series: Series, most: number): string {
  const per = Math.max(1, Math.ceil(series.length / columns));
  const from = series.length - per * Math.ceil(series.length / per);
  let line = "";
  for (let at = from; at < series.length; at += per) {
    const said = series.slice(Math.max(0, at), at + per).filter((each) => each !== null);
    const highest = Math.max(...said);
    line += said.length === 0 ? " " : signs[most === 0 ? 0 : Math.round((highest / most) * (signs.length - 1))];
  }
  return line;
}
