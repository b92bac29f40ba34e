import { createHash, randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { addressOf } from "../../../model/contract/client/client.ts";
import {
  isOfTheWay,
  type RefusedUpload,
  bring as resumed,
  stalledMs,
  unreachable,
  type Wires,
} from "../../../model/contract/tenancy/volumes/resuming.ts";
import { restAsWritten, type Upload, uploadIdPattern } from "../../../model/contract/tenancy/volumes/uploads.ts";
import { type Client, Refused } from "../../connection/client.ts";
import { formatOf, type ImageFormat, readHead } from "../../connection/image-format.ts";
import { askLong, sendFile } from "../../connection/upload.ts";
import type { Context } from "../../context/context.ts";
import { bytesOf, formatIn, showingSent } from "../../output/sending.ts";
import { CommandFailure, exitCodes, usage } from "../../terminal/failure.ts";
import { leavable } from "../../terminal/interrupted.ts";

/*
 * Bytes for a persistent volume, of a file here or behind a URL. They are brought before the volume is asked for. Where the connection breaks
 * a file's go on where they did, as long as that brings them further.
 */

export interface Brought {
  readonly upload?: string;
  readonly url?: string;
  readonly sha256?: string;
  readonly format?: string;
  /** Number of an upload of the same file that was not done. */
  readonly resume?: string;
}

/** Null: nothing is to be brought. @param pause for tests */
export async function bring(
  context: Context,
  client: Client,
  { upload: file, url, sha256: written, format: declared, resume }: Brought,
  pause: Wires["pause"] = sleep,
): Promise<Upload | null> {
  if (file !== undefined && url !== undefined) throw usage("--upload and --url both say where the bytes are: give one");
  const sha256 = written?.toLowerCase();
  if (sha256 !== undefined && !/^[0-9a-f]{64}$/.test(sha256)) throw usage("--sha256 has 64 hexadecimal digits");
  const format = formatIn(declared);
  if (resume !== undefined && file === undefined) throw usage("--resume goes on with the file of --upload: say both");
  if (url !== undefined) {
    if (sha256 === undefined) throw usage("--url needs --sha256: what the bytes must have, whoever sends them");
    if (format === undefined) throw usage("--url needs --format raw or --format qcow2: it is declared, never guessed");
    const body = { url, format, sha256 };
    return client.apart(addressOf("fetchUpload", { id: idOf(undefined) }, {}), (at, credential) =>
      askLong(at, credential, { method: "POST", body }),
    );
  }
  if (file !== undefined) return send(context, client, { file, sha256, format, resume, pause });
  if (sha256 !== undefined || format !== undefined) throw usage("--sha256 and --format are of --upload or --url");
  return null;
}

/** As `uploads.ts` of the contract has it. @param written by a command before; undefined: it is another one */
function idOf(written: string | undefined): string {
  if (written === undefined) return randomBytes(16).toString("hex");
  if (uploadIdPattern.test(written)) return written;
  throw usage(`--resume has the 32 hexadecimal digits that a command said before, not \`${written}\``);
}

interface ToSend {
  readonly file: string;
  readonly sha256: string | undefined;
  readonly format: ImageFormat | undefined;
  readonly resume: string | undefined;
  readonly pause: Wires["pause"];
}
async function send(
  context: Context,
  client: Client,
  { file, sha256, format, resume, pause }: ToSend,
): Promise<Upload> {
  const id = idOf(resume);
  const bytes = await bytesOf(file, "a volume is made of a file");
  const seen = format === undefined ? formatOf(await readHead(file)) : null;
  if (seen?.ok === false) throw usage(`${file} ${seen.error}`);
  const known = format ?? seen?.value ?? "raw";
  const sending = { id, file, bytes, format: known, sha256, begun: resume !== undefined, pause };
  return showingSent(context, bytes, (onProgress) =>
    leavable(later(id), sendOn(context, client, { ...sending, onProgress })),
  );
}
/** What somebody should know whose file is not there. */
const later = (id: string): string =>
  `what came of it is kept for an hour: the same command with --resume ${id} goes on with it`;

interface Sending {
  readonly id: string;
  readonly file: string;
  readonly bytes: number;
  readonly format: ImageFormat;
  readonly sha256: string | undefined;
  readonly begun: boolean;
  readonly pause: Wires["pause"];
  readonly onProgress: (sentBytes: number) => void;
}
const MiB = 1024 * 1024;

const refusalIn = (error: unknown): RefusedUpload | null =>
  error instanceof Refused
    ? error
    : error instanceof CommandFailure && error.exitCode === exitCodes.unreachable
      ? unreachable
      : null;

async function sendOn(context: Context, client: Client, sending: Sending): Promise<Upload> {
  const { id, bytes, format, begun } = sending;
  let isBegun = begun;
  try {
    return await resumed(wiresOf(client, sending), {
      bytes,
      format,
      begun,
      told: (at) => {
        isBegun = true;
        sending.onProgress(at);
      },
      goesOn: (from, why) => {
        const at = `it goes on at ${(from / MiB).toFixed(1)} MiB`;
        const broke = why === null ? null : `the connection broke (${(why as Error).message.split(":")[0]})`;
        context.terminal.warn(
          broke !== null
            ? `${broke}: ${at}`
            : from === 0
              ? `nothing is kept of the upload ${id}, or it is the beginning of another file: it is sent from its beginning`
              : at,
        );
      },
    });
  } catch (error) {
    const refusal = refusalIn(error);
    if (!isBegun || refusal === null || !isOfTheWay(refusal, true)) throw error;
    const { exitCode, message } = error as CommandFailure;
    throw new CommandFailure(exitCode, `${message}; ${later(id)}`);
  }
}

const wiresOf = (client: Client, { id, file, bytes, format, sha256, begun, pause }: Sending): Wires => ({
  send: (from, onProgress) =>
    client.apart<Upload>(addressOf("putUpload", { id }, { format, sha256 }), (url, credential) =>
      sendFile(url, credential, {
        file,
        bytes,
        from,
        stalledMs,
        onProgress,
        headers: from === 0 ? {} : { "content-range": restAsWritten({ from, length: bytes }) },
      }),
    ),
  whole: async () => {
    const found = (await client.all("listUploads")).find((each) => each.id === id) ?? null;
    // Its number was written by somebody, who may have meant another file.
    if (found !== null && begun && found.sha256 !== (await sha256Of(file, bytes)))
      throw usage(`the upload ${id} is there as a whole, and it is another file than ${file}: leave --resume out`);
    return found;
  },
  part: () => client.ask("readUpload", { parameters: { id } }),
  isBeginning: async (part) => part.sha256 === (await sha256Of(file, part.offset)),
  pause,
  refusalIn,
});

/** Of its first so many octets. */
async function sha256Of(file: string, octets: number): Promise<string> {
  const hash = createHash("sha256");
  if (octets > 0) await pipeline(createReadStream(file, { end: octets - 1 }), hash);
  return hash.digest("hex");
}
