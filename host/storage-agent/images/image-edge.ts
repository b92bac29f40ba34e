import type { ServerResponse } from "node:http";
import { mayAsk } from "../../../core/documents/permissions.ts";
import { isUpload } from "../../../model/cell/image-name.ts";
import type { AuditEntry } from "../../../model/contract/audit/audit.ts";
import type { PeerRequest } from "../../../runtime/http/peer-handler.ts";
import { askedBy } from "../../../runtime/observation/asked-by.ts";
import type { ImageRefusal, ImageStore } from "./image-store.ts";
import { type ImagePlaces, listImages } from "./images.ts";

/** As the gateway sees one server's image. */
export interface ServerImage {
  readonly name: string;
  readonly digest: string;
  readonly sizeMiB: number;
  readonly provided: boolean;
}

const answer = (response: ServerResponse, status: number, body: unknown): void => {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
};
const refuse = (response: ServerResponse, { status, code, message }: ImageRefusal | Refusal): void =>
  answer(response, status, { error: { code, message } });
interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

/**
 * What an agent answers below `/images`, to the gateway alone:
 *
 * GET    /images                              → ServerImage[]
 * PUT    /images/<name>?format=raw|qcow2[&replace=true]  body: the bytes → StagedImage; nothing is visible yet
 *        …&keep=true                          → what has come stays for a while where it breaks off
 *        …&from=<octets>&of=<octets>          body: the rest of what is here since then, `of` so many in all
 * GET    /images/<name>                       → PartShown, what is here since an upload broke off
 * POST   /images/<name>?staged=<id>[&replace=true]       → StagedImage: now it is there
 * DELETE /images/<name>?staged=<id>           → the staged image is dropped
 * DELETE /images/<name>                       → the image is deleted
 *
 * What is refused for its size, its name or the room that there is: `image-store.ts`; for what is in it: `image-header.ts`,
 * `image-convert.ts`. Answers false when the request is none of these.
 */
export const createImageEdge =
  (places: ImagePlaces, store: ImageStore, record: Recording) =>
  async (request: PeerRequest, response: ServerResponse): Promise<boolean> => {
    const url = new URL(request.url, "https://agent");
    const match = /^\/images(?:\/([^/]+))?$/.exec(url.pathname);
    if (match === null) return false;
    if (!mayAsk("agent", request.peer, request.method, url.pathname)) {
      refuse(response, {
        status: 403,
        code: "agent/refused",
        message: `"${request.peer}" has nothing to do with images`,
      });
      return true;
    }
    const name = match[1] === undefined ? null : decodeName(match[1]);
    if (name === null && request.method === "GET") answer(response, 200, await list(places));
    else if (name === null) refuse(response, wrongMethod(request.method));
    else await onImage(store, record, { name, parameters: url.searchParams, request }, response);
    return true;
  };

function decodeName(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // No name has a `%`, so it will be refused as what it is.
    return text;
  }
}

async function list(places: ImagePlaces): Promise<readonly ServerImage[]> {
  return (await listImages(places)).map(({ manifest, provided }) => {
    const { name, digest, sizeMiB } = manifest;
    return { name, digest, sizeMiB, provided };
  });
}

/** Before it is done, and durable then. */
type Recording = (entry: AuditEntry) => Promise<void>;
interface ImageRequest {
  readonly name: string;
  readonly parameters: URLSearchParams;
  readonly request: PeerRequest;
}

async function onImage(
  store: ImageStore,
  record: Recording,
  what: ImageRequest,
  response: ServerResponse,
): Promise<void> {
  const { name, parameters, request } = what;
  const id = parameters.get("staged");
  const replace = parameters.get("replace") === "true";
  if (request.method === "PUT") {
    const format = parameters.get("format");
    if (format !== "raw" && format !== "qcow2") return refuse(response, wrongFormat(format));
    const comes = Number(request.headers["content-length"] ?? Number.NaN);
    if (!Number.isSafeInteger(comes)) return refuse(response, lengthNeeded);
    const [from, length] = [Number(parameters.get("from") ?? 0), Number(parameters.get("of") ?? comes)];
    if (!Number.isSafeInteger(from) || from < 0 || length - from !== comes) return refuse(response, noRest);
    const keep = parameters.get("keep") === "true";
    const staged = await store.stage({ name, format, replace, length, from, keep, body: request.body });
    if (staged.ok) answer(response, 200, staged.value);
    else refuse(response, staged.error);
  } else if (request.method === "GET") {
    const part = store.part(name);
    if (part.ok) answer(response, 200, part.value);
    else refuse(response, part.error);
  } else if (request.method === "POST" && id !== null) {
    await record(
      askedBy(request, {
        verb: isUpload(name) ? "putUpload" : "addImage",
        target: name,
        ...(replace ? { what: "replaced" } : {}),
      }),
    );
    const accepted = await store.accept(id, replace);
    if (accepted.ok) answer(response, 200, accepted.value);
    else refuse(response, accepted.error);
  } else if (request.method === "DELETE" && id !== null) {
    await store.discard(id);
    answer(response, 200, {});
  } else if (request.method === "DELETE") {
    await record(askedBy(request, { verb: isUpload(name) ? "removeUpload" : "removeImage", target: name }));
    const refusal = await store.remove(name);
    if (refusal === null) answer(response, 200, {});
    else refuse(response, refusal);
  } else refuse(response, wrongMethod(request.method));
}

const wrongMethod = (method: string): Refusal => ({
  status: 405,
  code: "agent/refused",
  message: `there is no ${method} here; images know GET, PUT, POST and DELETE`,
});
const wrongFormat = (format: string | null): Refusal => ({
  status: 400,
  code: "image/format",
  message: `the format must be declared: raw or qcow2${format === null ? "" : `, not "${format.slice(0, 40)}"`}`,
});
const noRest: Refusal = {
  status: 400,
  code: "agent/refused",
  message: "the body is as long as what is left of all behind `from`",
};
const lengthNeeded: Refusal = {
  status: 411,
  code: "image/length",
  message: "an upload announces its length: Content-Length is missing",
};
