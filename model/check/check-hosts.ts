import { displayShare } from "../cell/attributes/display-memory.ts";
import type { Cell, Element, VmElement } from "../cell/cell.ts";
import { named } from "../cell/tenants/dedication/dedication.ts";
import { missingMark, readProperties, readTags } from "../cell/tenants/dedication/marks.ts";
import { closestName } from "../diagnostics/closest-name.ts";
import type { ReportFault } from "./fault.ts";

/**
 * What a host can hold when it is empty: what the Placer would promise there at most. The management's own share is taken
 * off already, and overcommitment is counted in.
 */
export interface HostOffer {
  readonly host: string;
  readonly memoryMiB: number;
  readonly cpus: number;
  readonly cpuSpeedMHz: number;
}

/** Marks of all hosts that an installation has. */
export interface KnownMarks {
  /** Where hosts stand, by names from the zone down: "z1/p1/c1". */
  readonly places: readonly string[];
  readonly tags: readonly string[];
  /** Names of properties. */
  readonly properties: readonly string[];
}

/**
 * A VM that none of the hosts could hold even when it is empty can only ever wait: it is refused instead. `hosts` are all
 * hosts of the installation; where they are not all known, this must not be asked.
 */
export function checkHosts(elements: readonly Element[], hosts: readonly HostOffer[], fault: ReportFault): void {
  for (const element of elements) if (element.type === "VM") checkVm(element, hosts, fault);
}

/**
 * The VMs that an all-or-none cell adds must fit into all hosts together. Said of its memory and processors as sums, so that
 * it is certain; whether they fit side by side is the Placer's to find.
 */
export function checkHostsOfAll(
  cell: Cell,
  elements: readonly Element[],
  hosts: readonly HostOffer[],
  fault: ReportFault,
): void {
  const vms = elements.filter((element) => element.type === "VM").filter(({ desiredState }) => desiredState === "on");
  for (const { attribute, of, has, unit } of needs) {
    if (attribute === "x.cpuSpeed") continue;
    const asked = vms.reduce((sum, vm) => sum + of(vm), 0);
    const most = hosts.reduce((sum, host) => sum + has(host), 0);
    // One that is too large for itself was named already.
    if (asked <= most || vms.some((vm) => hosts.every((host) => of(vm) > has(host)))) continue;
    fault(
      "cell/no-host",
      `${allAsk(cell, "VMs")} ${asked} ${unit}, more than all hosts together can ever give`,
      cell.path,
      {
        attribute: "x.policy.deploy",
        hint: `At most ${most} ${unit} can be had: ask for less, or write \`x.policy.deploy "as-possible"\`.`,
      },
    );
  }
}
/** How a fault of an all-or-none cell as a whole begins. */
export const allAsk = (cell: Cell, what: string): string =>
  `\`${cell.name}\` is to be had all or none, and its ${what} ask for`;

/** What an attribute asks for, a screen with it, what a host has of it, and how a person reads the two. */
const needs = [
  {
    attribute: "x.memory",
    of: (vm: VmElement) => vm.memoryMiB + displayShare(vm),
    has: (host: HostOffer) => host.memoryMiB,
    unit: "MiB",
  },
  { attribute: "x.cpus", of: (vm: VmElement) => vm.cpus, has: (host: HostOffer) => host.cpus, unit: "processors" },
  {
    attribute: "x.cpuSpeed",
    of: (vm: VmElement) => vm.cpuSpeedMHz,
    has: (host: HostOffer) => host.cpuSpeedMHz,
    unit: "MHz",
  },
] as const;

function checkVm(vm: VmElement, all: readonly HostOffer[], fault: ReportFault): void {
  const pin = vm.placement.host;
  const hosts = typeof pin === "string" ? all.filter(({ host }) => host === pin) : all;
  if (hosts.length === 0) {
    const names = all.map(({ host }) => host).join(", ");
    const message =
      typeof pin === "string" ? `There is no host \`${pin}\`` : "The installation has no host that could hold a VM";
    fault("cell/no-host", message, vm.path, {
      ...(typeof pin === "string" ? { attribute: "x.placement.host" } : {}),
      hint: names === "" ? "A host must join first." : `Name one that is there: ${names}.`,
    });
    return;
  }
  if (hosts.some((host) => needs.every(({ of, has }) => of(vm) <= has(host)))) return;
  const where = typeof pin === "string" ? `the host \`${pin}\`, which \`x.placement.host\` asks for,` : "any host";
  const lacking = needs.filter(({ of, has }) => hosts.every((host) => of(vm) > has(host)));
  for (const { attribute, of, has, unit } of lacking) {
    const most = Math.max(...hosts.map(has));
    const besideMiB = attribute === "x.memory" ? displayShare(vm) : 0;
    const screen = besideMiB === 0 ? "" : ` with the ${besideMiB} of its screen`;
    const less =
      most > besideMiB
        ? `: write \`${attribute} ${most - besideMiB}\` or less`
        : ', its screen among them: write `x.display "none"`';
    fault(
      "cell/no-host",
      `\`${vm.path}\` asks for ${of(vm)} ${unit}${screen}, more than ${where} can ever give`,
      vm.path,
      {
        attribute,
        hint: `At most ${most} ${unit} can be had${less}.`,
      },
    );
  }
  if (lacking.length > 0) return;
  const asked = needs.map(({ of, unit }) => `${of(vm)} ${unit}`).join(", ");
  const each = hosts.map(
    (host) => `${host.host} has ${needs.map(({ has, unit }) => `${has(host)} ${unit}`).join(", ")}`,
  );
  fault("cell/no-host", `\`${vm.path}\` asks for ${asked}, and no host has all of it`, vm.path, {
    attribute: "x.memory",
    hint: `Ask for less: ${each.slice(0, 5).join("; ")}.`,
  });
}

/** A VM that asks for what no host is said to be could only wait: it is refused, as one that is too large for each. */
export function checkMarks(elements: readonly Element[], marks: KnownMarks, fault: ReportFault): void {
  for (const element of elements) if (element.type === "VM") checkWishes(element, marks, fault);
}
function checkWishes(
  { path, placement }: VmElement,
  { places, tags, properties }: KnownMarks,
  fault: ReportFault,
): void {
  const unknown = (what: string, wish: string, name: string, all: readonly string[]): void => {
    const there = [...new Set(all)].sort();
    const close = closestName(name, there);
    const meant = close === undefined ? "" : `Did you mean \`${close}\`? `;
    fault("cell/no-host", `There is no host with ${what} \`${name.slice(0, 100)}\``, path, {
      attribute: `x.placement.${wish}`,
      hint:
        there.length === 0
          ? "The operator has said none of any host: leave it out."
          : `${meant}There are ${named(there)}.`,
    });
  };
  for (const [at, level] of (["zone", "pod", "cluster"] as const).entries()) {
    const wish = placement[level];
    const isThere = places.some((cluster) => missingMark({ cluster }, { [level]: wish ?? null }) === null);
    const all = places.map((cluster) =>
      cluster
        .split("/")
        .slice(0, at + 1)
        .join("/"),
    );
    if (typeof wish === "string" && !isThere) unknown(`the ${level}`, level, wish, all);
  }
  for (const tag of placement.tags === undefined ? [] : (readTags(placement.tags) ?? []))
    if (!tags.includes(tag)) unknown("the tag", "tags", tag, tags);
  for (const name of Object.keys(readProperties(placement.properties) ?? {}))
    if (!properties.includes(name)) unknown("the property", "properties", name, properties);
}
