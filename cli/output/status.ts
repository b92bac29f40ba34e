import type { CellSummary, InstallationStatus } from "../../model/api.ts";
import { printable } from "../../model/diagnostics/render-diagnostic.ts";
import { type Colour, cut, type Paint } from "../terminal/terminal.ts";
import { renderCounts } from "./render.ts";

/**
 * The picture that `cells status` draws: hosts with their memory and load, storage servers with their space, services,
 * cells with what they wait for. It fits 80 columns; signs and bars are plain ASCII where the terminal has no UTF-8, and
 * say the same without colour.
 */
export interface StatusView {
  readonly paint: Paint;
  readonly columns: number;
  readonly utf8: boolean;
  /** Where the gateway is, and what says so. */
  readonly cloud?: string;
  /** Milliseconds since 1970, for "since when". */
  readonly nowMs: number;
}
type Service = InstallationStatus["services"][number];
type Host = InstallationStatus["hosts"][number];
type Server = InstallationStatus["servers"][number];

/** Does the environment say that text is shown as UTF-8 (POSIX, 8.2: the first of the three that is set)? */
export const hasUtf8 = ({ LC_ALL, LC_CTYPE, LANG }: Readonly<Record<string, string | undefined>>): boolean =>
  /utf-?8/i.test([LC_ALL, LC_CTYPE, LANG].find((each) => each !== undefined && each !== "") ?? "");

interface Signs {
  readonly good: string;
  readonly bad: string;
  readonly waiting: string;
  /** Used, kept, free. */
  readonly bar: readonly [string, string, string];
}
const signsOf = ({ utf8 }: StatusView): Signs =>
  utf8
    ? { good: "✓", bad: "✗", waiting: "·", bar: ["█", "▒", "░"] }
    : { good: "+", bad: "x", waiting: ".", bar: ["#", "=", "-"] };

export const renderSize = (MiB: number): string =>
  MiB < 1024 ? `${MiB} MiB` : `${(MiB / 1024).toFixed(MiB < 10 * 1024 ? 1 : 0)} GiB`;

/** At most two units: `3 h 20 min`. */
export const renderDuration = (ms: number): string => {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const units = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ] as const;
  const first = units.findIndex(([count]) => count > 0);
  if (first < 0) return "0 s";
  const shown = units.slice(first, first + (first >= 2 ? 1 : 2)).filter(([count]) => count > 0);
  return shown.map(([count, unit]) => `${count} ${unit}`).join(" ");
};

/** Parts of a whole, side by side; what is there shows with at least one sign, whatever its share. */
export const renderBar = (parts: readonly number[], total: number, width: number, signs: Signs["bar"]): string => {
  const cells: string[] = [];
  for (const [index, part] of parts.entries()) {
    const share = total <= 0 ? 0 : Math.round((part / total) * width);
    const length = Math.min(part > 0 ? Math.max(1, share) : 0, width - cells.length);
    for (let cell = 0; cell < length; cell += 1) cells.push(signs[index] ?? "");
  }
  while (cells.length < width) cells.push(signs[2]);
  return cells.join("");
};

export const plural = (count: number, one: string): string => `${count} ${one}${count === 1 ? "" : "s"}`;

export const renderStatus = (status: InstallationStatus, cells: readonly CellSummary[], view: StatusView): string => {
  const { paint, columns } = view;
  const heading = (name: string, about: string): string => `${paint("bold", name)}${about === "" ? "" : `  ${about}`}`;
  const { services, hosts, servers } = status;
  const vms = hosts.reduce((sum, host) => sum + host.vms, 0);
  const running = services.filter((service) => stateOf(service) === "running").length;
  const isUp = hosts.filter(({ state }) => state !== "unreachable").length;
  const [used, kept, free] = signsOf(view).bar;
  const legend = `memory ${used} VMs  ${kept} management  ${free} free`;
  const parts = [
    view.cloud === undefined ? [] : [heading("Cloud", printable(view.cloud))],
    [heading("Hosts", `${isUp} of ${hosts.length} reachable, ${plural(vms, "VM")}   ${paint("grey", legend)}`)],
    hosts.length === 0 ? ["  none has registered"] : hosts.flatMap((host) => hostLines(host, view)),
    lossLines(status, view),
    spareLines(status, view),
    systemLines(status, view),
    [heading("Storage servers", plural(sum(servers.map(({ volumes }) => volumes)), "volume"))],
    servers.length === 0 ? ["  none has registered"] : servers.map((server) => serverLine(server, view)),
    [heading("Services", `${running} of ${services.length} run`)],
    serviceLines(services, view),
    leftoverLines(status, view),
    (status.warnings ?? []).map((each) => `  ${mark("waiting", view)} ${view.paint("yellow", printable(each))}`),
    [heading("Cells", "")],
    cells.length === 0
      ? ["  none: `cells apply examples/shop/shop.sf` makes one"]
      : cells.flatMap((cell) => cellLines(cell, view)),
  ];
  return parts
    .flat()
    .map((line) => cut(line.trimEnd(), columns))
    .map((line) => (view.utf8 ? line : line.replaceAll("…", "~")))
    .join("\n");
};

/** Whether the fullest host may be lost now, as far as room for its VMs goes. */
const lossLines = ({ loss }: InstallationStatus, view: StatusView): readonly string[] => {
  if (loss === undefined || loss.vms === 0) return [];
  const { host, vms, stranded } = loss;
  if (stranded.length === 0)
    return [
      `  ${mark("good", view)} if ${host}, the fullest, is lost, there is room elsewhere for its ${plural(vms, "VM")}`,
    ];
  const [first = "", ...more] = stranded;
  const named = `${first}${more.length === 0 ? "" : ` and ${more.length} more`}`;
  return [
    `  ${mark("bad", view)} ${view.paint("red", printable(`if ${host} is lost, ${stranded.length} of its ${plural(vms, "VM")} had no room: ${named}`))}`,
  ];
};

/** Whether there is as much room as the operator wants kept. */
const spareLines = ({ spare }: InstallationStatus, view: StatusView): readonly string[] => {
  if (spare === undefined) return [];
  const { hosts, lack } = spare;
  const lost = plural(hosts, "host");
  if (lack === null)
    return [`  ${mark("good", view)} room is kept for the loss of ${lost}, as \`x.ha.spareHosts\` says`];
  const missing = `if ${lost} ${hosts === 1 ? "is" : "are"} lost, ${plural(lack.vms, "VM")} (${lack.memoryMiB} MiB) had no room (\`x.ha.spareHosts\`)`;
  return [`  ${mark("bad", view)} ${view.paint("red", missing)}`];
};

/** Whether there are as many hosts as the cloud's own VMs are to have left. */
const systemLines = ({ systemHosts }: InstallationStatus, view: StatusView): readonly string[] => {
  if (systemHosts === undefined) return [];
  const { kept, left } = systemHosts;
  const said = `${left === 0 ? "no host is" : `${left} of ${kept} hosts are`} left to the cloud's own VMs (\`x.placement.systemHosts\` ${kept}): let one more join, or VMs that have one alone end`;
  return [`  ${mark("bad", view)} ${view.paint("red", said)}`];
};

const leftoverLines = ({ leftovers }: InstallationStatus, view: StatusView): readonly string[] => {
  if (leftovers === undefined) return [];
  const { forked, keepers } = leftovers;
  const lost = `the store of ${forked.join(", ")} was lost or is older: what it had desired stays as it is`;
  const kept = `${keepers.join(", ")} ${keepers.length === 1 ? "keeps" : "keep"} what its client did not repeat`;
  return [
    ...(forked.length === 0 ? [] : [`  ${mark("bad", view)} ${lost}: cells orphans list`]),
    ...(keepers.length === 0 ? [] : [`  ${mark("waiting", view)} ${kept}: cells orphans list`]),
  ];
};

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);

const mark = (kind: "good" | "bad" | "waiting", view: StatusView): string => {
  const colours: Readonly<Record<typeof kind, Colour>> = { good: "green", bad: "red", waiting: "yellow" };
  return view.paint(colours[kind], signsOf(view)[kind]);
};

const memoryBarWidth = 20;
const loadBarWidth = 8;

const hostLines = (host: Host, view: StatusView): readonly string[] => {
  const { paint } = view;
  const name = host.host.padEnd(6);
  if (host.state === "unreachable") {
    const known =
      host.presence?.powerIsOff === true ? "its power is off, and nothing runs there" : "what runs there is not known";
    const why = `${lifeOf(host, view) || "not reachable"}: ${known}`;
    return [`  ${mark("bad", view)} ${name} ${host.address}  ${paint("red", why)}`, ...closedLines(host, view)];
  }
  const reserved = host.reservedMiB ?? 0;
  const signs = signsOf(view);
  const bar = renderBar([host.usedMiB, reserved], host.memoryMiB, memoryBarWidth, signs.bar);
  const memory = `${renderSize(host.usedMiB + reserved)} of ${renderSize(host.memoryMiB)}`;
  const load = sum([host.load?.vms ?? 0, host.load?.management ?? 0]);
  const loadBar = renderBar([host.load?.vms ?? 0, host.load?.management ?? 0], host.cpus, loadBarWidth, signs.bar);
  const cpu = host.load === undefined ? "" : `  CPU ${paint("blue", loadBar)} ${load.toFixed(2)} of ${host.cpus}`;
  const state = host.state === "up" ? "good" : "waiting";
  const first = `  ${mark(state, view)} ${name} ${paint("blue", bar)} ${memory}${cpu}  ${host.accelerator}`;
  const machines = [...(host.machines ?? [])].sort((a, b) => (a.path < b.path ? -1 : 1));
  const life = lifeOf(host, view);
  const doubted = host.presence?.state === "suspected" || host.presence?.state === "dead";
  return [
    `${host.state === "up" ? first : `${first}  ${host.state}`}${life === "" || doubted ? "" : `  ${life}`}`,
    ...(doubted ? [`      ${mark("waiting", view)} ${paint("yellow", life)}`] : []),
    ...(host.remark === undefined ? [] : [`      ${mark("waiting", view)} ${paint("yellow", host.remark)}`]),
    ...announcedLines(host, view),
    ...closedLines(host, view),
    ...machines.map((machine) => machineLine(machine, view)),
  ];
};

const namedAddresses = 4;
/** External addresses of which routers are told. */
const announcedLines = ({ announces }: Host, { nowMs, paint }: StatusView): readonly string[] => {
  if (announces === undefined || announces.addresses.length === 0) return [];
  const { to, addresses } = announces;
  const named = addresses.slice(0, namedAddresses).map(({ address, since }) => {
    const age = since === null ? "" : ` (${renderDuration(nowMs - Date.parse(since))})`;
    return `${printable(address)}${age}`;
  });
  const others = addresses.length - named.length;
  const all = `${named.join(", ")}${others === 0 ? "" : ` and ${others} more`}`;
  return [
    `      ${paint("grey", `announces ${all} to ${to.length === 0 ? "nobody" : to.map(printable).join(" and ")}`)}`,
  ];
};

/** What the operator has ordered of it, and how far that is. */
const closedLines = (
  { administration, leaving = [], machines, host, state }: Host,
  view: StatusView,
): readonly string[] => {
  const line = (text: string): string => `      ${mark("waiting", view)} ${view.paint("yellow", printable(text))}`;
  const goes = leaving.map(({ path, to, reason }) =>
    line(to === null ? `${path} stays: ${reason ?? "it is on its way"}` : `${path} leaves for ${to}`),
  );
  if (administration === undefined) return goes;
  if (administration === "reserved") return [line("reserved: it takes VMs alone whose host was lost"), ...goes];
  if (administration === "disabled") return [line("disabled: it takes nothing new"), ...goes];
  const there = (machines ?? []).length;
  const isThere = there === 1 ? "VM is" : "VMs are";
  const still =
    state === "unreachable"
      ? `in maintenance: \`cells host resume ${host}\` when it is back`
      : there === 0
        ? "in maintenance, and empty: it can be switched off"
        : `in maintenance: ${there} ${isThere} still there`;
  return [line(still), ...goes];
};

/** What Presence says of it: `up 3 min`, `suspected for 4 s`, `declared dead 2 h ago`; empty: nothing. */
const lifeOf = ({ presence, state }: Host, view: StatusView): string => {
  if (presence === undefined || presence.state === "unknown") return "";
  const age = presence.since === null ? "" : renderDuration(view.nowMs - Date.parse(presence.since));
  if (presence.state === "dead") return `declared dead${age && ` ${age} ago`}`;
  if (presence.state === "suspected") return `suspected${age && ` for ${age}`}`;
  return state === "unreachable" ? "" : `up${age && ` ${age}`}`;
};

const machineLine = (machine: NonNullable<Host["machines"]>[number], view: StatusView): string => {
  const { path, stage, memoryMiB, residentMiB, load } = machine;
  const kind = stage === "running" ? "good" : stage === "ended" ? "bad" : "waiting";
  const facts =
    stage === "running"
      ? [
          `${renderSize(memoryMiB)}${residentMiB === null ? "" : ` (${renderSize(residentMiB)} resident)`}`,
          `CPU ${load.toFixed(2)}`,
        ]
      : [stage];
  return `      ${mark(kind, view)} ${printable(path).padEnd(28)} ${facts.join("  ")}`;
};

const serverLine = ({ server, address, totalMiB, freeMiB, volumes, bin, state }: Server, view: StatusView): string => {
  const name = server.padEnd(6);
  if (state === "unreachable")
    return `  ${mark("bad", view)} ${name} ${address}  ${view.paint("red", "not reachable: its volumes cannot be written")}`;
  const used = renderBar([totalMiB - freeMiB], totalMiB, memoryBarWidth, signsOf(view).bar);
  const space = `${renderSize(freeMiB)} of ${renderSize(totalMiB)} free`;
  const kept = bin === undefined || bin.files === 0 ? "" : `, bin ${renderSize(bin.usedMiB)}`;
  return `  ${mark("good", view)} ${name} ${view.paint("blue", used)} ${space}  ${plural(volumes, "volume")}${kept}`;
};

const stateOf = ({ state, running }: Service): NonNullable<Service["state"]> =>
  state ?? (running ? "running" : "stopped");

const serviceLines = (services: readonly Service[], view: StatusView): readonly string[] => {
  const width = Math.min(24, Math.max(0, ...services.map(({ name, peer }) => (peer ?? name).length)));
  return services.map((service) => {
    const { name, peer, address, since, memoryMiB, restarts, lastEnd } = service;
    const state = stateOf(service);
    const kind = state === "running" ? "good" : state === "starting" ? "waiting" : "bad";
    const age = since == null ? state : `${state} ${renderDuration(view.nowMs - Date.parse(since))}`;
    const trouble =
      restarts === 0
        ? ""
        : view.paint(
            "yellow",
            `${plural(restarts, "restart")}${lastEnd == null ? "" : `, last: ${printable(lastEnd)}`}`,
          );
    const memory = memoryMiB == null ? "" : renderSize(memoryMiB);
    const columns = [cut(peer ?? name, width).padEnd(width), address.padEnd(10), age.padEnd(18), memory.padStart(7)];
    return `  ${mark(kind, view)} ${columns.join(" ")}  ${trouble}`;
  });
};

/** Said of a cell for which other than the first services decide. */
const boundOf = ({ services }: CellSummary): string => {
  const { placer, storageManager, haManager = 1, networkMode } = services ?? { placer: 1, storageManager: 1 };
  const mode = networkMode === undefined ? "" : `  (mode ${networkMode})`;
  const guard = haManager === 1 ? "" : `, HA Manager ${haManager}`;
  return placer === 1 && storageManager === 1 && haManager === 1
    ? mode
    : `  (Placer ${placer}, Storage Manager ${storageManager}${guard})${mode}`;
};

const cellLines = (cell: CellSummary, view: StatusView): readonly string[] => {
  const { paint } = view;
  const counts = renderCounts(new Map(Object.entries(cell.phases)), paint);
  const bad = (cell.phases.failed ?? 0) > 0 || (cell.phases.unreachable ?? 0) > 0;
  const ready = (cell.phases.ready ?? 0) === cell.elements;
  const kind = bad ? "bad" : ready ? "good" : "waiting";
  const first = `  ${mark(kind, view)} ${cell.cell}  version ${cell.version}, ${plural(cell.elements, "element")}: ${counts || "none"}${boundOf(cell)}`;
  const waiting = (cell.waiting ?? []).map(({ path, phase, reason }) => {
    const about = mark(phase === "failed" ? "bad" : "waiting", view);
    return `      ${about} ${printable(path)} ${paint("grey", printable(reason ?? phase))}`;
  });
  const { unguarded: alone } = cell.services ?? {};
  const unguarded = alone === undefined ? [] : [`      ${paint("yellow", printable(alone))}`];
  return [first, ...unguarded, ...waiting];
};
