import type { HostName } from "../../../../model/cell/identifiers.ts";
import { type HostRule, mayUse } from "../../../../model/cell/tenants/dedication/dedication.ts";
import { administrator, type By, listFlavors, type WholeHost } from "../../../../model/cell/tenants/pools/flavors.ts";
import { boundOfChildren } from "../../../../model/check/openness.ts";
import type { Holdings, ListedDedication } from "../../../../model/contract/tenancy/pools.ts";
import { rootCell } from "../../../documents/cells.ts";
import { deathOf } from "../../../presence/group/deaths.ts";
import { boundOf, type ControllerState, recordAt } from "../../state.ts";
import { placesOf } from "../dedications.ts";
import { hostElements, hostOf } from "../hosts.ts";
import { flavorsAt } from "./given.ts";

/**
 * What is said of whole hosts: to the operator all, to an account which flavours it could have hosts of and what is dedicated to it or to a
 * domain above it. Which hosts these are is the operator's alone to know.
 * @param account its path; null: the operator
 */
export function holdingsFor(state: ControllerState, account: string | null): Holdings {
  const { cell } = state;
  if (cell === null || state.options.cell !== rootCell) return { flavors: [], dedications: [] };
  const { dedications, rules, tree } = placesOf(cell);
  const by: By = account === null ? administrator : { kind: "account", path: account };
  const isOpen = (host: HostName): boolean => mayHave(rules.get(host), account) && deathOf(state.deaths, host) === null;
  const hosts = new Map<string, WholeHost>();
  for (const element of hostElements(cell)) {
    const { state: is, flavor = null } = element;
    if (flavor !== null && (account === null || isOpen(hostOf(element))))
      hosts.set(hostOf(element), { state: is, flavor, zone: null, vms: [] });
  }
  const flavors = new Map(
    [...cell.elements.values()].flatMap((element) => {
      const id = element.path.slice(flavorsAt.length);
      return element.type === "HostFlavor" ? [[id, { id, ...element }] as const] : [];
    }),
  );
  const uids = new Map(
    [...cell.elements.values()].flatMap((element) => {
      const uid = element.type === "Dedication" ? recordAt(state, element.path)?.uid : undefined;
      return element.type === "Dedication" && uid !== undefined ? [[element.of, uid] as const] : [];
    }),
  );
  const { resolvers: _, ...bound } = boundOfChildren(cell.defaults ?? {}, boundOf(state));
  const pooled = new Set<string>([...state.pooled.values()].map(({ host }) => host));
  return {
    ...(Object.keys(bound).length === 0 ? {} : { bound }),
    flavors: listFlavors(flavors, hosts, pooled, by).map(({ id, description, units, free, hosts: names }) => ({
      name: id,
      description,
      units,
      free,
      ...(names === undefined ? {} : { hosts: names }),
    })),
    dedications: [...dedications]
      .flatMap(([of, to]): readonly ListedDedication[] => {
        const level = tree.get(of)?.level;
        if (level === undefined || (account !== null && !mayUse(to, account))) return [];
        const uid = account === null ? uids.get(of) : undefined;
        return [
          { ...(uid === undefined ? {} : { uid }), of: account !== null && level === "host" ? null : of, level, to },
        ];
      })
      .sort((one, other) => ((one.of ?? "~") < (other.of ?? "~") ? -1 : 1)),
  };
}
const mayHave = (rule: HostRule | undefined, account: string | null): boolean =>
  rule === undefined || account === null || mayUse(rule.to, account);
