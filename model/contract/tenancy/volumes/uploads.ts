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
const uploadSource = record<UploadSource>({ url: text(2048), format, sha256 });

export const uploadRoutes = {
  listUploads: route("GET /uploads", "tenant", "gateway", {
    doc: "What the asker's account has brought, and no persistent volume was made of yet.",
    query: paged,
    answer: givesPages(upload),
  }),
  putUpload: route("PUT /uploads/{id}", "tenant", "gateway", {
    doc: "Brings bytes for a persistent volume. The body is the disk itself, with its `Content-Length`.",
    more: "The asker chooses `id`: 32 hexadecimal digits, at random. Asked for again it is the same upload. It is there as a whole or not at all: what breaks off, has another SHA-256 or is refused for what it is leaves nothing. An account has 4 at a time, each for a day; `addVolume` with `upload` makes a volume of one.",
    query: {
      format: {
        ...must(format, "It is declared, never guessed."),
        refusal: { code: "image/format", message: "the format must be declared: ?format=raw or ?format=qcow2" },
      },
      sha256: may(sha256, "What the bytes must have."),
    },
    body: { types: ["application/octet-stream"], schema: null },
    answer: gives(upload),
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
