import { readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Arrival } from "./arrival.ts";
import { BadLine, type BadLines } from "./bad-lines.ts";
import { textLines } from "./text.ts";

/*
 * A trace of arrivals: a line for each period, `seconds flavour,flavour,|,…`, where `|` ends a batch of one tenant. Beside it lie
 * `NAME-durations.txt`, the same VMs in the same order (`U` and a bin: it ended within the trace; `C`, with a bin or none: it did not), `flavours.txt` (`cores,GB flavour`)
 * and `duration-bins.txt` (`seconds bin`, of each duration that is told apart).
 */

export interface Tables {
  readonly flavours: ReadonlyMap<string, Pick<Arrival, "cpus" | "memoryMiB">>;
  /** The shortest duration of each bin, in seconds. */
  readonly bins: ReadonlyMap<number, number>;
}

const whole = /^(0|[1-9]\d*)$/;
function numberOf(text: string, where: string, what: string, form: RegExp = whole): number {
  const number = Number(text);
  if (!form.test(text) || !Number.isSafeInteger(Math.ceil(number)))
    throw new BadLine(`${where}: ${what} expected, found "${text}"`);
  return number;
}

const linesOf = (text: string): readonly string[] => text.split("\n").map((line) => line.trimEnd());

/** @throws an error that names the line that is none */
export function tablesFrom(flavours: string, bins: string): Tables {
  const sizes = new Map<string, Pick<Arrival, "cpus" | "memoryMiB">>();
  const shortest = new Map<number, number>();
  for (const [at, line] of linesOf(flavours).entries()) {
    if (line === "") continue;
    const where = `flavours.txt:${at + 1}`;
    const [, cores = "", memory = "", name = ""] = /^([^, ]*),([^, ]*) ([^, |]+)$/.exec(line) ?? [];
    if (name === "") throw new Error(`${where}: cores, a comma, GB, a space and a flavour expected, found "${line}"`);
    if (sizes.has(name)) throw new Error(`${where}: flavour ${name} is there twice`);
    const gigabytes = numberOf(memory, where, "GB", /^\d+(\.\d+)?$/);
    sizes.set(name, { cpus: numberOf(cores, where, "cores"), memoryMiB: Math.ceil(gigabytes * 1024) });
  }
  for (const [at, line] of linesOf(bins).entries()) {
    if (line === "") continue;
    const where = `duration-bins.txt:${at + 1}`;
    const [seconds = "", bin = "", ...more] = line.split(" ");
    if (more.length > 0) throw new Error(`${where}: seconds, a space and a bin expected, found "${line}"`);
    const [duration, of] = [numberOf(seconds, where, "seconds"), numberOf(bin, where, "a bin")];
    shortest.set(of, Math.min(duration, shortest.get(of) ?? duration));
  }
  return { flavours: sizes, bins: shortest };
}

/** In seconds; null: longer than the trace. What goes on may say how long it has been there. */
function lastedOf(said: string, bins: Tables["bins"], where: string): number | null {
  const [found, bin] = /^(?:U(0|[1-9]\d*)|C\d*)$/.exec(said) ?? [];
  if (found === undefined) throw new BadLine(`${where}: U and a bin, or C expected, found "${said}"`);
  if (bin === undefined) return null;
  const lasted = bins.get(Number(bin));
  if (lasted === undefined) throw new BadLine(`${where}: duration-bins.txt has no bin ${bin}`);
  return lasted;
}

/**
 * VMs of one line.
 *
 * @param batch how many batches have ended before: each is one tenant's
 * @returns them, and how many batches have ended then
 * @throws a `BadLine` that begins with where that is
 */
export function arrivalsOfLine(
  [arrivals, durations]: readonly [string, string],
  batch: number,
  { flavours, bins }: Tables,
  where: string,
): { readonly arrivals: readonly Arrival[]; readonly batch: number } {
  const [[first = "", names = ""], [second = "", ends = ""]] = [arrivals.split(" "), durations.split(" ")];
  const at = numberOf(first, where, "seconds");
  if (first !== second) throw new BadLine(`${where}: it is about second ${first}, and its durations about ${second}`);
  const [vms, how] = [names.split(","), ends.split(",")];
  if (vms.length !== how.length) throw new BadLine(`${where}: ${vms.length} entries, and ${how.length} durations`);
  const found: Arrival[] = [];
  let ended = batch;
  for (const [index, name] of vms.entries()) {
    const said = how[index] ?? "";
    if ((name === "|" || name === "") !== (said === name))
      throw new BadLine(`${where}: "${name}" has duration "${said}"`);
    if (name === "|") ended += 1;
    if (name === "|" || name === "") continue;
    const size = flavours.get(name);
    if (size === undefined) throw new BadLine(`${where}: flavours.txt has no flavour "${name}"`);
    const lasted = lastedOf(said, bins, where);
    found.push({ second: at, account: ended, group: ended, ...size, endsAt: lasted === null ? null : at + lasted });
  }
  return { arrivals: found, batch: ended };
}

/** All of a trace in order, a line of it in memory at a time. */
export async function* linesTrace(file: string, bad: BadLines): AsyncGenerator<Arrival> {
  const beside = (name: string): Promise<string> => readFile(join(dirname(file), name), "utf8");
  const tables = tablesFrom(await beside("flavours.txt"), await beside("duration-bins.txt"));
  const ends = textLines(file.replace(/(\.[^./]*)?$/, "-durations$1"));
  let [line, batch, second] = [0, 0, 0];
  for await (const text of textLines(file)) {
    line += 1;
    const where = `${basename(file)}:${line}`;
    const { done, value } = await ends.next();
    if (done === true) throw new Error(`${where}: there are no durations of it`);
    const read = bad.line(() => inOrder(arrivalsOfLine([text, value], batch, tables, where), second, where));
    // Of a line that is left out nobody knows how many batches it has: no other one goes on with the last of them.
    batch = read?.batch ?? batch + 1;
    second = read?.arrivals.at(-1)?.second ?? second;
    yield* read?.arrivals ?? [];
  }
  if ((await ends.next()).done !== true)
    throw new Error(`${basename(file)}: there are more durations than lines of it`);
}
function inOrder<Read extends { readonly arrivals: readonly Arrival[] }>(
  read: Read,
  second: number,
  where: string,
): Read {
  const at = read.arrivals[0]?.second ?? second;
  if (at < second) throw new BadLine(`${where}: second ${at} comes after ${second}`);
  return read;
}
