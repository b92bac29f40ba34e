import type { FastifyInstance, FastifyServerFactory } from "fastify";
import { certify } from "../../runtime/identity/own/certify.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { stopAtSignals } from "../../runtime/life/signals.ts";
import { createObserver, logFatalErrors, type Observer } from "../../runtime/observation/observer.ts";
import { listenAt, listenInside, overTls } from "./listen.ts";

type Create = (
  configuration: ProcessConfiguration,
  observer: Observer,
  serve?: FastifyServerFactory,
) => FastifyInstance;

/** Which personality a role is. Loaded only where it runs. */
const creators: Readonly<Record<string, () => Promise<Create>>> = {
  "personality.caas": async () => (await import("../caas/caas.ts")).createCaas,
};

/**
 * Runs a personality until a signal ends the process: over TLS at an address of its own, or on the listening socket that it was
 * handed. Rejects when it cannot listen.
 */
export async function runPersonality(configuration: ProcessConfiguration): Promise<void> {
  const { name, role, personality } = configuration;
  const create = await creators[role]?.();
  if (create === undefined || personality === undefined)
    throw new Error(`"${name}" has the role "${role}", which is no personality, or no part "personality"`);
  const observer = createObserver(name);
  logFatalErrors(observer);
  await certify(configuration, observer);
  const app = create(configuration, observer, personality.listen === undefined ? undefined : overTls(configuration));
  await listenAt(app, personality);
  const { listen, listenFd, inside } = personality;
  const endInside = inside === undefined ? null : await listenInside(app, configuration, inside);
  stopAtSignals(async () => {
    endInside?.();
    await app.close();
  });
  const where = listen === undefined ? { fd: listenFd ?? null } : { address: listen.address, port: listen.port };
  observer.log("personality/listening", { ...where, pid: process.pid });
}
