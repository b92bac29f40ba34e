import { runRole } from "../../runtime/roles.ts";
import { type Companion, serveRoles } from "./serve.ts";

/** With the root controller the HA Manager, and with nothing else anything. */
const companion: Companion = {
  of: "controller",
  name: "ha-manager",
  configure: async (role) => {
    if (role.controller?.root === undefined) return null;
    const { haCompanion } = await import("../../runtime/controller/services/ha-companion.ts");
    return haCompanion(role);
  },
};

/** The program of most roles of a service VM, bundled into one file: `serve(ROLES)` runs them. */
export const serve = (roles: readonly string[]): void => serveRoles(roles, runRole, companion);

/** Loads what these roles need, and runs nothing: for the code cache, which then holds it compiled. */
export const load = async (): Promise<void> => {
  await Promise.all([
    import("../../core/address/manager.ts"),
    import("../../core/directory/directory.ts"),
    import("../../core/dns/manager.ts"),
    import("../../core/eucalyptus/manager.ts"),
    import("../../core/ha/manager.ts"),
    import("../../core/placer/placer.ts"),
    import("../../core/presence/group/group.ts"),
    import("../../core/storage/manager/manager.ts"),
    import("../../runtime/cell-manager/edge.ts"),
    import("../../runtime/controller/edge.ts"),
    import("../../runtime/dns/dns-server.ts"),
    import("../../runtime/dns/notify.ts"),
    import("../../runtime/identity/own/enrol.ts"),
    import("../../runtime/tenancy/edge.ts"),
    import("../../runtime/identity/own/peers-follow.ts"),
  ]);
};
