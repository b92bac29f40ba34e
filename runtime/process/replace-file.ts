import { randomBytes } from "node:crypto";
import { type FileOperations, realFiles, renameDurably } from "./durable-files.ts";

/** Replaces a file as a whole, with mode 0600; no reader sees half of it. Resolves when it would survive a power cut. */
export const replaceFile = async (file: string, text: string, files: FileOperations = realFiles): Promise<void> => {
  const temporary = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    await files.write(temporary, text, 0o600);
    await renameDurably(temporary, file, files);
  } finally {
    await files.remove(temporary);
  }
};
