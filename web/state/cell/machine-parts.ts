import type { ElementState } from "../../../model/api.ts";
import { wantedOf } from "../../../model/contract/actions/power.ts";
import { leadsTo } from "../../../model/contract/follow/leads-to.ts";
import { typedIn } from "../../../model/contract/follow/rows.ts";
import { isObject, type Json } from "../../../model/json/json.ts";
import type { Element } from "../known.ts";

/** What a machine is made of, by the document of its cell, each with its state; null: nothing is known of it yet. */
export interface MachineParts {
  /** What the document wants of it. */
  readonly wanted: "on" | "off";
  /** `x.restart`: how often somebody had it started again. */
  readonly counter: number;
  readonly cards: readonly Part[];
  readonly disks: readonly Part[];
}
export interface Part {
  readonly path: string;
  /** What it leads to: the subnet of a card, the volume of a disk; that of another cell from its domain on. */
  readonly to: string;
  readonly state: ElementState | null;
  /** Of what it leads to; null: it is another cell's, or not known. */
  readonly stateOfThat: ElementState | null;
}

/**
 * @param model document of the cell, without states: those come as they change
 * @returns null: the document has no such machine
 */
export function partsOf(model: Json, elements: readonly Element[], vm: string): MachineParts | null {
  if (!isObject(model)) return null;
  const all = typedIn(model);
  const own = all.find(({ path, type }) => path === vm && type === "VM");
  if (own === undefined) return null;
  const states = new Map(elements.map(({ path, state }) => [path, state]));
  const withs = (type: string, name: string): readonly Part[] =>
    all
      .filter((each) => each.type === type && leadsTo(model, each, "x.vm") === vm)
      .map((each) => {
        const to = leadsTo(model, each, name) ?? "nothing that is there";
        return { path: each.path, to, state: states.get(each.path) ?? null, stateOfThat: states.get(to) ?? null };
      });
  const { "x.restart": counter } = own.written;
  return {
    wanted: wantedOf(own.written["x.desiredState"]),
    counter: typeof counter === "number" ? counter : 0,
    cards: withs("VirtualInterface", "x.subnet"),
    disks: withs("VolumeConnection", "x.volume"),
  };
}
const ends: Readonly<Record<NonNullable<ElementState["lastEnd"]>["how"], string>> = {
  exited: "its guest switched it off",
  crashed: "it crashed",
  stopped: "it was stopped",
  silent: "it answered no probes",
  "not started": "it did not start",
  "host died": "its host was lost",
};
/** How an incarnation ended that nobody asked to end; null: none has. */
export const lastEndOf = ({ lastEnd }: ElementState): string | null =>
  lastEnd === undefined
    ? null
    : `Incarnation ${lastEnd.incarnation} ended: ${ends[lastEnd.how]}${lastEnd.reason === null ? "" : `, ${lastEnd.reason}`}.`;

/** What a card is known by in its network, as far as it is known. */
export const addressesOf = ({ state }: Part): string =>
  [state?.address, state?.publicAddress, state?.name, state?.mac].filter((each) => each != null).join(" · ");
/** Where a disk's data lies, as far as it is known. */
export const placeOfData = ({ stateOfThat }: Part): string =>
  [
    stateOfThat?.sizeMiB == null ? null : `${stateOfThat.sizeMiB} MiB`,
    stateOfThat?.server == null ? null : `at ${stateOfThat.server}`,
  ]
    .filter((each) => each !== null)
    .join(" · ");
