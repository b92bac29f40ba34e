import { type FastifyInstance, type FastifyServerFactory, fastify } from "fastify";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import type { Observer } from "../../runtime/observation/observer.ts";
import { createContract } from "../shared/contract.ts";

/*
 * CaaS, the personality for users who make cells themselves (Section IV.C of the Cells paper): the whole published contract, which
 * it passes on to the gateway as it comes, with the credential of whoever asks.
 */

const bodyLimitBytes = 1024 * 1024;

/** Ready to listen, by `serve` where it is there. */
export function createCaas(
  configuration: ProcessConfiguration,
  _observer: Pick<Observer, "log">,
  serve?: FastifyServerFactory,
): FastifyInstance {
  const contract = createContract(configuration);
  const app = fastify({
    ...{ bodyLimit: bodyLimitBytes, forceCloseConnections: true },
    ...(serve === undefined ? {} : { serverFactory: serve }),
  });
  app.addHook("onRequest", async (request, reply) => {
    reply.hijack();
    await contract.passOn(request.raw, reply.raw);
  });
  app.server.on("upgrade", contract.passUpgradeOn);
  app.addHook("onClose", async () => contract.close());
  return app;
}
