import { groupNameRule, isGroupName } from "../../../model/cell/tenants/affinity/affinity.ts";
import { groupOf, type Owner } from "../../../model/cell/tenants/dedication/dedication.ts";
import type { ImplicitMode } from "../../../model/cell/tenants/dedication/implicit.ts";
import type { ListedDedication } from "../../../model/contract/tenancy/pools.ts";
import { fail, type Result } from "../../../model/result.ts";
import { addElements, type NewElement } from "./add-element.ts";

/** A machine as a form has it, which becomes elements of its cell's text. */
export interface WantedMachine {
  readonly name: string;
  readonly memoryMiB: number;
  readonly cpus: number;
  /** Path of a subnet in which it has a card; null: it has none. */
  readonly subnet: string | null;
  /** Null: in any, or in none that has a name. */
  readonly zone: string | null;
  /** Affinity group that it is in; null: in none. */
  readonly group: string | null;
  /** Beside nobody else's machines; null: beside whomever. */
  readonly dedication: ImplicitMode | null;
}

/** A zone of an owner, whose machines ask for it by a group that goes with it. */
export interface OwnedZone {
  readonly zone: string;
  readonly owner: Owner;
  readonly group: string;
}
/** Of what is dedicated, the zones, each with the group that a machine there is in. */
export const zonesIn = (dedications: readonly ListedDedication[]): readonly OwnedZone[] =>
  dedications
    .flatMap(({ of, level, to }) =>
      level === "zone" && of !== null ? [{ zone: of, owner: to, group: groupOf(to) }] : [],
    )
    .sort((one, other) => (one.zone < other.zone ? -1 : 1));

const elementsOf = ({
  name,
  memoryMiB,
  cpus,
  subnet,
  zone,
  group,
  dedication,
}: WantedMachine): readonly NewElement[] => [
  {
    name,
    type: "VM",
    attributes: {
      "x.memory": memoryMiB,
      ...(cpus === 1 ? {} : { "x.cpus": cpus }),
      ...(zone === null ? {} : { "x.placement.zone": zone }),
      ...(group === null ? {} : { "x.placement.groups": group }),
      ...(dedication === null ? {} : { "x.placement.dedication": dedication }),
    },
  },
  ...(subnet === null
    ? []
    : [
        {
          name: `${name}Card`,
          type: "VirtualInterface",
          attributes: { "x.vm": `<ref:../${name}>`, "x.subnet": `<ref:/${subnet}>` },
        },
      ]),
];

/** The text with one machine more, all else as it was written; a sentence where it cannot be had. */
export function addMachine(
  text: string,
  main: string,
  component: string,
  wanted: WantedMachine,
): Result<string, string> {
  if (wanted.group !== null && !isGroupName(wanted.group)) return fail(`an affinity group has ${groupNameRule}`);
  return addElements(text, main, component, elementsOf(wanted), "the machine");
}
