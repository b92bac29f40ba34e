import type { Cell, OfferingElement, PoolElement, PoolHostElement } from "../../../../model/cell/cell.ts";
import type { ElementPath } from "../../../../model/cell/identifiers.ts";
import { named } from "../../../../model/cell/tenants/dedication/dedication.ts";
import { mostMarks } from "../../../../model/cell/tenants/dedication/marks.ts";
import { isPoolElement } from "../../../../model/cell/tenants/pools/attributes.ts";
import { changeFlavor } from "../../../../model/cell/tenants/pools/flavors.ts";
import { mostAllowed, mostOfferings } from "../../../../model/cell/tenants/pools/offerings.ts";
import type { Diagnostic } from "../../../../model/diagnostics/diagnostic.ts";
import { type ControllerState, recordAt } from "../../state.ts";
import { claimedFlavor } from "../claims.ts";
import { hostElements, hostOf, isRoot } from "../hosts.ts";
import { givenOf, hasPools, nameOf } from "./asked.ts";
import { flavorsAt, flavorsOf, vmsAt } from "./given.ts";

/** Why a model must not have the flavours and pools that it has; empty if it may. @param joining see `hostRefusals` */
export function poolRefusals(state: ControllerState, cell: Cell, joining?: string): readonly Diagnostic[] {
  return [
    ...misplaced(state, cell),
    ...tooManyOffered(cell),
    ...tooMany(state, cell),
    ...(isRoot(state) ? flavorRefusals(state, cell, joining) : ownersRefusals(state, cell)),
  ];
}
type Told = { readonly path: ElementPath; readonly position?: Diagnostic["position"] };
const told = ({ path, position }: Told, message: string, hint: string, attribute?: string): Diagnostic => ({
  code: "cell/pool",
  message,
  hint,
  path,
  ...(attribute === undefined ? {} : { attribute }),
  ...(position === undefined ? {} : { position }),
});

function misplaced(state: ControllerState, cell: Cell): readonly Diagnostic[] {
  return [...cell.elements.values()].flatMap((element): readonly Diagnostic[] => {
    if (!isPoolElement(element)) return [];
    const { type, path } = element;
    if (type === "Offering") return offeringRefusals(state, element);
    if (type === "HostFlavor") {
      const isRight = isRoot(state) && path.startsWith(flavorsAt) && !path.slice(flavorsAt.length).includes("/");
      const hint = isRoot(state)
        ? "Write it as `flavors extends { large extends HostFlavor { x.units 4; } }` in the cell `root`."
        : "Leave it out: `x.flavor` of a PoolHost names one.";
      return isRight
        ? []
        : [told(element, `\`${path}\` is a HostFlavor, and stands elsewhere than as \`${flavorsAt}<name>\``, hint)];
    }
    if (hasPools(state)) return element.type === "Pool" ? listRefusals(element) : [];
    return [
      told(
        element,
        `\`${path}\` is a ${type}, and this cell is not one that the root cell has made`,
        "Write it in a cell that an account has in the cell `root`.",
      ),
    ];
  });
}

function listRefusals(element: PoolElement): readonly Diagnostic[] {
  const lists = [
    ["x.offerings", element.offerings],
    ["x.images", element.images],
  ] as const;
  return lists.flatMap(([attribute, { length } = []]) =>
    length <= mostAllowed
      ? []
      : [
          told(
            element,
            `\`${attribute}\` has ${length} words, and may have ${mostAllowed}`,
            `Leave some out, or \`${attribute}\` as a whole: then it takes all.`,
            attribute,
          ),
        ],
  );
}

const offeringsAt = "root/offerings/";
function offeringRefusals(state: ControllerState, element: OfferingElement): readonly Diagnostic[] {
  const { path, planner, mode, tags = [] } = element;
  const isRight = isRoot(state) && path.startsWith(offeringsAt) && !path.slice(offeringsAt.length).includes("/");
  if (!isRight) {
    const hint = isRoot(state)
      ? "Write it as `offerings extends { small extends Offering { x.memory 512; } }` in the cell `root`."
      : "Leave it out: offerings are the operator's, in the cell `root`.";
    return [told(element, `\`${path}\` is an Offering, and stands elsewhere than as \`${offeringsAt}<name>\``, hint)];
  }
  if (tags.length > mostMarks) {
    const many = `\`x.tags\` has ${tags.length} words, and may have ${mostMarks}, as many as a host`;
    return [told(element, many, "Leave some out: a host has to have all of them.", "x.tags")];
  }
  if (mode === undefined || planner === "ImplicitDedicationPlanner") return [];
  const why = `\`x.mode\` says how the ImplicitDedicationPlanner looks for a host, and \`x.planner\` is ${planner}`;
  return [told(element, why, 'Write `x.planner "ImplicitDedicationPlanner";`, or leave `x.mode` out.', "x.mode")];
}

/** Each Placer says all of them to each controller. */
function tooManyOffered(cell: Cell): readonly Diagnostic[] {
  const all = [...cell.elements.values()].filter(({ type }) => type === "Offering");
  const [beyond] = all.slice(mostOfferings);
  if (beyond === undefined) return [];
  const why = `The cell has ${all.length} Offerings, and may have ${mostOfferings}`;
  return [told(beyond, why, "Leave some out: those that no VM names are not missed.")];
}

/**
 * Whatever waits for a host is looked at by the root controller whenever it looks, with all hosts, and costs nothing while it waits. What had more before
 * there was such a limit may have no more of them, and goes on.
 */
const mostPooled = 256;
function tooMany(state: ControllerState, cell: Cell): readonly Diagnostic[] {
  const [all, before] = [pooledIn(cell), state.cell === null ? [] : pooledIn(state.cell)];
  const [beyond] = all.slice(Math.max(mostPooled, before.length));
  return beyond === undefined
    ? []
    : [
        told(
          beyond,
          `The cell has ${all.length} Pools and PoolHosts, and may have ${mostPooled} of them together`,
          "Leave some out: another cell of the account may have as many.",
        ),
      ];
}
const pooledIn = (cell: Cell): readonly Told[] =>
  [...cell.elements.values()].filter(({ type }) => type === "Pool" || type === "PoolHost");

/** What is refused of a host and a flavour, and why, says the pure rule; here what is not known yet is not taken for empty. */
function flavorRefusals(state: ControllerState, cell: Cell, joining: string | undefined): readonly Diagnostic[] {
  const flavors = new Set(flavorsOf(cell));
  const pools = new Map([...state.pooled.values()].map(({ host, pool }) => [host, pool]));
  return hostElements(cell).flatMap((element): readonly Diagnostic[] => {
    const [host, before] = [hostOf(element), state.cell?.elements.get(element.path)];
    const was = before?.type === "Host" ? before : undefined;
    // Nothing runs where nobody has been yet.
    const isNew = host === joining && was === undefined;
    const vms = isNew ? [] : vmsAt(state, state.cell ?? cell, host, null);
    const { flavor = null } = element;
    const is = isNew ? "disabled" : (was?.state ?? "enabled");
    // It was of that flavour by a word that a lost store had given: whatever stands there by now, it only stays what it is.
    const stays = flavor !== null && claimedFlavor(state, host) === flavor;
    const whole = { state: is, flavor: stays ? flavor : (was?.flavor ?? null), zone: null, vms: vms ?? [] };
    const outcome = changeFlavor(flavors, { ...whole, name: host }, pools.get(host) ?? null, flavor);
    if (!outcome.ok) return [told(element, outcome.refused.why, outcome.refused.hint, "x.flavor")];
    if (flavor === null || flavor === whole.flavor || vms !== null) return [];
    return [
      told(
        element,
        `It is not known yet what runs at ${host}, and it goes into a flavour only empty`,
        "Write the same again once the host answers.",
        "x.flavor",
      ),
    ];
  });
}

/** Names are unique in a pool; a host leaves it only disabled and empty. */
function ownersRefusals(state: ControllerState, cell: Cell): readonly Diagnostic[] {
  const refusals: Diagnostic[] = [];
  const names = new Map<string, PoolHostElement>();
  for (const element of cell.elements.values()) {
    if (element.type !== "PoolHost") continue;
    const key = `${element.pool} ${nameOf(element)}`;
    const other = names.get(key);
    if (other !== undefined)
      refusals.push(
        told(
          element,
          `\`${other.path}\` is a host of the same pool with that name`,
          "Give one of the two another name.",
        ),
      );
    names.set(key, element);
  }
  const movedFrom = new Set([...cell.elements.values()].flatMap((element) => element.movedFrom ?? []));
  for (const before of state.cell?.elements.values() ?? []) {
    if (before.type !== "PoolHost" || movedFrom.has(before.path)) continue;
    const after = cell.elements.get(before.path);
    const isSame =
      after?.type === "PoolHost" &&
      after.pool === before.pool &&
      after.flavor === before.flavor &&
      after.zone === before.zone;
    if (isSame) continue;
    const record = recordAt(state, before.path);
    const vms = (record === undefined ? undefined : givenOf(state, record.uid))?.vms ?? [];
    const is = [...(before.enabled ? ["is enabled"] : []), ...(vms.length > 0 ? [`has the VMs ${named(vms)}`] : [])];
    if (is.length > 0)
      refusals.push(
        told(
          after ?? { path: before.path },
          `\`${before.path}\` ${is.join(" and ")}, and leaves its pool only disabled and empty`,
          "Write `x.enabled false`, and have those VMs go or end first.",
        ),
      );
  }
  return refusals;
}
