import type { Bundle } from "../../../model/cell/cell.ts";
import type { Evaluated } from "../../../model/cell/evaluated.ts";
import type { Diagnostic } from "../../../model/diagnostics/diagnostic.ts";
import type { Json } from "../../../model/json/json.ts";
import { limits } from "../../../model/limits.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { noWalls } from "../no-walls.ts";
import { bounds } from "./bounds.ts";
import { type Ended, type LaunchOptions, launch } from "./launch.ts";

/*
 * TypeScript specifications: each is evaluated in a process of its own. Few run at once, since each may use a processor
 * and 256 MiB; some more wait, and those beyond are refused.
 */
let running = 0;
const waiting: (() => void)[] = [];

async function turn(): Promise<boolean> {
  if (running < bounds.atOnce) {
    running++;
    return true;
  }
  if (waiting.length >= bounds.waiting) return false;
  await new Promise<void>((resolve) => waiting.push(resolve));
  return true;
}
/** The place goes to who waits longest. */
function leave(): void {
  const next = waiting.shift();
  if (next) next();
  else running--;
}

/** Evaluates a bundle whose main file is TypeScript. Faults carry positions in its texts. */
export async function evaluateTypeScriptBundle(
  { main, files }: Bundle,
  options: LaunchOptions = {},
): Promise<Result<Evaluated, readonly Diagnostic[]>> {
  const position = { file: main, line: 1, column: 1, length: 1 };
  const refuse = (code: string, message: string, hint: string) => fail([{ code, message, hint, position }]);
  // Here as well as where it is read: what is larger need not even start a process.
  if (Object.values(files).reduce((sum, text) => sum + text.length, 0) > limits.textLength)
    return refuse(
      "limit/text",
      `The texts are larger than ${limits.textLength / 1024 / 1024} MiB`,
      "Split the cell into several.",
    );
  if (!(await turn()))
    return refuse(
      "typescript/busy",
      "Too many TypeScript specifications are being evaluated",
      "Try again in a moment.",
    );
  try {
    const ended = await launch(JSON.stringify({ main, files }), options);
    if (ended.how === "no-walls")
      return refuse(
        noWalls,
        `TypeScript is not evaluated here: ${ended.why}`,
        "Send the specification as SmartFrog, JSON or YAML; `cells plan` and `cells apply` evaluate it themselves and send the JSON.",
      );
    if (ended.how !== "answer") return refuse("typescript/stopped", stoppedMessage(ended, options), stoppedHint);
    const outcome = outcomeIn(ended.text);
    return outcome ?? refuse("typescript/stopped", "The evaluation gave no sound answer", stoppedHint);
  } finally {
    leave();
  }
}

const stoppedHint = "Look for work on very large lists or texts, and for loops that do not end.";

function stoppedMessage(
  ended: Exclude<Ended, { how: "answer" | "no-walls" }>,
  { wallMs = bounds.wallMs }: LaunchOptions,
): string {
  switch (ended.how) {
    case "too-long":
      return `The specification was not evaluated within ${wallMs / 1000} s`;
    case "aborted":
      return "The evaluation was given up, since nobody waits for it";
    case "too-large":
      return "The evaluation gave more than a cell may be";
    case "broken":
      return `The evaluation ended without an answer${/heap out of memory/.test(ended.said) ? ": it ran out of memory" : ""}`;
  }
}

/** What the process says is as little believed as what a client sends. Null if it is none. */
function outcomeIn(text: string): Result<Evaluated, readonly Diagnostic[]> | null {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isRecord(json)) return null;
  const { ok: done, value, error } = json;
  if (done !== true) return Array.isArray(error) && error.length > 0 && error.every(isDiagnostic) ? fail(error) : null;
  if (!isRecord(value) || !isRecord(value.document) || !isRecord(value.places) || !Array.isArray(value.files))
    return null;
  const { document, files, places } = value;
  const sound =
    files.every((name) => typeof name === "string") &&
    Object.values(places).every(
      (place) =>
        Array.isArray(place) && place.length === 7 && place.every((part) => Number.isSafeInteger(part) && part >= 0),
    );
  // Parsed JSON is JSON; the shape of places was looked at just now.
  return sound
    ? ok({ document: document as { [name: string]: Json }, files, places: places as Evaluated["places"] })
    : null;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isPosition = (value: unknown): boolean =>
  isRecord(value) &&
  typeof value.file === "string" &&
  [value.line, value.column, value.length].every((part) => Number.isSafeInteger(part));
const isDiagnostic = (value: unknown): value is Diagnostic =>
  isRecord(value) &&
  typeof value.code === "string" &&
  typeof value.message === "string" &&
  ["undefined", "string"].includes(typeof value.hint) &&
  ["undefined", "string"].includes(typeof value.path) &&
  (value.position === undefined || isPosition(value.position)) &&
  (value.related === undefined ||
    (Array.isArray(value.related) &&
      value.related.every((each) => isRecord(each) && typeof each.message === "string" && isPosition(each.position))));
