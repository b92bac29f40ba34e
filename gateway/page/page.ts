import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { asFileOfPage } from "../requests/no-document.ts";
import { refused } from "../requests/refused.ts";
import { hostFault } from "../sign-in/page-request.ts";
import type { OwnCertificate } from "./certificate/kept.ts";
import { registerOwnCertificate } from "./certificate/routes.ts";

/**
 * The files of the page, below `/ui/`: a script is one of these files and nothing else, a style one of them or one that bears the nonce of
 * this answer, and nothing of the page is loaded from, sent to or framed by anybody but the gateway. What a tenant or a guest wrote is text to the page, and
 * stays text even where the page should err.
 */
const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
  ".txt": "text/plain; charset=utf-8",
};
const start = "index.html";
/** In `index.html`, where the nonce comes to stand. */
const place = "NONCE_OF_THIS_ANSWER";

const policy = (nonce: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    ...["connect-src", "img-src", "font-src", "worker-src"].map((what) => `${what} 'self'`),
    ...["base-uri", "form-action", "frame-src", "object-src", "frame-ancestors"].map((what) => `${what} 'none'`),
    "require-trusted-types-for 'script'",
    // One policy, made once, that gives the address of the page's own worker.
    "trusted-types cells",
  ].join("; ");
const always = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "x-frame-options": "DENY",
} as const;

interface PageFile {
  readonly bytes: Buffer;
  /** Null: it is not smaller. */
  readonly gzip: Buffer | null;
  readonly type: string;
}
function filesIn(directory: string): ReadonlyMap<string, PageFile> {
  const names = readdirSync(directory);
  const read = (name: string): Buffer => readFileSync(join(directory, name));
  return new Map(
    names.flatMap((name) => {
      const type = types[extname(name)];
      const compressed = `${name}.gz`;
      if (type === undefined) return [];
      return [[name, { bytes: read(name), gzip: names.includes(compressed) ? read(compressed) : null, type }]];
    }),
  );
}

export const isOfPage = (url: string): boolean => /^\/(?:ui(?:[/?]|$)|\?|$)/.test(url);

/** @param directory absent: this gateway has no page */
export function registerPage(
  app: FastifyInstance,
  directory: string | undefined,
  isOwnName: (name: string) => boolean,
  certificate?: OwnCertificate,
): void {
  registerOwnCertificate(app, certificate ?? null);
  const files = directory === undefined ? null : filesIn(directory);
  const serve = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (files === null) throw refused(404, "not-found", "this gateway has no page");
    const fault = hostFault(request.headers.host, isOwnName);
    if (fault !== null) throw fault;
    const [path = ""] = request.url.split("?", 1);
    if (path === "/" || path === "/ui") {
      reply
        .code(308)
        .headers({ ...always, location: "/ui/" })
        .send("");
      return;
    }
    const name = path.slice("/ui/".length);
    // Where the page itself goes to has no dot in its first part; a file has.
    const file = files.get(name === "" || !/^[^/]+\.\w+$/.test(name) ? start : name);
    if (file === undefined) throw refused(404, "not-found", "the page has no such file: it may be of another version");
    asFileOfPage(reply.raw);
    reply.type(file.type).headers(always);
    if (file === files.get(start)) {
      const nonce = randomBytes(16).toString("base64");
      reply.headers({ "content-security-policy": policy(nonce), "cache-control": "no-store" });
      reply.send(file.bytes.toString("utf8").replaceAll(place, nonce));
      return;
    }
    // Its name has a hash of what is in it.
    reply.headers({ "cache-control": "public, max-age=31536000, immutable", vary: "accept-encoding" });
    const takesGzip = /\bgzip\b/.test(String(request.headers["accept-encoding"]));
    if (file.gzip !== null && takesGzip) reply.header("content-encoding", "gzip").send(file.gzip);
    else reply.send(file.bytes);
  };
  for (const url of ["/", "/ui", "/ui/*"]) app.get(url, serve);
}
