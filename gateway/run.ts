import { certify } from "../runtime/identity/own/certify.ts";
import { followPeers } from "../runtime/identity/own/peers-follow.ts";
import type { ProcessConfiguration } from "../runtime/installation.ts";
import { stopAtSignals } from "../runtime/life/signals.ts";
import { createObserver, logFatalErrors } from "../runtime/observation/observer.ts";
import { ownNames } from "./edge/own-names.ts";
import { passOn } from "./edge/pass-on.ts";
import { createGateway } from "./gateway.ts";
import { openOwnCertificate } from "./page/certificate/kept.ts";
import { listenAt, listenInside, overTls } from "./shared/listen.ts";

/**
 * Runs the gateway until a signal ends the process: on the listening socket that it was handed, or over TLS at an address
 * of its own. Rejects when it cannot listen.
 */
export async function runGateway(configuration: ProcessConfiguration): Promise<void> {
  const { listen, listenFd, inside, passes = [] } = configuration.gateway ?? {};
  const observer = createObserver(configuration.name);
  logFatalErrors(observer);
  await certify(configuration, observer);
  if (configuration.followPeers === true) await followPeers(configuration, observer);
  const own = listen === undefined ? undefined : openOwnCertificate(configuration.directory, ownNames(configuration));
  const serve = own === undefined ? undefined : overTls(configuration, own.contextFor);
  const app = createGateway(configuration, observer, { serve, certificate: own });
  await listenAt(app, { ...(listen === undefined ? {} : { listen }), ...(listenFd === undefined ? {} : { listenFd }) });
  const endInside = inside === undefined ? null : await listenInside(app, configuration, inside);
  const passing = passes.map((each) => passOn(each, (why) => observer.log("gateway/pass", { at: each.at, why })));
  stopAtSignals(async () => {
    endInside?.();
    for (const { close } of passing) close();
    await app.close();
  });
  const where = listen === undefined ? { fd: listenFd ?? null } : { address: listen.address, port: listen.port };
  observer.log("gateway/listening", { ...where, pid: process.pid });
}
