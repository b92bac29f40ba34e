import type { Result } from "../../../../model/result.ts";
import { addElements, type NewElement } from "../add-element.ts";

/** A volume as a form has it. */
export interface WantedVolume {
  readonly name: string;
  readonly sizeMiB: number;
  /** What it starts with; null: it starts empty. */
  readonly image: string | null;
  /** Path of the machine whose disk it is; null: of none. */
  readonly machine: string | null;
}
export interface WantedSubnet {
  readonly name: string;
  readonly size: number;
  readonly range: (typeof ranges)[number];
  /** A fixed range; null: any that is free. */
  readonly cidr: string | null;
}
export const ranges = ["internal", "external"] as const;
export const rangeSays: Readonly<Record<(typeof ranges)[number], string>> = {
  internal: "private to the installation",
  external: "routable outside",
};

const ofVolume = ({ name, sizeMiB, image, machine }: WantedVolume): readonly NewElement[] => [
  { name, type: "Volume", attributes: { "x.size": sizeMiB, ...(image === null ? {} : { "x.import": image }) } },
  ...(machine === null
    ? []
    : [
        {
          name: `${name}Disk`,
          type: "VolumeConnection",
          attributes: { "x.vm": `<ref:/${machine}>`, "x.volume": `<ref:../${name}>` },
        },
      ]),
];
/** The text with one volume more, all else as it was written; a sentence where it cannot be had. */
export const addVolume = (
  text: string,
  main: string,
  component: string,
  wanted: WantedVolume,
): Result<string, string> => addElements(text, main, component, ofVolume(wanted), "the volume");

export function addSubnet(text: string, main: string, component: string, wanted: WantedSubnet): Result<string, string> {
  const { name, size, range, cidr } = wanted;
  const attributes = {
    ...(cidr === null ? { "x.size": size } : { "x.cidr": cidr }),
    ...(range === "internal" ? {} : { "x.addressRange": range }),
  };
  return addElements(text, main, component, [{ name, type: "Subnet", attributes }], "the subnet");
}
