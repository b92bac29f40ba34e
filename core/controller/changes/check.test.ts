import assert from "node:assert/strict";
import { test } from "node:test";
import type { Effect, Input } from "../../env.ts";
import { toJson } from "../../outbox.ts";
import { createController } from "../controller.ts";
import { shopOptions } from "../shop.testing.ts";
import { addressManager, dnsManager, placerOf, storageManagerOf } from "../state.ts";
import { shop } from "../world.testing.ts";
import { checkTimer } from "./check.ts";
import { isWorking, sliceTimer } from "./slices.ts";

const controllerOf = (count: number) => {
  const service = createController(shopOptions);
  const state = service.restore({ records: new Map(), desiredAt: new Map() });
  let ms = 0;
  const step = (input: Input): readonly Effect[] => {
    ms += 1;
    return service.step(state, input, { ms, wallMs: ms }).effects;
  };
  step({ kind: "start" });
  for (const peer of [storageManagerOf(state), placerOf(state), addressManager, dnsManager])
    step({ kind: "reachable", peer, reachable: true });
  const volume = { "x.type": "Volume", "x.size": 64 };
  const more = Object.fromEntries(Array.from({ length: count }, (_, at) => [`more${at}`, volume]));
  step({ kind: "request", id: 1, request: toJson({ method: "PUT", path: "", json: shop(more) }) });
  const rest = (): void => {
    while (isWorking(state)) step({ kind: "timer", name: sliceTimer });
  };
  rest();
  // What the first pass left to the next one.
  step({ kind: "timer", name: "some" });
  rest();
  return { state, step };
};
/** Effects of the check but its own timer, over a whole round and a bit more. */
const checked = ({ step }: ReturnType<typeof controllerOf>): readonly Effect[] =>
  Array.from({ length: 400 }).flatMap(() => {
    const [again, ...effects] = step({ kind: "timer", name: checkTimer });
    assert.equal(again?.kind === "timer" && again.name, checkTimer);
    return effects;
  });

test("nothing comes of a look at what has not changed", () => {
  assert.deepEqual(checked(controllerOf(100)), []);
});

test("what was overlooked is mended within a round, and named once", () => {
  const controller = controllerOf(100);
  const manager = storageManagerOf(controller.state);
  const documents = controller.state.outbox.desired.get(manager);
  const [key = ""] = [...(documents?.keys() ?? [])].slice(-1);
  // As no code should: past those who follow what is desired.
  Map.prototype.delete.call(documents, key);
  assert.deepEqual(controller.step({ kind: "timer", name: "some" }), []);
  const effects = checked(controller);
  assert.deepEqual(
    effects.map((effect) =>
      effect.kind === "desire" ? effect.key : effect.kind === "log" ? effect.event : effect.kind,
    ),
    [key, "controller/overlooked"],
  );
});
