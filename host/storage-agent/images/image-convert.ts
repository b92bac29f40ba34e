import { randomInt } from "node:crypto";
import { chmod, chown, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { imageIdentity } from "../../drivers/unix-users.ts";
import { HostileImage, type ImageFormat, type ImageShape, inspectImage } from "./image-header.ts";
import { runSandboxed, type SandboxEnd, type SandboxLimits, type SandboxOptions } from "./image-sandbox.ts";
import { MiB } from "./qcow2.ts";

export interface ConvertLimits extends Omit<SandboxLimits, "outputBytes"> {
  /** Of the disk inside the image. */
  readonly virtualMiB: number;
  /** Of the file that comes of it. */
  readonly outputMiB: number;
}
export interface ConvertOptions {
  /** Ours alone; holds the upload, the result and the sandbox's mount point. */
  readonly directory: string;
  /** Name of the upload in `directory`. */
  readonly upload: string;
  readonly format: ImageFormat;
  /** Name of the result in `directory`. */
  readonly result: string;
  readonly limits: ConvertLimits;
  readonly cgroups?: readonly string[];
  readonly signal?: AbortSignal;
}

/**
 * Makes our own qcow2 of an upload, owned by this process's user. Throws `HostileImage` for what is wrong with the upload;
 * then there is no result.
 *
 * `qemu-img check` runs first: it finds a truncated file, whose missing clusters would silently be read as zeros, and
 * tables that contradict each other, as those of a decompression bomb do. The conversion is told every driver, and for
 * qcow2 that there is no backing file, so that nothing is left to probing or to the header.
 */
export async function convertImage(options: ConvertOptions): Promise<ImageShape> {
  const { directory, format, limits } = options;
  const upload = join(directory, options.upload);
  const result = join(directory, options.result);
  const shape = await inspectImage(upload, format, { virtualBytes: limits.virtualMiB * MiB });
  try {
    await (await open(result, "wx", 0o600)).close();
    const owner = imageIdentity(randomInt(2 ** 32));
    await chown(result, owner.uid, owner.gid);
    // Its directory is open to nobody else, and the sandbox has it on a read-only mount.
    await chmod(upload, 0o444);
    const sandbox: SandboxOptions = {
      mountPoint: join(directory, "root"),
      input: upload,
      output: result,
      owner,
      limits: { ...limits, outputBytes: limits.outputMiB * MiB },
      ...(options.cgroups === undefined ? {} : { cgroups: options.cgroups }),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    };
    if (format === "qcow2") judge(await runSandboxed(checkCommand, sandbox), limits, true);
    judge(await runSandboxed(convertCommand(format), sandbox), limits, false);
    await chown(result, process.getuid?.() ?? 0, process.getgid?.() ?? 0);
    await chmod(result, 0o600);
    // What came out was in the reach of what came in: it is believed no more than that.
    const made = await inspectImage(result, "qcow2", { virtualBytes: limits.virtualMiB * MiB });
    if (made.virtualBytes !== Math.ceil(shape.virtualBytes / 512) * 512)
      throw new HostileImage(`its conversion has ${made.virtualBytes} bytes in place of ${shape.virtualBytes}`);
    return made;
  } catch (error) {
    await rm(result, { force: true });
    throw error;
  }
}

const source = (format: ImageFormat): string => {
  const file = { driver: "file", filename: "/input" };
  return `json:${JSON.stringify(format === "raw" ? { driver: "raw", file } : { driver: "qcow2", backing: null, file })}`;
};
const checkCommand: readonly string[] = ["qemu-img", "check", "-q", source("qcow2")];
/** What is run in the sandbox, whose files are `/input` and `/output`. */
export const convertCommand = (format: ImageFormat): readonly string[] => [
  "qemu-img",
  "convert",
  "-O",
  "qcow2",
  "-o",
  "compat=1.1,cluster_size=65536,lazy_refcounts=off",
  source(format),
  "/output",
];

/** `qemu-img check` ends with 3 where clusters are merely lost. */
const harmless = (exitCode: number | null, checking: boolean): boolean =>
  exitCode === 0 || (checking && exitCode === 3);

function judge({ exitCode, how, stdout, stderr }: SandboxEnd, limits: ConvertLimits, checking: boolean): void {
  const doing = checking ? "checking" : "converting";
  const said = plain(`${stderr}\n${stdout}`);
  if (how === "aborted") throw new Error(`${doing} it was broken off`);
  if (how === "too-long")
    throw new HostileImage(`${doing} it took more than ${limits.wallSeconds} s, the longest that is allowed here`);
  if (how === "cpu")
    throw new HostileImage(
      `${doing} it took more than ${limits.cpuSeconds} s of CPU time, the most that is allowed here`,
    );
  if (how === "memory-or-fault" || /Cannot allocate memory/.test(said))
    throw new HostileImage(`${doing} it took more memory than ${limits.memoryMiB} MiB, or broke the tool${said}`);
  if (harmless(exitCode, checking)) return;
  if (/No space left on device/i.test(said)) throw new Error("this server has no space left for it");
  if (how === "output" || /File too large/i.test(said))
    throw new HostileImage(`${doing} it made more than ${limits.outputMiB} MiB, the most that is allowed here`);
  if (checking && exitCode === 2)
    throw new HostileImage(`its tables contradict each other, or it is cut off (\`qemu-img check\` tells)${said}`);
  throw new HostileImage(`${doing} it failed${said}`);
}

/** A tool's last words about a stranger's file: printable, and not too many. */
function plain(text: string): string {
  const line = text
    .split("\n")
    .map((each) => each.replace(/[^\x20-\x7e]/g, "?").trim())
    .filter((each) => each !== "")[0];
  return line === undefined ? "" : `: ${line.replace(/^qemu-img: /, "").slice(0, 200)}`;
}
