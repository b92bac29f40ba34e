import { fail, ok, type Result } from "../../../model/result.ts";
import { addElement, type NewElement } from "./add-element.ts";

/** A machine as a form has it, which becomes elements of its cell's text. */
export interface WantedMachine {
  readonly name: string;
  readonly memoryMiB: number;
  readonly cpus: number;
  /** Path of a subnet in which it has a card; null: it has none. */
  readonly subnet: string | null;
}

const elementsOf = ({ name, memoryMiB, cpus, subnet }: WantedMachine): readonly NewElement[] => [
  {
    name,
    type: "VM",
    attributes: { "x.memory": memoryMiB, ...(cpus === 1 ? {} : { "x.cpus": cpus }) },
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
  const { name } = wanted;
  if (!/^[A-Za-z][A-Za-z0-9_-]{0,62}$/.test(name))
    return fail("a name begins with a letter and has letters, digits, - and _, 63 at most");
  let written = text;
  for (const element of elementsOf(wanted)) {
    const taken = new RegExp(`(?<![\\w.-])${element.name}(?![\\w.-])`);
    if (taken.test(written)) return fail(`${element.name} stands in the text already: give the machine another name`);
    const added = addElement(written, main, component, element);
    if (!added.ok) return added;
    written = added.value;
  }
  return ok(written);
}
