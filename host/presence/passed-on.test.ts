import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName } from "../../model/cell/identifiers.ts";
import { mostEarly, passedOn } from "./passed-on.ts";

test("what the group says before the host's part begins reaches it, in order, once, and is bounded", () => {
  const { heard, begin } = passedOn();
  const [h2, h3] = [hostName("h2"), hostName("h3")];
  const got: string[] = [];
  const part = {
    declared: (host: string, generation: number) => void got.push(`dead ${host} ${generation}`),
    missed: ({ host, generation }: { readonly host: string; readonly generation: number }) =>
      void got.push(`missed ${host} ${generation}`),
  };
  heard.onDeath(h2, 1);
  heard.onMissed({ host: h3, generation: 2, incarnation: 0 });
  assert.deepEqual(got, []);
  begin(part);
  assert.deepEqual(got, ["dead h2 1", "missed h3 2"]);
  heard.onMissed({ host: h2, generation: 2, incarnation: 0 });
  assert.deepEqual(got.slice(2), ["missed h2 2"]);
  const flooded = passedOn();
  for (let count = 0; count < mostEarly + 10; count += 1) flooded.heard.onDeath(h2, count);
  got.length = 0;
  flooded.begin(part);
  assert.equal(got.length, mostEarly);
});
