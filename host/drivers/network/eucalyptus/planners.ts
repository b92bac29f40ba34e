import type { Mode } from "../../../../model/cell/network/modes.ts";
import type { NetworkView } from "../../../../model/eucalyptus/view/network-view.ts";
import { planEdge } from "./edge.ts";
import { planManaged, planManagedNoVlan } from "./managed.ts";
import { emptyPlan, frozen, type LocalConfiguration, type LocalPlan, type Planner, type Self } from "./plan/plan.ts";
import { planPlainNode, planStatic } from "./static.ts";

/** SYSTEM: a bridge, and nothing more; the site's own DHCP server answers, and what it gives is learnt at the taps. */
const planSystem: Planner = (view, self, local) =>
  self.peer === "node" ? planPlainNode(view, self, local, true) : frozen(emptyPlan(view, self));

/** Who plans which mode: nothing else asks which mode it is. */
const planners: Readonly<Record<Mode, Planner>> = {
  EDGE: planEdge,
  MANAGED: planManaged,
  "MANAGED-NOVLAN": planManagedNoVlan,
  STATIC: planStatic,
  SYSTEM: planSystem,
};

/** What a machine has to have by a view. */
export const planFor = (view: NetworkView, self: Self, local: LocalConfiguration): LocalPlan =>
  planners[view.mode](view, self, local);
