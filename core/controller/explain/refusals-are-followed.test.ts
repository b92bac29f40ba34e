import assert from "node:assert/strict";
import { test } from "node:test";
import type { Diagnostic } from "../../../model/diagnostics/diagnostic.ts";
import { hintSentences } from "../../../model/testing/hint-sentences.testing.ts";
import type { ControllerResponse } from "../requests/requests.ts";
import type { World } from "../world.testing.ts";
import type { Change } from "./followed.testing.ts";
import { followedRefusals } from "./followed-refusals.testing.ts";

/*
 * Every hint that a controller gives with a refusal of its own is given for some change, and each way that it names leads to one
 * that is accepted. The hints are read out of the code: who writes another one has it followed by a line in the table.
 */
const folders = ["core/controller", "model/plan"];

const put = (world: Pick<World, "ask">, { json, allowDestroy = [] }: Change): ControllerResponse =>
  world.ask({ method: "PUT", path: "", json, allowDestroy });
const hintsOf = ({ status, body }: ControllerResponse): readonly string[] => {
  if (status === 200) return [];
  const { diagnostics = [] } = (body as unknown as { error: { diagnostics?: readonly Diagnostic[] } }).error;
  return diagnostics.flatMap(({ hint }) => hint ?? []);
};

for (const [hint, { arise, wrong, ways }] of Object.entries(followedRefusals))
  test(`each way works: ${hint}`, () => {
    assert.ok(ways.length > 0);
    for (const { before, ...way } of ways) {
      const world = arise();
      const refused = put(world, wrong);
      assert.ok(
        hintsOf(refused).some((each) => each.includes(hint)),
        JSON.stringify(refused.body, null, 1),
      );
      before?.(world);
      const answer = put(world, way);
      assert.equal(answer.status, 200, JSON.stringify(answer.body, null, 1));
    }
  });

test("every hint of the controller is followed", () => {
  const said = Object.values(followedRefusals).flatMap(({ arise, wrong }) => hintsOf(put(arise(), wrong)));
  const sentences = hintSentences(folders);
  assert.ok(sentences.length > 12, String(sentences.length));
  assert.deepEqual(
    sentences.filter(({ says }) => !said.some((hint) => says.test(hint))).map(({ at, text }) => `${at}: ${text}`),
    [],
  );
});
