import { runRole } from "../../runtime/roles.ts";
import { serveRoles } from "./serve.ts";

/** The authority's program in a service VM, a bundle of its own: what it reads and signs certificates with is a third of it. */
export const serve = (roles: readonly string[]): void => serveRoles(roles, runRole);

/** As in main.ts. */
export const load = async (): Promise<void> => {
  await import("../../runtime/identity/authority/authority.ts");
};
