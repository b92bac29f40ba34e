import { runGateway } from "../../gateway/run.ts";
import { serveRoles } from "./serve.ts";

/** The gateway's program in a service VM, a bundle of its own: its HTTP server is as large as all the other roles together. */
export const serve = (roles: readonly string[]): void => serveRoles(roles, runGateway);

/** Everything is loaded with this module. */
export const load = async (): Promise<void> => {
  await import("../../runtime/identity/own/enrol.ts");
};
