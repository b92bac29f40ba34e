import { mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { basename, join } from "node:path";
import { type SavedState, savedPart } from "../core/documents/saved-state.ts";
import type { SavedForm } from "../host/drivers/hypervisor/resume/saved-machine.ts";
import { packMemory } from "../host/drivers/storage/packed-memory.ts";
import type { ImageManifest } from "../runtime/installation.ts";
import { digestOfFiles, sha256, textOf } from "./parts.ts";
import { saveState, savingInputs } from "./save.ts";

/**
 * Sizes of service VMs (examples/root, which a test holds to them), and what processes they will run, so far as all of a size run
 * the same.
 */
export const sizes: readonly (SavedForm & { readonly programs: readonly string[] })[] = [
  { readsOnly: true, memoryMiB: 160, cpus: 1, programs: ["service"] },
  // The gateway's alone: beside another one in 160 MiB it leaves too little for what is read from the disk.
  { readsOnly: true, memoryMiB: 176, cpus: 1, programs: ["gateway"] },
  // What its roles share, and Presence.
  { readsOnly: true, memoryMiB: 256, cpus: 2, programs: ["service", "service"] },
  { readsOnly: true, memoryMiB: 384, cpus: 2, programs: ["service", "service", "authority"] },
];

/**
 * Saved states of the service image, one for each size of VM, beside its other files; those that are there stay while QEMU
 * and the machine's form are what they were. The image is whole without them: machines then boot, and say why.
 */
export const saveServiceStates = (
  directory: string,
  progress: (message: string) => void,
  saving: typeof saveState = saveState,
): Promise<void> =>
  saveAll(directory, progress, saving).catch((error: Error) =>
    progress(`service image: no state of it is saved: ${error.message}`),
  );

async function saveAll(
  directory: string,
  progress: (message: string) => void,
  saving: typeof saveState,
): Promise<void> {
  const ours = await digestOfFiles(import.meta.dirname, ["save.ts", "service-states.ts"]);
  const inputs = `${ours} ${await savingInputs(sizes)}\n`;
  const checked = join(directory, "saved");
  if ((await textOf(checked)) === inputs) return;
  const file = join(directory, "manifest.json");
  const manifest = JSON.parse(await readFile(file, "utf8")) as ImageManifest;
  if (manifest.boot === null) throw new Error(`image "${manifest.name}" has no recorded kernel to be saved with`);
  const work = await mkdtemp(join(directory, ".saving-"));
  try {
    const save = async ({ programs, ...form }: (typeof sizes)[number]): Promise<SavedState | null> => {
      progress(`service image: starting it once with ${form.memoryMiB} MiB, to save its state`);
      const options = ` cells.save=${programs.join(",")}`;
      const unpacked = `memory-${form.memoryMiB}-${form.cpus}`;
      const part = (name: "memory" | "state"): string =>
        join(basename(work), name === "memory" ? unpacked : savedPart(name, form));
      return saving(directory, manifest, { form, options, part })
        .then((state) => packed(state, join(work, unpacked), join(work, savedPart("memory", form))))
        .catch((error: Error) => {
          progress(`service image: no state with ${form.memoryMiB} MiB is saved: ${error.message}`);
          return null;
        });
    };
    const savedSizes = (await inTurns(sizes, atOnce(availableParallelism()), save)).filter((state) => state !== null);
    // It speaks of what is replaced now, and would be believed again by the QEMU that it names.
    await rm(checked, { force: true });
    for (const state of savedSizes)
      for (const name of ["memory", "state"] as const)
        await rename(join(work, savedPart(name, state)), join(directory, savedPart(name, state)));
    const { savedSizes: _, ...boot } = manifest.boot;
    const whole: ImageManifest = { ...manifest, boot: savedSizes.length === 0 ? boot : { ...boot, savedSizes } };
    await writeFile(join(work, "manifest.json"), `${JSON.stringify(whole, null, 2)}\n`);
    await rename(join(work, "manifest.json"), file);
    if (savedSizes.length === sizes.length) await writeFile(checked, inputs);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/**
 * A machine that starts has one processor to do, however many it is given, and 384 MiB at most: so on two processors two are
 * started beside each other. More gain nothing, as what is then left is the largest one.
 */
export const atOnce = (processors: number): number => Math.min(2, processors);

/** What becomes of each, in the order of what is given; at most so many are under way at once. */
export async function inTurns<T, R>(
  all: readonly T[],
  most: number,
  work: (one: T, index: number) => Promise<R>,
): Promise<readonly R[]> {
  const done: R[] = [];
  const left = all.entries();
  const next = async (): Promise<void> => {
    for (const [index, one] of left) done[index] = await work(one, index);
  };
  await Promise.all(Array.from({ length: Math.min(most, all.length) }, next));
  return done;
}

async function packed(state: SavedState, memory: string, into: string): Promise<SavedState> {
  await packMemory(memory, into);
  await rm(memory);
  return { ...state, memorySha256: await sha256(into) };
}
