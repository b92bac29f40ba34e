import type { Json } from "../../../json/json.ts";
import type { HostFlavorElement, OfferingElement, PoolElement, PoolHostElement } from "../../cell.ts";
import type { ElementPath } from "../../identifiers.ts";
import { mostUnits } from "./flavors.ts";

/** Of host flavours and pools: their part of the one table (`model/cell/schema.ts`), and of what is made of it. */
/** As everywhere: a host holds no more than that, whoever sends it a VM. */
const mostCpuRatio = 16;
export const fills = ["spread", "pack"] as const;

const label = { kind: "label", mixedCase: false } as const;

export const hostFlavorAttribute = {
  "x.flavor": {
    kind: label,
    effect: "change",
    docs: "The host is of this HostFlavor: it takes VMs of the pool alone that it is in, and none as long as it is in none. It goes into a flavour disabled and empty.",
  },
} as const;

/** Who looks for a host. */
export const planners = ["FirstFitPlanner", "ImplicitDedicationPlanner"] as const;
export const offeringModes = ["Strict", "Preferred"] as const;

export const poolSchemas = {
  Offering: {
    "x.displayText": { kind: { kind: "text" }, default: "", effect: "change", docs: "What it is, for people." },
    "x.memory": {
      ...({
        kind: { kind: "integer", minimum: 16, maximum: 2 ** 31 - 1 },
        unit: "MiB",
        required: true,
        effect: "change",
      } as const),
      docs: "Memory of such a VM.",
    },
    "x.cpus": {
      ...({ kind: { kind: "integer", minimum: 1, maximum: 1024 }, default: 1, effect: "change" } as const),
      docs: "Its virtual processors.",
    },
    "x.cpuSpeed": {
      ...({
        kind: { kind: "integer", minimum: 0, maximum: 2 ** 31 - 1 },
        unit: "MHz",
        default: 0,
        effect: "change",
      } as const),
      docs: "Least speed of a processor; 0: any.",
    },
    "x.tags": { kind: { kind: "labels" }, effect: "change", docs: "Tags that its host has (`x.tags` of a Host)." },
    "x.planner": {
      ...({ kind: { kind: "choice", values: planners }, default: "FirstFitPlanner", effect: "change" } as const),
      docs: 'Which hosts it may have: any that fit ("FirstFitPlanner"), or such as its account has by what runs there ("ImplicitDedicationPlanner").',
    },
    "x.mode": {
      ...({ kind: { kind: "choice", values: offeringModes }, effect: "change" } as const),
      docs: 'ImplicitDedicationMode, beside `x.planner "ImplicitDedicationPlanner"`: where nobody else\'s VMs are, or nowhere ("Strict"), or there as long as there is such a host ("Preferred"). Absent: "Strict".',
    },
    "x.ha": {
      ...({ kind: { kind: "boolean" }, default: false, effect: "change" } as const),
      docs: "Whether such a VM is started elsewhere when its host is lost.",
    },
  },
  HostFlavor: {
    "x.description": {
      kind: { kind: "text" },
      default: "",
      effect: "change",
      docs: "What such a host is, for people: processors, memory, and whatever tells it from others.",
    },
    "x.units": {
      kind: { kind: "integer", minimum: 1, maximum: mostUnits },
      required: true,
      effect: "change",
      docs: "What one such host costs of an account's units.",
    },
  },
  Pool: {
    "x.authorised": {
      kind: { kind: "labels", paths: true },
      effect: "change",
      docs: "Accounts whose VMs may stand at its hosts, by their paths. Absent: the cell's own; a list without that shuts it out.",
    },
    "x.cpuRatio": {
      kind: { kind: "integer", minimum: 1, maximum: mostCpuRatio },
      effect: "change",
      docs: `How many virtual processors are promised for each processor of its hosts. Absent: ${mostCpuRatio}, as elsewhere.`,
    },
    "x.memoryPercent": {
      kind: { kind: "integer", minimum: 1, maximum: 100 },
      effect: "change",
      docs: "How much of the memory of its hosts is promised, in hundredths. What is left nobody gets, whatever is lost. Absent: 100, as elsewhere.",
    },
    "x.fill": {
      kind: { kind: "choice", values: fills },
      effect: "change",
      docs: 'Which of its hosts a VM gets: "spread" the emptiest, "pack" the fullest that has room. Absent: "spread".',
    },
    "x.offerings": {
      kind: { kind: "labels" },
      effect: "change",
      docs: "Offerings of which a VM has to be that comes to its hosts (`x.placement.offering`); what runs there goes on. Absent: of any, or of none.",
    },
    "x.images": {
      kind: { kind: "labels", images: true },
      effect: "change",
      docs: "What a VM has to boot from that comes to its hosts: names of images, or volumes of other cells, `//images.cells.internal/debian`. Absent: whatever it likes.",
    },
  },
  PoolHost: {
    "x.pool": {
      kind: { kind: "link", to: ["Pool"], foreign: false },
      required: true,
      effect: "replace",
      docs: "The pool that it is in. Its name, the last part of its path, is the only one of the pool.",
    },
    "x.flavor": {
      kind: label,
      required: true,
      effect: "replace",
      docs: "Of which HostFlavor it is to be: the operator says which there are.",
    },
    "x.zone": {
      kind: label,
      effect: "replace",
      docs: "Zone in which it is to stand. Absent: in any.",
    },
    "x.enabled": {
      kind: { kind: "boolean" },
      default: false,
      effect: "change",
      docs: "Whether new VMs come there. Those that run there go on; it leaves the pool disabled and empty.",
    },
  },
} as const;

export const poolDocs = {
  Offering:
    "What machines of one kind have, and where they stand, in the root cell alone: `root/offerings/<its name>`. Personalities offer them to their users.",
  HostFlavor: "A kind of whole hosts that accounts can have, in the root cell alone: `root/flavors/<its name>`.",
  Pool: "Whole hosts that the cell's account has for itself, and for other accounts if it wants.",
  PoolHost: "A host of a pool: one of the flavour that is free, and nobody else's as long as it is there.",
} as const;

/** Checked attributes, with defaults. */
interface Values {
  needNumber(name: string): number;
  needText(name: string): string;
  needBoolean(name: string): boolean;
  number(name: string): number | undefined;
  needChoice<T extends string>(name: string, values: readonly T[]): T;
  text(name: string): string | undefined;
  texts(name: string): readonly string[] | undefined;
  link(name: string): ElementPath;
}
type OfPools = OfferingElement | HostFlavorElement | PoolElement | PoolHostElement;
type Fields<E> = E extends OfPools ? Omit<E, "path" | "public" | "movedFrom" | "position"> : never;
const isOfPools = { Offering: true, HostFlavor: true, Pool: true, PoolHost: true } as const satisfies Record<
  OfPools["type"],
  true
>;
export const isPoolElement = (element: { readonly type: string }): element is OfPools =>
  Object.hasOwn(isOfPools, element.type);

/** Of an element of the type. */
export function poolFields(type: OfPools["type"], values: Values): Fields<OfPools> {
  if (type === "HostFlavor")
    return { type, description: values.needText("x.description"), units: values.needNumber("x.units") };
  if (type === "Offering") {
    const mode = values.text("x.mode") === undefined ? undefined : values.needChoice("x.mode", offeringModes);
    const tags = values.texts("x.tags");
    return {
      type,
      displayText: values.needText("x.displayText"),
      memoryMiB: values.needNumber("x.memory"),
      cpus: values.needNumber("x.cpus"),
      cpuSpeedMHz: values.needNumber("x.cpuSpeed"),
      planner: values.needChoice("x.planner", planners),
      ha: values.needBoolean("x.ha"),
      ...(tags === undefined ? {} : { tags }),
      ...(mode === undefined ? {} : { mode }),
    };
  }
  if (type === "Pool") {
    const authorised = values.texts("x.authorised");
    const cpuRatio = values.number("x.cpuRatio");
    const memoryPercent = values.number("x.memoryPercent");
    const fill = values.text("x.fill") === undefined ? undefined : values.needChoice("x.fill", fills);
    const [offerings, images] = [values.texts("x.offerings"), values.texts("x.images")];
    return {
      type,
      ...(authorised === undefined ? {} : { authorised }),
      ...(cpuRatio === undefined ? {} : { cpuRatio }),
      ...(memoryPercent === undefined ? {} : { memoryPercent }),
      ...(fill === undefined ? {} : { fill }),
      ...(offerings === undefined ? {} : { offerings }),
      ...(images === undefined ? {} : { images }),
    };
  }
  const zone = values.text("x.zone");
  return {
    type,
    pool: values.link("x.pool"),
    flavor: values.needText("x.flavor"),
    enabled: values.needBoolean("x.enabled"),
    ...(zone === undefined ? {} : { zone }),
  };
}

/** The same as it is written. */
export function describedPool(
  element: OfPools,
  rename: (path: ElementPath) => ElementPath,
): [string, Json | undefined][] {
  switch (element.type) {
    case "Offering":
      return [
        ["x.displayText", element.displayText],
        ["x.memory", element.memoryMiB],
        ["x.cpus", element.cpus],
        ["x.cpuSpeed", element.cpuSpeedMHz],
        ["x.tags", element.tags],
        ["x.planner", element.planner],
        ["x.mode", element.mode],
        ["x.ha", element.ha],
      ];
    case "HostFlavor":
      return [
        ["x.description", element.description],
        ["x.units", element.units],
      ];
    case "Pool":
      return [
        ["x.authorised", element.authorised],
        ["x.cpuRatio", element.cpuRatio],
        ["x.memoryPercent", element.memoryPercent],
        ["x.fill", element.fill],
        ["x.offerings", element.offerings],
        ["x.images", element.images],
      ];
    case "PoolHost":
      return [
        ["x.pool", rename(element.pool)],
        ["x.flavor", element.flavor],
        ["x.zone", element.zone],
        ["x.enabled", element.enabled],
      ];
  }
}
