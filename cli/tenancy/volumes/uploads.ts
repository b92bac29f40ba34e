import { createHash, randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { addressOf } from "../../../model/contract/client/client.ts";
import { isOfTheWay, mostTries, pauseMs, stalledMs } from "../../../model/contract/tenancy/volumes/resuming.ts";
import { restAsWritten, type Upload } from "../../../model/contract/tenancy/volumes/uploads.ts";
import { type Client, Refused } from "../../connection/client.ts";
import { formatOf, type ImageFormat, readHead } from "../../connection/image-format.ts";
import { askLong, sendFile } from "../../connection/upload.ts";
import type { Context } from "../../context/context.ts";
import { bytesOf, formatIn, showingSent } from "../../output/sending.ts";
import { CommandFailure, exitCodes, usage } from "../../terminal/failure.ts";

/*
 * Bytes for a persistent volume, of a file here or behind a URL. They are brought before the volume is asked for. Where the connection breaks
 * a file's go on where they did, as long as that brings them further.
 */

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
  const sending = { id, file, bytes, format: known, sha256 };
  return showingSent(context, bytes, (onProgress) => sendOn(context, client, { ...sending, onProgress }));
}

interface Sending {
  readonly id: string;
  readonly file: string;
  readonly bytes: number;
  readonly format: ImageFormat;
  readonly sha256: string | undefined;
  readonly onProgress: (sentBytes: number) => void;
}
const MiB = 1024 * 1024;

const hasBroken = (error: unknown, before: boolean): boolean =>
  error instanceof Refused
    ? isOfTheWay(error, before)
    : error instanceof CommandFailure && error.exitCode === exitCodes.unreachable;

async function sendOn(context: Context, client: Client, sending: Sending): Promise<Upload> {
  let [from, furthest, tries, sent, broke] = [0, 0, 0, false, false];
  for (;;) {
    try {
      return await sendFrom(client, from, { ...sending, onProgress: (at) => told(at) });
    } catch (error) {
      if (!sent || !hasBroken(error, broke)) throw error;
      broke = true;
      const next = await goesOnAt(client, sending, () => {
        tries += 1;
        return tries <= mostTries ? sleep(pauseMs(tries), true) : false;
      });
      if (next === null) throw error;
      if (typeof next !== "number") return next;
      if (next > furthest) [furthest, tries] = [next, 0];
      from = next;
      context.terminal.warn(
        `the connection broke (${(error as Error).message.split(":")[0]}): it goes on at ${(from / MiB).toFixed(1)} MiB`,
      );
    }
  }
  function told(at: number): void {
    sent = true;
    sending.onProgress(at);
  }
}

const sendFrom = (client: Client, from: number, { id, format, sha256, ...sending }: Sending): Promise<Upload> =>
  client.apart<Upload>(addressOf("putUpload", { id }, { format, sha256 }), (url, credential) =>
    sendFile(url, credential, {
      ...sending,
      from,
      stalledMs,
      headers: from === 0 ? {} : { "content-range": restAsWritten({ from, length: sending.bytes }) },
    }),
  );

/** The offset, or what is there as a whole since an answer was lost. Null: nobody says, however often he is asked. @param again waits before each try; false: no more */
async function goesOnAt(
  client: Client,
  { id, file, bytes, format }: Sending,
  again: () => Promise<true> | false,
): Promise<number | Upload | null> {
  for (let more = again(); more !== false; more = again()) {
    await more;
    try {
      const whole = (await client.all("listUploads")).find((each) => each.id === id);
      if (whole !== undefined) return whole;
      const part = await client.ask("readUpload", { parameters: { id } });
      const isOfFile =
        part.length === bytes && part.format === format && part.sha256 === (await sha256Of(file, part.offset));
      return isOfFile ? part.offset : 0;
    } catch (error) {
      // Nothing is kept of it, or the gateway is older and keeps nothing.
      if (error instanceof Refused && error.status === 404) return 0;
      if (!hasBroken(error, true)) throw error;
    }
  }
  return null;
}

/** Of its first so many octets. */
async function sha256Of(file: string, octets: number): Promise<string> {
  const hash = createHash("sha256");
  if (octets > 0) await pipeline(createReadStream(file, { end: octets - 1 }), hash);
  return hash.digest("hex");
}
