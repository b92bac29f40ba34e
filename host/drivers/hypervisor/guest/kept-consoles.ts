import { constants } from "node:fs";
import { chmod, mkdir, open, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pastLimit } from "./console.ts";

/**
 * What machines said last before they ended. Why one has crashed stands on the console that went with it, so its host keeps the end of it for those who may
 * sit at the consoles of that cell: of a VM the last few, for a day, until the host is switched off. It is kept by the name of the cell and by the UID of the
 * VM, which begins with the UID of its cell, so that a later cell of the name is shown nothing (`host/sessions/sessions.ts`).
 */
export interface Incarnation {
  readonly cell: string;
  readonly vm: string;
  readonly incarnation: number;
}
export interface Kept extends Incarnation {
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly endedMs: number;
}
export interface KeptLimits {
  readonly perVm: number;
  readonly perHost: number;
  readonly ageMs: number;
}
/** With `pastLimit` octets each at most 8 MiB of a host. */
export const keptLimits: KeptLimits = { perVm: 3, perHost: 512, ageMs: 24 * 3_600_000 };
const everyMs = 10 * 60_000;

/** Those that there is no room or no time for. Where it is full the cell that has most of it loses its oldest. */
export function tooMany(kept: readonly Kept[], nowMs: number, limits: KeptLimits = keptLimits): readonly Kept[] {
  const newestFirst = [...kept].sort((one, two) => two.endedMs - one.endedMs || two.incarnation - one.incarnation);
  const ofVm = new Map<string, number>();
  const ofCell = new Map<string, Kept[]>();
  const gone: Kept[] = [];
  let left = 0;
  for (const each of newestFirst) {
    // A controller that lies may name a VM of its cell as another cell's is named.
    const vm = `${each.cell} ${each.vm}`;
    const count = (ofVm.get(vm) ?? 0) + 1;
    ofVm.set(vm, count);
    if (count > limits.perVm || nowMs - each.endedMs > limits.ageMs) {
      gone.push(each);
      continue;
    }
    ofCell.set(each.cell, [...(ofCell.get(each.cell) ?? []), each]);
    left += 1;
  }
  for (; left > limits.perHost; left -= 1) {
    const most = [...ofCell.values()].reduce((one, two) => (two.length > one.length ? two : one));
    const oldest = most.pop();
    if (oldest !== undefined) gone.push(oldest);
  }
  return gone;
}

const nameOf = ({ cell, vm, incarnation }: Incarnation): string => `${vm}.${incarnation}.${encodeURIComponent(cell)}`;
/** Null: it is no name of ours. */
const partsOf = (name: string): Incarnation | null => {
  const [, vm, incarnation, cell] = /^([A-Za-z0-9-]{1,64})\.(\d{1,15})\.([^/]{1,200})$/.exec(name) ?? [];
  if (vm === undefined || cell === undefined) return null;
  try {
    return { cell: decodeURIComponent(cell), vm, incarnation: Number(incarnation) };
  } catch {
    return null;
  }
};

export class KeptConsoles {
  readonly #directory: string;
  readonly #nowMs: () => number;
  readonly #timer: NodeJS.Timeout;

  /** @param directory of ours alone; made when there is something to keep */
  constructor(directory: string, nowMs: () => number = Date.now) {
    this.#directory = directory;
    this.#nowMs = nowMs;
    this.#timer = setInterval(() => void this.#sweep(), everyMs).unref();
  }

  /** Never rejects: no machine's end waits for a disk that is full. */
  async keep(of: Incarnation, said: Buffer): Promise<void> {
    const name = nameOf(of);
    if (said.length === 0 || partsOf(name)?.vm !== of.vm) return;
    try {
      await mkdir(this.#directory, { recursive: true, mode: 0o700 });
      await chmod(this.#directory, 0o700);
      const file = join(this.#directory, name);
      await writeFile(`${file}~`, said.subarray(Math.max(0, said.length - pastLimit)), { mode: 0o600 });
      await rename(`${file}~`, file);
    } catch {}
    await this.#sweep();
  }

  /** Null: nothing is kept of it, or not any more. */
  async read(of: Incarnation): Promise<Buffer | null> {
    const name = nameOf(of);
    // No UID has a dot: with dots in it, it would name the record of another VM, of a cell whose name has as many.
    if (partsOf(name)?.vm !== of.vm) return null;
    await this.#sweep();
    const handle = await open(join(this.#directory, name), constants.O_RDONLY | constants.O_NOFOLLOW).catch(() => null);
    if (handle === null) return null;
    try {
      return await handle.readFile();
    } finally {
      await handle.close();
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #sweep(): Promise<void> {
    const kept: Kept[] = [];
    for (const name of await readdir(this.#directory).catch(() => [])) {
      const parts = partsOf(name);
      const found = await stat(join(this.#directory, name)).catch(() => null);
      if (parts !== null && found !== null) kept.push({ ...parts, name, endedMs: found.mtimeMs });
    }
    for (const { name } of tooMany(kept, this.#nowMs()))
      await rm(join(this.#directory, name), { force: true }).catch(() => undefined);
  }
}
