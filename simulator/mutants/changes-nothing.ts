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
