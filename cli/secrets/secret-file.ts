import { renameSync, writeFileSync } from "node:fs";

/** Writes a file that only its owner can read, as a whole. */
export const writeSecret = (file: string, content: string): void => {
  const draft = `${file}.${process.pid}.new`;
  writeFileSync(draft, content, { mode: 0o600 });
  renameSync(draft, file);
};
