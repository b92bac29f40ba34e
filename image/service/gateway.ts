import { runGateway } from "../../gateway/run.ts";
import { runPersonality } from "../../gateway/shared/run.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { serveRoles } from "./serve.ts";

const run = (configuration: ProcessConfiguration): Promise<void> =>
  configuration.role === "gateway" ? runGateway(configuration) : runPersonality(configuration);

/**
 * The gateway's program in a service VM, and those of the personalities beside it, which are processes of their own: a bundle of its
 * own, since its HTTP server is as large as all the other roles together.
 */
export const serve = (roles: readonly string[]): void => serveRoles(roles, run);

/** Everything is loaded with this module. */
export const load = async (): Promise<void> => {
  await import("../../runtime/identity/own/enrol.ts");
};
