import { fail, ok, type Result } from "../result.ts";
import { type InSlices, inOneGo } from "../slices.ts";
import { isObject, type Json, type JsonObject } from "./json.ts";
import { isWithinDepth, type Pointer, readPointer } from "./pointer.ts";
import { sameJson } from "./same.ts";

/**
 * JSON Patch (RFC 6902): operations on a document, all of them or none.
 *
 * The document that it begins with is frozen, shared and large, and stays as it is. What an operation changes is copied on the
 * way there, once for a whole patch (`Draft`), so a thousand operations cost little more than one. A value that is copied stands
 * in two places, so nothing of it may be changed in place from then on.
 *
 * A patch is text of a stranger's and small, and what it makes need not be: a text that is copied doubles. So what is copied is
 * counted. Pointers and values are no deeper than a document may be, and nothing here calls itself for what a patch may have
 * made deeper.
 */
export type PatchOperation =
  | { readonly op: "add" | "replace" | "test"; readonly path: string; readonly value: Json }
  | { readonly op: "remove"; readonly path: string }
  | { readonly op: "move" | "copy"; readonly from: string; readonly path: string };

/** As it is written, before it was read: which members each operation has, RFC 6902 says. */
export interface JsonPatchOperation {
  readonly op: PatchOperation["op"];
  readonly path: string;
  readonly from?: string;
  readonly value?: Json;
}

/** What a patch may cost. */
export const patchLimits = {
  operations: 1000,
  /** Of its text. */
  bytes: 1024 * 1024,
  /** Values at every depth, and characters of names and texts, that its `copy` operations make. */
  copiedValues: 200_000,
  copiedCharacters: 16 * 1024 * 1024,
  /** Values inside one another, and parts of a pointer. */
  depth: 256,
} as const;

export interface PatchFault {
  /** `test-failed`: the document is another one than the patch was made for. `invalid`: it could never be applied, or not to this one. */
  readonly kind: "invalid" | "test-failed";
  /** Index of the operation; null: it is the patch as a whole. */
  readonly operation: number | null;
  /** Pointer (RFC 6901) of the operation to what is wrong; null: it has none. */
  readonly path: string | null;
  /** A sentence, with both. */
  readonly message: string;
  /** Of a test that failed. Absent: it is too long to be repeated. */
  readonly wanted?: Json;
  /** Absent: nothing is there, or it is too long to be repeated. */
  readonly found?: Json;
}

/** A patch that was read, with its pointers in parts. */
export type Patch = readonly Step[];
type Step = PatchOperation & { readonly to: Pointer; readonly source: Pointer };

const shortened = (text: string, most = 120): string => (text.length <= most ? text : `${text.slice(0, most)}…`);
const faultAt = (operation: number, { op, path }: { readonly op: string; readonly path: string }, why: string) =>
  fail<PatchFault>({
    kind: "invalid",
    operation,
    path,
    message: `operation ${operation} (${shortened(op)} ${shortened(JSON.stringify(path))}): ${why}`,
  });

// --- reading --------------------------------------------------------------------------------------------------------

const operations = ["add", "remove", "replace", "move", "copy", "test"] as const;
const isOperation = (op: Json | undefined): op is PatchOperation["op"] => operations.some((each) => each === op);

/** A patch as it came, or what is wrong with it whatever it is applied to. Members that RFC 6902 does not name are passed over. */
export function readPatch(json: Json): Result<Patch, PatchFault> {
  const whole = (message: string, operation: number | null = null) =>
    fail<PatchFault>({ kind: "invalid", operation, path: null, message });
  if (!Array.isArray(json)) return whole("a patch is a list of operations (RFC 6902)");
  const all = json as readonly Json[];
  const most = patchLimits.operations;
  if (all.length > most)
    return whole(`operation ${most}: a patch has at most ${most} operations, and this one ${all.length}`, most);
  const steps: Step[] = [];
  for (const [index, each] of all.entries()) {
    if (!isObject(each)) return whole(`operation ${index}: an operation is an object`, index);
    const step = readOperation(index, each);
    if (!step.ok) return step;
    steps.push(step.value);
  }
  return ok(steps);
}

function readOperation(index: number, each: JsonObject): Result<Step, PatchFault> {
  const { op, path, from, value } = each as { readonly [name: string]: Json | undefined };
  const written = typeof path === "string" ? path : "";
  const wrong = (why: string, at = written) => faultAt(index, { op: String(op), path: at }, why);
  if (!isOperation(op)) return wrong(`\`op\` is one of ${operations.join(", ")}`);
  if (typeof path !== "string") return wrong("`path` is a text, a pointer as /shop/web/x.memory");
  const to = readPointer(path, patchLimits.depth);
  if (!to.ok) return wrong(`\`path\` ${to.error}`);
  if (op === "remove") return ok({ op, path, to: to.value, source: [] });
  if (op !== "move" && op !== "copy") {
    if (!Object.hasOwn(each, "value") || value === undefined) return wrong("there is no `value`");
    if (!isWithinDepth(value, patchLimits.depth))
      return wrong(`its value is nested deeper than ${patchLimits.depth} levels`);
    return ok({ op, path, value, to: to.value, source: [] });
  }
  if (typeof from !== "string") return wrong("`from` is a text, a pointer as /shop/web/x.memory");
  const source = readPointer(from, patchLimits.depth);
  if (!source.ok) return wrong(`\`from\` ${source.error}`, from);
  if (op === "move" && source.value.length < to.value.length && isPrefix(source.value, to.value))
    return wrong(`${JSON.stringify(shortened(from))} cannot be moved into itself`);
  return ok({ op, path, from, to: to.value, source: source.value });
}
const isPrefix = (one: Pointer, other: Pointer): boolean => one.every((part, at) => part === other[at]);

// --- applying -------------------------------------------------------------------------------------------------------

/** The document after all operations, or the first that cannot be done or whose test fails. `document` stays as it is. */
export const patched = (document: Json, patch: Patch): Result<Json, PatchFault> =>
  inOneGo(patchedInSlices(document, patch));
export function* patchedInSlices(document: Json, patch: Patch): InSlices<Result<Json, PatchFault>> {
  const draft = new Draft(document);
  for (const [index, step] of patch.entries()) {
    const why = step.op === "test" ? draft.test(step.to, step.value) : draft.apply(step);
    if (why instanceof Mismatch) return fail(failedTest(index, step, why));
    if (why !== null)
      return faultAt(
        index,
        { op: step.op, path: why.at === "from" && "from" in step ? step.from : step.path },
        why.why,
      );
    yield 1;
  }
  return ok(draft.document);
}

/** Characters of JSON that a fault repeats. */
const mostShown = 4096;
function failedTest(operation: number, { path }: Step, { wanted, found }: Mismatch): PatchFault {
  const [shownWanted, shownFound] = [shown(wanted), found === undefined ? undefined : shown(found)];
  const there = found === undefined ? "nothing is there" : "what is there is another value than the test names";
  return {
    kind: "test-failed",
    operation,
    path,
    // Without the values: a message may go where nobody else reads the document.
    message: `operation ${operation} (test ${shortened(JSON.stringify(path))}): ${there}`,
    ...(shownWanted === undefined ? {} : { wanted: shownWanted }),
    ...(shownFound === undefined ? {} : { found: shownFound }),
  };
}
/** Undefined: it is too long. */
const shown = (json: Json): Json | undefined =>
  sizeOf(json, { values: mostShown, characters: mostShown }) === null ? undefined : json;

interface Size {
  values: number;
  characters: number;
}
/** How much a value is; null: more than there is room for. It is looked through without recursion. `seen`: told of each list and object. */
function sizeOf(json: Json, room: Readonly<Size>, seen: (holder: object) => void = () => undefined): Size | null {
  const size: Size = { values: 0, characters: 0 };
  const left: Json[] = [json];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    size.values += 1;
    if (typeof next === "string") size.characters += next.length;
    else if (typeof next === "object" && next !== null) {
      seen(next);
      if (Array.isArray(next)) for (const each of next as readonly Json[]) left.push(each);
      else
        for (const [name, each] of Object.entries(next as JsonObject)) {
          size.characters += name.length;
          left.push(each);
        }
    }
    if (size.values + left.length > room.values || size.characters > room.characters) return null;
  }
  return size;
}

class Mismatch {
  readonly wanted: Json;
  readonly found: Json | undefined;
  constructor(wanted: Json, found: Json | undefined) {
    this.wanted = wanted;
    this.found = found;
  }
}
/** Why an operation cannot be done, and which of its pointers says so. */
interface Impossible {
  readonly why: string;
  readonly at: "path" | "from";
}
const impossible = (why: string, at: Impossible["at"] = "path"): Impossible => ({ why, at });
const nothingThere = "nothing is there";

type Holder = Json[] | { [name: string]: Json };

/** A document that is being changed. */
class Draft {
  document: Json;
  /** Lists and objects that were made here and stand in one place: they may be changed as they are. */
  readonly #own = new Set<object>();
  readonly #left: Size = { values: patchLimits.copiedValues, characters: patchLimits.copiedCharacters };

  constructor(document: Json) {
    this.document = document;
  }

  test(to: Pointer, wanted: Json): Mismatch | null {
    const found = this.#at(to);
    return found !== undefined && sameJson(found, wanted) ? null : new Mismatch(wanted, found);
  }

  apply(step: Step): Impossible | null {
    switch (step.op) {
      case "add":
        return this.#add(step.to, step.value);
      case "remove":
        return this.#remove(step.to);
      case "replace":
        return this.#replace(step.to, step.value);
      case "copy":
      case "move":
        return this.#bring(step);
      case "test":
        return null;
    }
  }

  #bring({ op, source, to }: Step): Impossible | null {
    const value = this.#at(source);
    if (value === undefined) return impossible(nothingThere, "from");
    if (op === "copy") return this.#charge(value) ? this.#add(to, value) : impossible(tooMuch, "from");
    if (source.length === to.length && isPrefix(source, to)) return null;
    return this.#remove(source, "from") ?? this.#add(to, value);
  }

  /** From now on it stands in two places. False: too much has been copied. */
  #charge(value: Json): boolean {
    const size = sizeOf(value, this.#left, (holder) => void this.#own.delete(holder));
    if (size === null) return false;
    this.#left.values -= size.values;
    this.#left.characters -= size.characters;
    return true;
  }

  #at(pointer: Pointer): Json | undefined {
    let at: Json | undefined = this.document;
    for (const part of pointer) {
      if (Array.isArray(at)) at = indexIn(at, part) === null ? undefined : (at[Number(part)] as Json);
      else at = isObject(at) && Object.hasOwn(at, part) ? at[part] : undefined;
    }
    return at;
  }

  #add(to: Pointer, value: Json): Impossible | null {
    const last = to.at(-1);
    if (last === undefined) {
      this.document = value;
      return null;
    }
    const holder = this.#holderOf(to);
    if (holder === null) return impossible("what it would stand in is not there, or is no object and no list");
    if (!Array.isArray(holder)) setIn(holder, last, value);
    else {
      const index = last === "-" ? holder.length : indexIn(holder, last, holder.length + 1);
      if (index === null) return impossible(`the list has ${holder.length} items, and ${wrongIndex}`);
      holder.splice(index, 0, value);
    }
    return null;
  }

  #remove(to: Pointer, at: Impossible["at"] = "path"): Impossible | null {
    const last = to.at(-1);
    if (last === undefined) return impossible("the document as a whole cannot be taken away", at);
    if (this.#at(to) === undefined) return impossible(nothingThere, at);
    const holder = this.#holderOf(to);
    if (Array.isArray(holder)) holder.splice(Number(last), 1);
    else if (holder !== null) delete holder[last];
    return null;
  }

  #replace(to: Pointer, value: Json): Impossible | null {
    const last = to.at(-1);
    if (this.#at(to) === undefined) return impossible(nothingThere);
    const holder = last === undefined ? null : this.#holderOf(to);
    if (last === undefined || holder === null) this.document = value;
    else if (Array.isArray(holder)) holder[Number(last)] = value;
    else setIn(holder, last, value);
    return null;
  }

  /** What the last part of a pointer stands in, to be changed; null: there is nothing that could hold it. */
  #holderOf(pointer: Pointer): Holder | null {
    const around = pointer.slice(0, -1);
    if (!isHolder(this.#at(around))) return null;
    let holder = this.#ownOf(this.document as Holder);
    this.document = holder;
    for (const part of around) {
      const inner = this.#ownOf((holder as Record<string, Json>)[part] as Holder);
      setIn(holder, part, inner);
      holder = inner;
    }
    return holder;
  }
  #ownOf(holder: Holder): Holder {
    if (this.#own.has(holder)) return holder;
    const copy = Array.isArray(holder) ? [...holder] : { ...holder };
    this.#own.add(copy);
    return copy;
  }
}

const tooMuch = `a patch copies at most ${patchLimits.copiedValues} values with ${patchLimits.copiedCharacters} characters`;
const wrongIndex = "an index is 0, 1 and so on, or - for behind the last";
const isHolder = (json: Json | undefined): boolean => typeof json === "object" && json !== null;

/** Of an item among so many; null: there is none. Leading zeros are none (RFC 6901, section 4). */
const indexIn = (list: readonly unknown[], part: string, among = list.length): number | null =>
  /^(?:0|[1-9]\d{0,9})$/.test(part) && Number(part) < among ? Number(part) : null;

/** A name may be `__proto__`, which an assignment would take for something else. */
function setIn(holder: Holder, name: string, value: Json): void {
  if (Object.hasOwn(holder, name)) (holder as Record<string, Json>)[name] = value;
  else Object.defineProperty(holder, name, { value, writable: true, enumerable: true, configurable: true });
}
