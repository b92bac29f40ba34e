import { rmSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { type FastifyInstance, type FastifyServerFactory, fastify } from "fastify";
import type { Refusal } from "../../model/api.ts";
import { match } from "../../model/contract/match.ts";
import { refuseUpgrade } from "../../runtime/http/websocket-hop.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import type { Observer } from "../../runtime/observation/observer.ts";
import { addressOf } from "../../runtime/transport/admission.ts";
import { RefusedError, refused } from "../requests/refused.ts";
import { type Contract, createContract } from "../shared/contract.ts";
import { boundDoor } from "../shared/door.ts";
import { createLimits, type Limits } from "../shared/limits.ts";
import { createPrimary, credentialIn } from "./volumes/primary.ts";
import { openIndex } from "./volumes/search.ts";
import { serveVolumes } from "./volumes/serve.ts";
import { createVolumes } from "./volumes/volumes.ts";

/*
 * CaaS, the personality for users who make cells themselves (Section IV.C of the Cells paper): the whole published contract, which
 * it passes on to the gateway as it comes, with the credential of whoever asks, and persistent volumes, which it keeps in a part
 * of the primary cell.
 */

const bodyLimitBytes = 1024 * 1024;

/** So long, or until its client leaves. */
const stays = (outgoing: ServerResponse | Duplex, ms: number): Promise<void> =>
  new Promise((resolve) => {
    const over = (): void => {
      clearTimeout(timer);
      outgoing.off("close", over);
      resolve();
    };
    const timer = setTimeout(over, ms);
    outgoing.once("close", over);
  });
const beginIn = (limits: Limits, { headers, socket }: IncomingMessage) =>
  limits.begin(headers.authorization ?? headers.cookie ?? "", addressOf(socket));
/** Those that give a session to whoever shows what it is given for, and to nobody else. */
const logins: ReadonlySet<string> = new Set(["logIn", "logInSigned"]);

/** A request that leaves HTTP is one of its client's as well. Whose it is, the gateway does not say of it. */
const measured =
  (limits: Limits, passOn: Contract["passUpgradeOn"]): Contract["passUpgradeOn"] =>
  (incoming, socket, head) => {
    const begun = beginIn(limits, incoming);
    if (!("waitS" in begun)) return passOn(incoming, socket, head);
    // Nobody else reads it, and what is not read never ends.
    socket.resume();
    if (begun.laterMs === null) socket.destroy();
    else
      void stays(socket, begun.laterMs).then(() =>
        refuseUpgrade(socket, 503, "busy", "more is asked from here than this door answers"),
      );
  };

/** Ready to listen, by `serve` where it is there. @param nowMs by which clients are measured */
export function createCaas(
  configuration: ProcessConfiguration,
  { log }: Pick<Observer, "log">,
  serve?: FastifyServerFactory,
  given?: Contract,
  nowMs: () => number = () => performance.now(),
): FastifyInstance {
  const { directory, personality } = configuration;
  const app = fastify({
    bodyLimit: bodyLimitBytes,
    forceCloseConnections: true,
    routerOptions: { maxParamLength: 512 },
    ...(serve === undefined ? {} : { serverFactory: serve }),
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  const limits = createLimits(nowMs);
  const contract = given ?? createContract(configuration, limits.belongs);
  app.addHook("onRequest", async (request, reply) => {
    const begun = beginIn(limits, request.raw);
    if ("waitS" in begun) {
      if (begun.laterMs === null) request.raw.destroy();
      else await stays(reply.raw, begun.laterMs);
      reply.header("retry-after", String(begun.waitS));
      throw refused(429, "busy", "more is asked from here than this door answers");
    }
    const { route, name = "" } = match(request.method, request.url) ?? {};
    reply.raw.once("close", () =>
      begun.answered(reply.raw.headersSent ? reply.raw.statusCode : null, logins.has(name)),
    );
    if (route?.at === "caas") return;
    reply.hijack();
    await contract.passOn(request.raw, reply.raw);
  });
  boundDoor(app.server, measured(limits, contract.passUpgradeOn));
  app.setErrorHandler((error, _request, reply) => {
    const known = error as { readonly statusCode?: number; readonly message?: string };
    const status = known.statusCode ?? 500;
    // The cause may hold what is none of the client's business; it goes to this process's own log.
    if (status >= 500 && !(error instanceof RefusedError))
      log("personality/failed", { why: known.message ?? String(error) });
    const refusal: Refusal["error"] =
      error instanceof RefusedError
        ? error.refusal
        : status === 413
          ? { code: "too-large", message: "the body is larger than the 1 MiB that one here may have" }
          : status < 500
            ? { code: "bad-request", message: known.message ?? "the request is not valid HTTP" }
            : { code: "internal", message: "CaaS failed to answer this request; its log says why" };
    if (refusal.code === "busy" && !reply.hasHeader("retry-after")) reply.header("retry-after", "1");
    reply.code(status).type("application/json").send({ error: refusal });
  });
  // What is found in it is made from the model each time anew: it may be deleted at any moment.
  const file = join(directory, "volumes.sqlite");
  rmSync(file, { force: true });
  const index = openIndex(file);
  const primary = createPrimary(contract, credentialIn(personality?.credentialFile));
  serveVolumes(app, contract, createVolumes({ primary, index, nowMs: Date.now }));
  app.addHook("onClose", async () => {
    contract.close();
    index.close();
  });
  return app;
}
