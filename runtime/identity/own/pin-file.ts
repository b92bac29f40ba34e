import type { Pins } from "../../../core/identity/may-connect.ts";
import { takePin } from "../../../core/identity/pins.ts";
import type { Json } from "../../../model/json/json.ts";
import { replaceFile } from "../../process/replace-file.ts";
import { readPins } from "../../transport/judge.ts";

/**
 * Keeps a host's file of pinned keys in step with what the authority publishes. A failure to write ends the process, as
 * any failing disk does: what is to be relied on when all is dark must not be missing then.
 */
export const followPins = (file: string): ((key: string, value: Json) => void) => {
  let pins: Pins = readPins(file);
  let writing: Promise<void> | null = null;
  const write = async (): Promise<void> => {
    let written: Pins | null = null;
    // The latest counts: many that come at once are one or two files.
    while (written !== pins) {
      written = pins;
      await replaceFile(file, `${JSON.stringify({ pins: Object.fromEntries(written) })}\n`);
    }
    writing = null;
  };
  return (key, value) => {
    // A renewal may have brought others meanwhile.
    if (writing === null) pins = readPins(file);
    const next = takePin(pins, key, value);
    if (next === null) return;
    pins = next;
    writing ??= write();
  };
};
