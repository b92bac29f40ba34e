import { runRole } from "../../runtime/roles.ts";
import { serveRoles } from "./serve.ts";

/** The program of most roles of a service VM, bundled into one file: `serve(ROLES)` runs them. */
export const serve = (roles: readonly string[]): void => serveRoles(roles, runRole);

/** Loads what these roles need, and runs nothing: for the code cache, which then holds it compiled. */
export const load = async (): Promise<void> => {
  await Promise.all([
    import("../../core/address/manager.ts"),
    import("../../core/directory/directory.ts"),
    import("../../core/dns/manager.ts"),
    import("../../core/ha/manager.ts"),
    import("../../core/placer/placer.ts"),
    import("../../core/presence/group/group.ts"),
    import("../../core/storage/manager/manager.ts"),
    import("../../runtime/cell-manager/edge.ts"),
    import("../../runtime/controller/edge.ts"),
    import("../../runtime/dns/dns-server.ts"),
    import("../../runtime/identity/own/enrol.ts"),
    import("../../runtime/tenancy/edge.ts"),
    import("../../runtime/identity/own/peers-follow.ts"),
  ]);
};
