import type { Bundle, Cell } from "../cell/cell.ts";
import { describedCell } from "../cell/described.ts";
import { Diagnostics } from "../diagnostics/diagnostics.ts";
import { planChange } from "../plan/plan.ts";
import { fail, ok, type Result } from "../result.ts";
import { isKeyword } from "../smartfrog/text/expressions.ts";
import { parseBundle } from "../smartfrog/text/parser.ts";
import { readSpecification } from "../specification/specification.ts";
import { cursorAt } from "./cursor.ts";
import { keptElements } from "./kept-elements.ts";
import { foundAt } from "./navigation.ts";
import { Families, occurrencesIn } from "./occurrences.ts";
import { type BundleView, type Member, type TreeNode, viewBundle } from "./sources/bundle-tree.ts";
import { attributesIn, type Span } from "./sources/source.ts";
import { applyEdits, type Edit } from "./text-edit.ts";

/*
 * To an author a rename changes nothing but a name. To the cloud a path is all that ties an element to its text: without
 * a word, the renamed VM is a new one and the old one is deleted. So a rename says `x.movedFrom` for each element whose
 * path it changes, and that is the default; who renames what was never deployed may leave these edits out, which is why
 * they are kept apart. Whether a rename is right is not argued but tried: the texts are read before and after, and the
 * plan between the two must have nothing to do.
 */

export interface Rename {
  /** Each place that names it. */
  readonly edits: readonly Edit[];
  /** `x.movedFrom` for elements whose path changes; they are for the texts as `edits` find them. */
  readonly keep: readonly Edit[];
  /** Old and new path of each element that keeps running under another path. */
  readonly moved: readonly (readonly [from: string, to: string])[];
  /** The cell was read before and after and is the same; false if there are errors in it, so that nobody can tell. */
  readonly verified: boolean;
}

/** The name at an offset, if it can be renamed: its place and what it is now. */
export function renamable(
  view: BundleView,
  file: string,
  offset: number,
): Result<{ readonly span: Span; readonly name: string; readonly member: Member }, string> {
  const cursor = cursorAt(view, file, offset);
  const found = cursor && foundAt(cursor);
  const member = found?.member;
  if (!found || !member)
    return fail("Nothing at this place can be renamed: stand on the name of a component or attribute.");
  if (/^(?:x\.|sf[A-Z]|phase\.)/.test(member.name))
    return fail(`\`${member.name}\` is a name of the language, not one of this specification.`);
  return ok({ span: found.span, name: member.name, member });
}

/**
 * The edits that give what is named at an offset another name everywhere in the bundle: declarations, references of both
 * forms, placements, and overriding attributes in components made from its template. Refused, with a sentence, if the name
 * cannot be one, is taken, or if anything else would mean something else afterwards.
 */
export function renameElement(view: BundleView, file: string, offset: number, name: string): Result<Rename, string> {
  const wanted = renamable(view, file, offset);
  if (!wanted.ok) return wanted;
  const { member } = wanted.value;
  const refusal = nameRefusal(name) ?? syntaxRefusal(view.bundle);
  if (refusal !== null) return fail(refusal);
  if (name === member.name) return ok({ edits: [], keep: [], moved: [], verified: true });
  const occurrences = occurrencesIn(view);
  if (!occurrences) return fail("The specification is too large to rename something in it.");
  const families = new Families(occurrences.nodes);
  const family = families.of(member);
  const edits = new Map<string, Edit>();
  const add = (at: string, span: Span, quoted: boolean): void => {
    edits.set(`${at} ${span.start}`, { file: at, start: span.start, end: span.end, text: quoted ? `"${name}"` : name });
  };
  for (const node of occurrences.nodes)
    for (const each of node.members.values()) {
      if (each.name !== member.name || families.of(each) !== family) continue;
      const taken = takenIn(node, name);
      if (taken !== null) return fail(taken);
      for (const { attribute, name: written } of each.declarations) add(attribute.file, written, written.quoted);
    }
  for (const each of occurrences.all)
    if (each.member.name === member.name && families.of(each.member) === family) add(each.file, each, each.quoted);
  return verified(view, [...edits.values()]);
}

function nameRefusal(name: string): string | null {
  if (!/^[A-Za-z_$][A-Za-z0-9._\-+@#~$%^&]*$/.test(name))
    return `\`${name}\` cannot be a name: it begins with a letter, \`_\` or \`$\`, and has no spaces or slashes.`;
  if (name.startsWith("x.")) return `\`${name}\` cannot be a name: \`x.\` begins the attributes of the schema.`;
  const position = { file: "", line: 1, column: 1, length: 1 };
  return isKeyword({ kind: "word", text: name, position, number: undefined })
    ? `\`${name}\` is a word of the language.`
    : null;
}

function syntaxRefusal(bundle: Bundle): string | null {
  if (!bundle.main.endsWith(".sf")) return null;
  const diagnostics = new Diagnostics();
  parseBundle(bundle, diagnostics);
  const [first] = diagnostics.list;
  if (!first) return null;
  const where = first.position ? ` (${first.position.file}:${first.position.line})` : "";
  return `Nothing can be renamed while there are syntax errors${where}: ${first.message}.`;
}

function takenIn(node: TreeNode, name: string): string | null {
  const where = node.path.length === 0 ? "the document" : `\`/${node.path.join("/")}\``;
  return node.members.has(name) ? `There is a \`${name}\` in ${where} already.` : null;
}

function verified(view: BundleView, edits: readonly Edit[]): Result<Rename, string> {
  const before = readSpecification(view.bundle);
  const renamed = applyEdits(view.bundle, edits);
  if (!before.ok) return ok({ edits, keep: [], moved: [], verified: false });
  const renamedView = viewBundle(renamed, view);
  const bare = readSpecification(applyEdits(renamed, withoutMoves(renamedView)));
  if (!bare.ok) return fail(`After this rename the specification would be wrong: ${bare.error[0]?.message}.`);
  const moved = movedElements(before.value, bare.value);
  if (moved === null) return fail("This rename would change which elements the cell has.");
  const [left, replaced] = (["left", "replaced"] as const).map((pending) =>
    keptElements(renamedView, before.value, bare.value, moved, pending),
  );
  const kept = left ?? [];
  const after = readSpecification(applyEdits(renamed, kept));
  if (!after.ok) return fail(`After this rename the specification would be wrong: ${after.error[0]?.message}.`);
  // As if the texts before were what runs: then nothing is to be done.
  const running = readSpecification(applyEdits(renamed, replaced ?? []));
  const change = running.ok ? changeOf(before.value, running.value) : (running.error[0]?.message ?? "");
  if (change !== null) return fail(change);
  return ok({ edits, keep: kept.map((edit) => backwards(edit, edits)), moved, verified: true });
}

/** Moves that were written before, made to speak of paths that nobody has. */
function withoutMoves({ tree }: BundleView): readonly Edit[] {
  const edits: Edit[] = [];
  for (const { name, top } of tree.files.values())
    for (const { attribute } of attributesIn(top)) {
      const [string] = attribute.strings;
      if (attribute.name.at(-1)?.text === "x.movedFrom" && string)
        edits.push({ file: name, ...string.inner, text: `before/${edits.length}` });
    }
  return edits;
}

/** Elements are the same ones in the same order; null if they are not. */
function movedElements(before: Cell, after: Cell): readonly (readonly [string, string])[] | null {
  const [old, now] = [[...before.elements.values()], [...after.elements.values()]];
  if (old.length !== now.length || old.some(({ type }, index) => type !== now[index]?.type)) return null;
  return old.flatMap(({ path }, index) => {
    const to = now[index]?.path ?? path;
    return to === path ? [] : [[path, to] as const];
  });
}

function changeOf(before: Cell, after: Cell): string | null {
  if (before.name !== after.name)
    return `The cell would be called \`${after.name}\` and not \`${before.name}\`: give it an \`x.name\` first.`;
  const settings = (cell: Cell): string => JSON.stringify([...describedCell(cell)]);
  const same = settings(before) === settings(after);
  const step = planChange(before, after).steps.find(({ action }) => action !== "none");
  if (!step) return same ? null : "This rename would change what the cell says of itself.";
  const cause = step.causes[0];
  return `This rename would change more than a name: \`${step.path}\`${cause ? `, \`${cause.attribute}\`` : ""} would mean something else.`;
}

/** A place in the renamed text as it is in the text before. */
function backwards(edit: Edit, edits: readonly Edit[]): Edit {
  const place = (offset: number): number => {
    let [shift, result] = [0, offset];
    for (const { file, start, end, text } of edits.toSorted((a, b) => a.start - b.start)) {
      if (file !== edit.file || start + shift >= offset) continue;
      shift += text.length - (end - start);
      result = offset - shift;
    }
    return result;
  };
  return { ...edit, start: place(edit.start), end: place(edit.end) };
}
