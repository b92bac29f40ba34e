import { randomBytes } from "node:crypto";
import { addressOf } from "../../../model/contract/client/client.ts";
import type { Upload } from "../../../model/contract/tenancy/volumes/uploads.ts";
import type { Client } from "../../connection/client.ts";
import { formatOf, type ImageFormat, readHead } from "../../connection/image-format.ts";
import { askLong, sendFile } from "../../connection/upload.ts";
import type { Context } from "../../context/context.ts";
import { bytesOf, formatIn, showingSent } from "../../output/sending.ts";
import { usage } from "../../terminal/failure.ts";

/* Bytes for a persistent volume, of a file here or behind a URL. They are brought before the volume is asked for. */

export interface Brought {
  readonly upload?: string;
  readonly url?: string;
  readonly sha256?: string;
  readonly format?: string;
}

/** Null: nothing is to be brought. */
export async function bring(
  context: Context,
  client: Client,
  { upload: file, url, sha256: written, format: declared }: Brought,
): Promise<Upload | null> {
  if (file !== undefined && url !== undefined) throw usage("--upload and --url both say where the bytes are: give one");
  const sha256 = written?.toLowerCase();
  if (sha256 !== undefined && !/^[0-9a-f]{64}$/.test(sha256)) throw usage("--sha256 has 64 hexadecimal digits");
  const format = formatIn(declared);
  const id = randomBytes(16).toString("hex");
  if (url !== undefined) {
    if (sha256 === undefined) throw usage("--url needs --sha256: what the bytes must have, whoever sends them");
    if (format === undefined) throw usage("--url needs --format raw or --format qcow2: it is declared, never guessed");
    const body = { url, format, sha256 };
    return client.apart(addressOf("fetchUpload", { id }, {}), (at, credential) =>
      askLong(at, credential, { method: "POST", body }),
    );
  }
  if (file !== undefined) return send(context, client, id, { file, sha256, format });
  if (sha256 !== undefined || format !== undefined) throw usage("--sha256 and --format are of --upload or --url");
  return null;
}

async function send(
  context: Context,
  client: Client,
  id: string,
  {
    file,
    sha256,
    format,
  }: { readonly file: string; readonly sha256: string | undefined; readonly format?: ImageFormat | undefined },
): Promise<Upload> {
  const bytes = await bytesOf(file, "a volume is made of a file");
  const seen = format === undefined ? formatOf(await readHead(file)) : null;
  if (seen?.ok === false) throw usage(`${file} ${seen.error}`);
  const known = format ?? seen?.value ?? "raw";
  const address = addressOf("putUpload", { id }, { format: known, sha256 });
  return showingSent(context, bytes, (onProgress) =>
    client.apart<Upload>(address, (url, credential) => sendFile(url, credential, { file, bytes, onProgress })),
  );
}
