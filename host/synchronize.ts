import { open } from "node:fs/promises";

/** Resolves when the file's bytes, or the directory's entries, would survive a power cut. */
export async function synchronize(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
