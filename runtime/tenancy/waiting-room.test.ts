import assert from "node:assert/strict";
import { test } from "node:test";
import { WaitingRoom } from "./waiting-room.ts";

test("so many work, the others wait in their order, and one source takes not all places", async () => {
  const room = new WaitingRoom({ working: 2, inRoom: 6, perSource: 4 });
  let working = 0;
  let most = 0;
  const order: string[] = [];
  const doors: (() => void)[] = [];
  const work = (name: string) => async (): Promise<string> => {
    working += 1;
    most = Math.max(most, working);
    await new Promise<void>((resolve) => doors.push(resolve));
    working -= 1;
    order.push(name);
    return name;
  };
  const loud = Array.from({ length: 9 }, (_, index) => room.run("loud", work(`loud ${index}`)));
  const quiet = [
    room.run("quiet", work("quiet 0")),
    room.run("other", work("other 0")),
    room.run("third", work("third 0")),
  ];
  for (let turn = 0; turn < 40; turn += 1) {
    doors.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const answers = await Promise.all([...loud, ...quiet]);
  assert.deepEqual(
    answers.slice(0, 9).map((answer) => answer !== null),
    [true, true, true, true, ...Array(5).fill(false)],
  );
  assert.deepEqual(answers.slice(9), ["quiet 0", "other 0", null]);
  assert.deepEqual(order, ["loud 0", "loud 1", "loud 2", "loud 3", "quiet 0", "other 0"]);
  assert.equal(most, 2);
});

test("work that fails gives its place back", async () => {
  const room = new WaitingRoom({ working: 1, inRoom: 1, perSource: 1 });
  await assert.rejects(
    room.run("a", () => Promise.reject(new Error("no"))),
    /no/,
  );
  assert.equal(await room.run("a", async () => 7), 7);
});
