import { gives, may, must, type Route, route, sends } from "../../route.ts";
import { integer, oneOf, pattern, record, text } from "../../schema.ts";
import { givesPages, paged } from "../paged.ts";

/*
 * Bytes of somebody's own that a persistent volume is made of: they are brought first, by him or from a URL, and wait for a day. The gateway takes
 * them, since it alone speaks with storage servers; the volume itself is CaaS' (`volume-routes.ts`).
 */
export interface Upload {
  /** As who brought it chose it. */
  readonly id: string;
  /** Of the bytes as they came. */
  readonly sha256: string;
  /** Of a volume that is made of it, at least. */
  readonly sizeMiB: number;
  /** Image that it is as long as it waits, for the cell of the persistent volumes alone. */
  readonly image: string;
}
/** What has come of one that broke off. */
export interface UploadPart {
  readonly id: string;
  readonly format: "raw" | "qcow2";
  /** Octets of the whole. */
  readonly length: number;
  /** Octets that are there: it goes on with the next. */
  readonly offset: number;
  /** Of these. */
  readonly sha256: string;
}
/** Of `Content-Range` (RFC 9110, section 14.4). */
export interface Rest {
  readonly from: number;
  readonly length: number;
}
/** Null: it is none up to the end. */
export function restIn(written: string): Rest | null {
  const [, from, to, length] = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/.exec(written)?.map(Number) ?? [];
  if (from === undefined || to === undefined || length === undefined) return null;
  return from <= to && to === length - 1 ? { from, length } : null;
}
export const restAsWritten = ({ from, length }: Rest): string => `bytes ${from}-${length - 1}/${length}`;
export interface UploadSource {
  /** `http` or `https`, of what everybody on the Internet reaches. */
  readonly url: string;
  readonly format: "raw" | "qcow2";
  readonly sha256: string;
}

export const uploadIdPattern = /^[0-9a-f]{32}$/;
export const uploadId = pattern(uploadIdPattern, "32 hexadecimal digits, chosen at random for each upload");
const sha256 = pattern(/^[0-9a-f]{64}$/, "a SHA-256: 64 hexadecimal digits, in lower case");
const format = oneOf("raw", "qcow2");
export const upload = record<Upload>({ id: text(), sha256: text(), sizeMiB: integer(), image: text() });
export const uploadPart = record<UploadPart>({
  id: text(),
  format,
  length: integer(),
  offset: integer(),
  sha256: text(),
});
const uploadSource = record<UploadSource>({ url: text(2048), format, sha256 });

export const uploadRoutes = {
  listUploads: route("GET /uploads", "tenant", "gateway", {
    doc: "What the asker's account has brought, and no persistent volume was made of yet.",
    query: paged,
    answer: givesPages(upload),
  }),
  putUpload: route("PUT /uploads/{id}", "tenant", "gateway", {
    doc: "Brings bytes for a persistent volume. The body is the disk itself, with its `Content-Length`.",
    more: "The asker chooses `id`: 32 hexadecimal digits, at random. Asked for again it is the same upload. It is there as a whole or not at all: what has another SHA-256 or is refused for what it is leaves nothing. Of what breaks off a storage server keeps what came, from 1 MiB on and for an hour, 2 of an account: `readUpload` says how far it is, and the rest is sent with `Content-Range`. Where nothing is kept any more the rest is 409; send it from its beginning. An account has 4 at a time, each for a day; `addVolume` with `upload` makes a volume of one.",
    query: {
      format: {
        ...must(format, "It is declared, never guessed."),
        refusal: { code: "image/format", message: "the format must be declared: ?format=raw or ?format=qcow2" },
      },
      sha256: may(sha256, "What the bytes must have."),
    },
    headers: {
      "Content-Range": {
        schema: text(),
        doc: "`bytes FROM-LAST/LENGTH`: the body is the rest, from the offset that `readUpload` gave to the end. `sha256` stays that of the whole.",
      },
    },
    body: { types: ["application/octet-stream"], schema: null },
    answer: gives(upload),
  }),
  readUpload: route("GET /uploads/{id}", "tenant", "gateway", {
    doc: "How far an upload came that broke off: `offset` octets of `length`, whose SHA-256 tells whether they are the beginning of what the asker has.",
    more: "404: nothing is kept, or it is there as a whole (`listUploads`). 409: the gateway does not know yet that it broke off, or it is being converted; ask again a little later.",
    answer: gives(uploadPart),
  }),
  fetchUpload: route("POST /uploads/{id}", "tenant", "gateway", {
    doc: "The same with bytes that the gateway fetches from a URL, which everybody on the Internet reaches.",
    more: "Answered once they are there. Redirects are not followed, the answer has to be 200 with a `Content-Length`, and who sends slower than 16 KiB in 15 s is given up. Where the asker leaves before, nothing stays.",
    body: sends(uploadSource),
    answer: gives(upload),
  }),
  removeUpload: route("DELETE /uploads/{id}", "tenant", "gateway", {
    doc: "Takes one away. Volumes that were made of it are copies, and stay.",
    answer: gives(record<{ readonly removed: string }>({ removed: text() })),
  }),
} as const satisfies { readonly [name: string]: Route };
