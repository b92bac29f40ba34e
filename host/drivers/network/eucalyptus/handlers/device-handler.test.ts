import assert from "node:assert/strict";
import { test } from "node:test";
import { PartlyFailed } from "../../service/mode-driver.ts";
import { DeviceHandler } from "./device-handler.ts";

/* With a tool that is none: what is asked of it one behind the other ends at the first that fails, as `ip -batch` does. */

const plan = {
  bridge: null,
  bridges: [5, 6, 7].map((tag) => ({ name: `sg-${tag}`, tag, gateway: null, prefixLength: 28 })),
  wire: "em2",
  tunnels: [],
  taps: [5, 6, 7].map((tag) => ({ name: `vn_i-${tag}`, bridge: `sg-${tag}` })),
  learns: false,
  holds: false,
  forwards: false,
  filtersBridges: null,
};
const found = { devices: { links: new Map(), forwards: false, filtersBridges: false }, tags: [], heard: [] };

/** @param fails whether a call does */
const applied = async (fails: (call: string) => boolean) => {
  const made: string[] = [];
  const handler = new DeviceHandler({
    run: async (_program, args, input = "") => {
      const isBatch = args[0] === "-batch";
      for (const [at, call] of (isBatch ? input.trimEnd().split("\n") : [args.join(" ")]).entries()) {
        if (fails(call))
          throw new Error(
            `ip ended with 1: RTNETLINK answers: File exists${isBatch ? `\nCommand failed -:${at + 1}` : ""}`,
          );
        made.push(call);
      }
      return "";
    },
  });
  const error = await handler.apply(plan, found).then(
    () => null,
    (reason: Error) => reason,
  );
  return { made, error };
};
const partsOf = (error: Error | null): unknown => (error instanceof PartlyFailed ? [...error.parts] : error);

test("a group whose VLAN cannot be made is told by its name and tag, and keeps no other from its devices and taps", async () => {
  const { made, error } = await applied((call) => call.includes("name vl_6 "));
  assert.deepEqual(partsOf(error), [
    ["sg-6", "the group sg-6 (tag 6) is not in place: ip ended with 1: RTNETLINK answers: File exists"],
  ]);
  for (const call of [
    "link set dev vl_5 master sg-5",
    "link set dev vl_7 addrgenmode none up",
    "link set dev vn_i-7 up",
  ])
    assert.ok(made.includes(call), made.join("\n"));
  // Whatever has its name is nobody's port.
  assert.ok(!made.some((call) => call.includes("vl_6")), made.join("\n"));
  assert.equal(new Set(made).size, made.length, "nothing is made twice");
});

test("each of several that fail is told, also the last one and a tap", async () => {
  const { made, error } = await applied((call) => /name vl_[57] |dev vn_i-6 master/.test(call));
  assert.deepEqual([...(error as PartlyFailed).parts.keys()], ["sg-5", "sg-7", "vn_i-6"]);
  assert.ok(made.includes("link set dev vl_6 addrgenmode none up") && made.includes("link set dev vn_i-7 up"));
  assert.ok(!made.includes("link set dev vn_i-6 up"));
  assert.equal((await applied(() => false)).error, null);
});

test("what is of no group fails for all", async () => {
  const { error } = await applied((call) => call.includes("vl_probe"));
  // The wire has that VLAN: nothing failed.
  assert.equal(error, null);
  const gone = await applied((call) => call === "link delete dev vl_probe");
  assert.ok(gone.error !== null && !(gone.error instanceof PartlyFailed));
});
