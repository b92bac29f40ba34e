import { gives, route, sends } from "../route.ts";
import { integer, list, nullable, optional, pattern, record, text, time } from "../schema.ts";

/** `/page/certificate`: by which browsers know the page, beside the installation's own by which clients know the gateway. */
export interface PageCertificate {
  /** Null: none is in force. */
  readonly certificate: {
    readonly names: readonly string[];
    readonly issuer: string;
    readonly from: string;
    /** When the first of it and those that vouch for it ends, ISO 8601. */
    readonly until: string;
    /** How many certificates are shown, its own too. */
    readonly chain: number;
  } | null;
  /** Of the request that waits for its answer; null: none does. */
  readonly asked: readonly string[] | null;
  /** Why what was kept is not in force. */
  readonly fault?: string;
}
export interface PageCertificateRequest {
  readonly names: readonly string[];
  /** PKCS#10, PEM. */
  readonly request: string;
}
export interface PageNames {
  readonly names: readonly string[];
}
export interface PageChain {
  /** PEM: the page's own first, each vouched for by the next. */
  readonly chain: string;
}

/** Of a host (RFC 1123), in full: one label alone is nobody's outside. */
const hostName = pattern(
  /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,8}[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/,
  "a name of a host in full and in small letters, as cells.example.com",
);
export const pageNames = record<PageNames>({ names: list(hostName, { least: 1, most: 16 }) }, "PageNames");
export const pageChain = record<PageChain>({ chain: text(64 * 1024) }, "PageChain");
export const pageCertificateRequest = record<PageCertificateRequest>(
  { names: list(text()), request: text() },
  "PageCertificateRequest",
);
export const pageCertificate = record<PageCertificate>(
  {
    certificate: nullable(
      record<NonNullable<PageCertificate["certificate"]>>({
        names: list(text()),
        issuer: text(),
        from: time,
        until: time,
        chain: integer(1),
      }),
    ),
    asked: nullable(list(text())),
    fault: optional(text()),
  },
  "PageCertificate",
);

export const pageCertificateRoutes = {
  readPageCertificate: route("GET /page/certificate", "operator", "gateway", {
    doc: "The page's certificate of one's own, which browsers know, and what was asked for. Clients that know the gateway by an address, or by a name of the installation's certificate, are shown that one.",
    answer: gives(pageCertificate),
  }),
  requestPageCertificate: route("POST /page/certificate/request", "operator", "gateway", {
    doc: "A request (PKCS#10) for a certificate for these names, over a key that stays at the gateway. Asked again for the same names before it is answered, it is over the same key. What is in force stays so meanwhile. 400: the installation's own certificate is for such a name.",
    body: sends(pageNames),
    answer: gives(pageCertificateRequest),
  }),
  setPageCertificate: route("PUT /page/certificate", "operator", "gateway", {
    doc: "Puts the answer in force, at once and for new connections: the certificate, and behind it those that vouch for it. 409, with nothing changed: it is over another key, lacks a name that was asked for, is expired or not valid yet, or its chain has a gap.",
    body: sends(pageChain),
    answer: gives(pageCertificate),
  }),
  forgetPageCertificate: route("DELETE /page/certificate", "operator", "gateway", {
    doc: "Takes it out of force and forgets its key, and the request that waits. Everybody is shown the installation's certificate then.",
    answer: gives(pageCertificate),
  }),
};
