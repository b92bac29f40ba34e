import type { Mutant } from "./mutants.ts";

/** A mutant that behaves as the text does, and why: what somebody has found out once. */
export interface ChangesNothing {
  readonly file: string;
  readonly before: string;
  readonly after: string;
  /** Which of several that read the same there; the first is 1. */
  readonly nth?: number;
  readonly why: string;
}

export const changeNothing: readonly ChangesNothing[] = [
  {
    file: "model/smartfrog/phases/function-phase.ts",
    before: "!phase || !made",
    after: "(!phase && !made)",
    why: "every attribute has a content: the second is there where the first is",
  },
  {
    file: "model/smartfrog/text/parser.ts",
    before: "this.tokens.length - 1",
    after: "(this.tokens.length + 1)",
    why: "what is looked at behind the last token is the last token",
  },
  {
    file: "core/controller/changes/pass.ts",
    before: "item.desires.length > 0",
    after: "(item.desires.length >= 0)",
    why: "to drop nothing does nothing",
  },
  {
    file: "core/storage/manager/manager.ts",
    before: "!state.volumes.has(id) && (state.wantedVolumes.has(id) || state.copiesOf.has(id))",
    after: "(!state.volumes.has(id) || (state.wantedVolumes.has(id) || state.copiesOf.has(id)))",
    why: "what is looked at once more comes to the same",
  },
  {
    file: "core/placer/what-if/thought.ts",
    before: "peer !== undefined && view !== undefined && to.hosts.get(peer) !== view",
    after: "(peer !== undefined && view !== undefined || to.hosts.get(peer) !== view)",
    why: "what is there already is put there once more",
  },
  {
    file: "core/distribution/inputs/input-queue.ts",
    before: "this.#taken * 2 < this.#others.length",
    after: "(this.#taken * 2 <= this.#others.length)",
    why: "what is gone through is cut off one batch later",
  },
  {
    file: "core/controller/volumes/growth.ts",
    before: "hasMiB < (before.sizeMiB ?? 0)",
    after: "(hasMiB <= (before.sizeMiB ?? 0))",
    why: "a size is put in the place of the same size",
  },
  {
    file: "model/smartfrog/phases/linker.ts",
    before: "this.#depth >= segment.depth",
    after: "(this.#depth > segment.depth)",
    why: "what is put off is done after the segment, wherever that ends",
  },
  {
    file: "core/placer/index/classes.ts",
    before: "index.classes.length > 2 * hosts.size + spareClasses",
    after: "(index.classes.length >= 2 * hosts.size + spareClasses)",
    why: "the index is made anew one class sooner, and comes to the same",
  },
  {
    file: "core/presence/swim/gossip.ts",
    before: "list.length <= 2 * queue.byHost.size + 64",
    after: "(list.length < 2 * queue.byHost.size + 64)",
    why: "what is superseded goes one update sooner, and is never sent",
  },
  {
    file: "model/smartfrog/text/lexer.ts",
    before: "end < 0",
    after: "(end <= 0)",
    nth: 1,
    why: "what is looked for begins behind a slash, and so never at the first character",
  },
  {
    file: "model/smartfrog/text/lexer.ts",
    before: "end < 0",
    after: "(end <= 0)",
    nth: 2,
    why: "what is looked for begins behind a slash, and so never at the first character",
  },
  {
    file: "model/smartfrog/text/lexer.ts",
    before: "end < 0",
    after: "(end <= 0)",
    nth: 3,
    why: "what is looked for begins behind a slash, and so never at the first character",
  },
  {
    file: "model/plan/plan-check.ts",
    before: "(from?.elements.size ?? 0) + (to?.elements.size ?? 0)",
    after: "((from?.elements.size ?? 0) - (to?.elements.size ?? 0))",
    why: "in how large slices it is worked out is no matter of what comes of it",
  },
];

/** `a < b ? a : b` is the lesser of two, whichever of two equal ones. */
function isChoiceOfEquals({ before, choice }: Mutant): boolean {
  if (choice === null) return false;
  const sides = before.split(/ [<>]=? /);
  return sides.length === 2 && /^.+ [<>]=? .+$/.test(before) && sides.every((side) => choice.includes(side));
}

/** Why it changes nothing; null: as far as is known it changes something. */
export function whyNothing(mutant: Mutant): string | null {
  if (isChoiceOfEquals(mutant)) return "of two equal values either is chosen";
  const known = changeNothing.find(
    ({ file, before, after, nth }) =>
      file === mutant.file && before === mutant.before && after === mutant.after && (nth ?? 1) === mutant.nth,
  );
  return known?.why ?? null;
}
