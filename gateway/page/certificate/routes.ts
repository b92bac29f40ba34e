import type { FastifyInstance } from "fastify";
import { refused } from "../../requests/refused.ts";
import { serveRoute } from "../../requests/serve.ts";
import type { OwnCertificate } from "./kept.ts";

/** `/page/certificate`: the page's certificate of one's own, for the operator. @param own null: it speaks no TLS itself */
export function registerOwnCertificate(app: FastifyInstance, own: OwnCertificate | null): void {
  const there = (): OwnCertificate => {
    if (own !== null) return own;
    throw refused(
      409,
      "page-certificate/no-tls",
      "this gateway was handed its socket and speaks no TLS there: whoever stands before it has the certificate",
    );
  };
  serveRoute(app, "readPageCertificate", () => there().state());
  serveRoute(app, "requestPageCertificate", ({ body }) => there().request([...new Set(body?.names ?? [])]));
  serveRoute(app, "setPageCertificate", ({ body }) => there().install(body?.chain ?? ""));
  serveRoute(app, "forgetPageCertificate", () => there().forget());
}
