import assert from "node:assert/strict";
import { test } from "node:test";
import type { CapacityAnswer } from "../../../model/contract/operator/placement.ts";
import { failure, scene } from "../model/scene.testing.ts";
import { type CapacityOptions, showCapacity } from "./capacity.ts";

const answer: CapacityAnswer = {
  like: "shop/web",
  memoryMiB: 512,
  cpus: 1,
  more: 17,
  hosts: 3,
  runsOut: "memory",
  away: [{ kind: "dedicated", hosts: 1 }],
};

test("cells capacity says how many more fit, what runs out, what keeps hosts away, and what is left after a loss", async (t) => {
  const asked: string[] = [];
  const said = async (body: CapacityAnswer, options: CapacityOptions): Promise<readonly string[]> => {
    const { context, printed } = await scene(t, ({ url }) => {
      asked.push(url);
      return { status: 200, body };
    });
    await showCapacity(context, options);
    return printed;
  };
  assert.deepEqual(await said(answer, { like: "shop/web" }), [
    "17 more fit at 3 hosts (like shop/web, 512 MiB and 1 processor); memory runs out first",
    "1 host not counted: dedicated, or held by who is there",
  ]);
  const failures = { hosts: 1, more: 9, lost: ["h2" as never], stranded: 2, every: true };
  const none = { ...answer, like: null, more: 0, hosts: 0, away: [], failures };
  assert.deepEqual(await said(none, { memory: 512, failures: 1 }), [
    "no more fits (512 MiB and 1 processor): memory runs out first",
    "after the loss of any 1 host: 9 more, with h2 lost",
    "! 2 VMs of theirs would have no place",
  ]);
  assert.deepEqual(asked, ["/placement/capacity?like=shop%2Fweb", "/placement/capacity?memoryMiB=512&failures=1"]);
});

test("what is asked has to be one VM, or its room", async (t) => {
  const { context } = await scene(t, () => assert.fail("nothing is asked"));
  for (const wrong of [{}, { like: "shop/web", memory: 5 }, { like: "shop/web", cpus: 1 }, { cpus: 1 }])
    assert.match((await failure(showCapacity(context, wrong))).message, /^say --like/);
});
