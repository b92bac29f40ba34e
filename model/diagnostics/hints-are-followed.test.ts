import assert from "node:assert/strict";
import { test } from "node:test";
import { readSpecification } from "../specification/specification.ts";
import { hintSentences } from "../testing/hint-sentences.testing.ts";
import { smallInstallation } from "../testing/small-installation.testing.ts";
import type { Diagnostic } from "./diagnostic.ts";
import { diagnosticPages } from "./diagnostic-codes.ts";
import { type Followed, followedChecks, type Submitted } from "./followed-checks.testing.ts";

/*
 * Every sentence that the sources of a folder give as a hint is given for some text, and each way that it names leads to one that
 * is accepted. They are read out of the code, so whoever writes a new one is told to have it followed: by a line in a table here, or
 * by the page of its code.
 */
const folders = ["model/cell", "model/check", "model/reference"];
/**
 * What no text alone is refused for: the root controller gives some (`core/controller/explain/refusals-are-followed.test.ts` follows those that
 * it adds), `cells dedicate` and requests about pools the others; each refusal is tried by the cases there.
 */
const ofRequests = ["model/cell/tenants/dedication/", "model/cell/tenants/pools/"];

const faultsOf = ({ text, supply }: Submitted): readonly Diagnostic[] => {
  const bundle = typeof text === "string" ? { main: "shop.sf", files: { "shop.sf": text } } : text;
  const read = readSpecification(bundle, supply);
  return read.ok ? [] : read.error;
};
const hintsOf = (of: Submitted): readonly string[] => faultsOf(of).flatMap(({ hint }) => hint ?? []);
const shown = (faults: readonly Diagnostic[]): string =>
  faults.map(({ code, message, hint }) => `${code}: ${message}. ${hint}`).join("\n");

const tables: Readonly<Record<string, Followed>> = followedChecks;
for (const [hint, [wrong, ...ways]] of Object.entries(tables))
  test(`each way works: ${hint}`, () => {
    assert.ok(
      hintsOf(wrong).some((each) => each.includes(hint)),
      shown(faultsOf(wrong)),
    );
    assert.ok(ways.length > 0);
    for (const way of ways) assert.equal(shown(faultsOf(way)), "");
  });

test("every hint of the sources is followed here, or by the page of its code", () => {
  const pages = [...diagnosticPages.values()].flatMap(({ wrong }): readonly Submitted[] =>
    wrong.kind === "request"
      ? []
      : [{ text: wrong.kind === "large" ? wrong.bundle() : wrong.bundle, supply: smallInstallation }],
  );
  const said = [...pages, ...Object.values(tables).map(([wrong]) => wrong)].flatMap(hintsOf);
  const sentences = hintSentences(folders);
  assert.ok(sentences.length > 50, String(sentences.length));
  assert.deepEqual(
    sentences
      .filter(
        ({ at, says }) => !ofRequests.some((folder) => at.startsWith(folder)) && !said.some((hint) => says.test(hint)),
      )
      .map(({ at, text }) => `${at}: ${text}`),
    [],
  );
});
