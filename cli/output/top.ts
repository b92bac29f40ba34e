import type { InstallationStatus } from "../../model/api.ts";
import { printable } from "../../model/diagnostics/render-diagnostic.ts";
import { pathIn } from "../context/context.ts";
import { type Paint, table } from "../terminal/terminal.ts";

/** What `cells top` shows: hosts, cells and VMs by what they use. Pure. */

export const measures = ["cpu", "memory", "disk", "network"] as const;
export type Measure = (typeof measures)[number];

export interface Use {
  readonly name: string;
  /** CPUs in use: 1 is a whole one. */
  readonly cpu: number;
  /** Of how many. */
  readonly cpus: number;
  /** Resident. */
  readonly memoryMiB: number;
  /** Of how much. */
  readonly ofMiB: number;
  /** Octets a second, both ways, of all interfaces; absent: no host says. */
  readonly network?: number;
  /** Octets a second, read and written; absent: no host says. */
  readonly disk?: number;
  /** Of a VM. */
  readonly host?: string;
}
export interface Top {
  readonly hosts: readonly Use[];
  readonly cells: readonly Use[];
  readonly vms: readonly Use[];
  /** Hosts that do not answer: of what runs there nothing is known. */
  readonly silent: readonly string[];
}

const by =
  (measure: Measure) =>
  (one: Use, other: Use): number => {
    const of = (use: Use): number =>
      ({ cpu: use.cpu, memory: use.memoryMiB, disk: use.disk ?? 0, network: use.network ?? 0 })[measure];
    return of(other) - of(one) || (one.name < other.name ? -1 : 1);
  };

/** Of each kind what uses most comes first. */
export function topOf({ hosts }: InstallationStatus, measure: Measure): Top {
  const there = hosts.filter(({ state }) => state !== "unreachable");
  const vms = there.flatMap(({ host, machines = [] }) =>
    machines.map(
      ({ cell, path, load, cpus, residentMiB, memoryMiB, network, disk }): Use & { readonly cell: string } => ({
        name: pathIn(cell, path),
        cell,
        host,
        ...(network === undefined ? {} : { network }),
        ...(disk === undefined ? {} : { disk }),
        cpu: load,
        cpus,
        memoryMiB: residentMiB ?? 0,
        ofMiB: memoryMiB,
      }),
    ),
  );
  const cells = [...Map.groupBy(vms, ({ cell }) => cell)].map(([name, own]): Use => {
    const sum = (of: (use: Use) => number): number => own.reduce((all, use) => all + of(use), 0);
    return {
      name,
      cpu: sum(({ cpu }) => cpu),
      cpus: sum(({ cpus }) => cpus),
      memoryMiB: sum(({ memoryMiB }) => memoryMiB),
      ofMiB: sum(({ ofMiB }) => ofMiB),
      ...octetsOf(own),
    };
  });
  const ofHosts = there.map(
    ({ host, load, cpus, usedMiB, reservedMiB = 0, memoryMiB, machines = [] }): Use => ({
      name: host,
      cpu: (load?.vms ?? 0) + (load?.management ?? 0),
      cpus,
      memoryMiB: usedMiB + reservedMiB,
      ofMiB: memoryMiB,
      ...octetsOf(machines),
    }),
  );
  return {
    hosts: ofHosts.sort(by(measure)),
    cells: cells.sort(by(measure)),
    vms: vms.map(({ cell: _cell, ...use }) => use).sort(by(measure)),
    silent: hosts.flatMap(({ host, state }) => (state === "unreachable" ? [host] : [])),
  };
}

type Octets = Pick<Use, "network" | "disk">;
function octetsOf(uses: readonly Octets[]): Octets {
  const sum = (kind: keyof Octets): Octets => {
    const said = uses.flatMap((use) => use[kind] ?? []);
    return said.length === 0 ? {} : { [kind]: said.reduce((all, each) => all + each, 0) };
  };
  return { ...sum("network"), ...sum("disk") };
}
const perSecond = (octets: number | undefined): string => (octets === undefined ? "" : (octets / 1024).toFixed(1));

export function renderTop({ hosts, cells, vms, silent }: Top, paint: Paint): readonly string[] {
  const line = ({ name, cpu, cpus, memoryMiB, ofMiB, network, disk, host = "" }: Use): readonly string[] => [
    printable(name),
    cpu.toFixed(2),
    `${cpus}`,
    `${Math.round(memoryMiB)}`,
    `${ofMiB}`,
    perSecond(disk),
    perSecond(network),
    printable(host),
  ];
  const part = (title: string, uses: readonly Use[], last = ""): readonly (readonly string[])[] =>
    uses.length === 0
      ? []
      : [
          [title, "CPU", "OF", "MEMORY MiB", "OF", "DISK KiB/s", "NET KiB/s", last].map((word) => paint("grey", word)),
          ...uses.map(line),
        ];
  const parts = [...part("HOST", hosts), ...part("CELL", cells), ...part("VM", vms, "HOST")];
  return [
    ...table(parts),
    ...(silent.length === 0
      ? []
      : [paint("yellow", `not known, since they do not answer: ${silent.map(printable).join(", ")}`)]),
  ];
}
