import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";

/*
 * A trace of arrivals: a line for each period, `seconds flavour,flavour,|,…`, where `|` ends a batch of one tenant. Beside it lie
 * `NAME-durations.txt`, the same VMs in the same order (`U` and a bin: it ended within the trace; `C`, with a bin or none: it did not), `flavours.txt` (`cores,GB flavour`)
 * and `duration-bins.txt` (`seconds bin`, of each duration that is told apart).
 */

export interface Arrival {
  readonly second: number;
  readonly batch: number;
  readonly cpus: number;
  readonly memoryMiB: number;
  /** Null: not within the trace. */
  readonly endsAt: number | null;
}
export interface Tables {
  readonly flavours: ReadonlyMap<string, Pick<Arrival, "cpus" | "memoryMiB">>;
  /** The shortest duration of each bin, in seconds. */
  readonly bins: ReadonlyMap<number, number>;
}

const whole = /^(0|[1-9]\d*)$/;
function numberOf(text: string, where: string, what: string, form: RegExp = whole): number {
  const number = Number(text);
  if (!form.test(text) || !Number.isSafeInteger(Math.ceil(number)))
    throw new Error(`${where}: ${what} expected, found "${text}"`);
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
  if (found === undefined) throw new Error(`${where}: U and a bin, or C expected, found "${said}"`);
  if (bin === undefined) return null;
  const lasted = bins.get(Number(bin));
  if (lasted === undefined) throw new Error(`${where}: duration-bins.txt has no bin ${bin}`);
  return lasted;
}

/**
 * VMs of one line.
 *
 * @param batch how many batches have ended before
 * @returns them, and how many batches have ended then
 * @throws an error that begins with where that is
 */
export function arrivalsOfLine(
  [arrivals, durations]: readonly [string, string],
  batch: number,
  { flavours, bins }: Tables,
  where: string,
): { readonly arrivals: readonly Arrival[]; readonly batch: number } {
  const [[first = "", names = ""], [second = "", ends = ""]] = [arrivals.split(" "), durations.split(" ")];
  const at = numberOf(first, where, "seconds");
  if (first !== second) throw new Error(`${where}: it is about second ${first}, and its durations about ${second}`);
  const [vms, how] = [names.split(","), ends.split(",")];
  if (vms.length !== how.length) throw new Error(`${where}: ${vms.length} entries, and ${how.length} durations`);
  const found: Arrival[] = [];
  let ended = batch;
  for (const [index, name] of vms.entries()) {
    const said = how[index] ?? "";
    if ((name === "|" || name === "") !== (said === name))
      throw new Error(`${where}: "${name}" has duration "${said}"`);
    if (name === "|") ended += 1;
    if (name === "|" || name === "") continue;
    const size = flavours.get(name);
    if (size === undefined) throw new Error(`${where}: flavours.txt has no flavour "${name}"`);
    const lasted = lastedOf(said, bins, where);
    found.push({ second: at, batch: ended, ...size, endsAt: lasted === null ? null : at + lasted });
  }
  return { arrivals: found, batch: ended };
}

/** All of a trace in order, a line of it in memory at a time. */
export async function* arrivalsFrom(file: string): AsyncGenerator<Arrival> {
  const beside = (name: string): Promise<string> => readFile(join(dirname(file), name), "utf8");
  const tables = tablesFrom(await beside("flavours.txt"), await beside("duration-bins.txt"));
  const durations = createInterface({ input: createReadStream(file.replace(/(\.[^./]*)?$/, "-durations$1")) });
  const ends = durations[Symbol.asyncIterator]();
  let [line, batch] = [0, 0];
  for await (const text of createInterface({ input: createReadStream(file) })) {
    line += 1;
    const where = `${basename(file)}:${line}`;
    const { done, value } = await ends.next();
    if (done === true) throw new Error(`${where}: there are no durations of it`);
    const read = arrivalsOfLine([text, value], batch, tables, where);
    batch = read.batch;
    yield* read.arrivals;
  }
}
