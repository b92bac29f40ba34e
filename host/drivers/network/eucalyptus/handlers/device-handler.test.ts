import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { PartlyFailed } from "../../service/mode-driver.ts";
import type { Learner, WatchedTap } from "../learn/learn.ts";
import { DeviceHandler } from "./device-handler.ts";
import { readDevices } from "./devices.ts";
import { mostTaps } from "./learning.ts";
import type { Run } from "./run.ts";

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

test("devices are read again where one was touched, and otherwise taken as they were found", async () => {
  const made: string[] = [];
  let watched: readonly WatchedTap[] = [];
  const shown = ["br0", "vn_i-5"].map((ifname, at) => ({
    ifname,
    ifindex: at + 7,
    address: "02:00:00:00:00:01",
    flags: ["UP"],
    ...(ifname === "br0" ? {} : { master: "br0", linkinfo: { info_slave_data: { hairpin: true } } }),
  }));
  const run: Run = async (program, args) => {
    made.push([program, ...args].join(" "));
    return program === "ip" && args[0] === "-j" ? JSON.stringify(shown) : "";
  };
  const learner: Learner = {
    read: async () => [],
    async apply(taps) {
      watched = taps;
    },
  };
  const handler = new DeviceHandler({ run, learner });
  const tap = { name: "vn_i-5", bridge: "br0", mac: "02:00:00:00:00:05" };
  const wanted = { ...plan, bridges: [], taps: [tap], holds: true };
  const expected = [{ device: 8, mac: tap.mac, holds: true }];
  // The tap is made, and what watches it knows it by a number that it did not have before.
  assert.equal(await handler.apply(wanted, found), null);
  assert.ok(made.some((call) => call.startsWith("ip -j")));
  assert.deepEqual(watched, expected);
  watched = [];
  const devices = await readDevices(run);
  made.length = 0;
  assert.equal(await handler.apply(wanted, { ...found, devices }), devices);
  assert.deepEqual([made, watched], [[], expected]);
});

test("taps for which the program that watches has no room are told one by one, and the others are watched", async () => {
  const taps = Array.from({ length: mostTaps + 2 }, (_, at) => ({
    name: `vn_i-${at}`,
    bridge: "br0",
    mac: "d0:0d:00:00:00:01",
  }));
  const links = taps.map(({ name }, at) => ({
    ifname: name,
    ifindex: at + 1,
    flags: ["UP"],
    master: "br0",
    address: "fe:00:00:00:00:01",
  }));
  const all = [{ ifname: "br0", ifindex: 9999, flags: ["UP"], address: "02:00:00:00:00:01" }, ...links];
  const run: Run = async (_program, args) => (args[0] === "-j" ? JSON.stringify(all) : "");
  let watched: readonly WatchedTap[] = [];
  const learner: Learner = {
    read: async () => [],
    apply: async (wanted) => {
      watched = wanted;
    },
  };
  const handler = new DeviceHandler({ run, learner });
  const devices = await readDevices(run);
  const wanted = { ...plan, bridges: [], wire: "", taps, holds: true };
  const error = await handler.apply(wanted, { devices, tags: [], heard: [] }).then(
    () => null,
    (reason: Error) => reason,
  );
  assert.equal(watched.length, mostTaps);
  const why = "this machine watches the first 4096 taps, and it is none of these";
  assert.deepEqual(partsOf(error), [
    ["vn_i-4096", `the tap vn_i-4096 is not watched: ${why}`],
    ["vn_i-4097", `the tap vn_i-4097 is not watched: ${why}`],
  ]);
  const heard = watched.map((tap) => ({ ...tap, heard: null, works: true }));
  assert.ok(handler.isDue(wanted, { devices, tags: [], heard }), "it is said until there is room");
  const fewer = { ...wanted, taps: taps.slice(2) };
  const now = watched.slice(2).map((tap) => ({ ...tap, heard: null, works: true }));
  await handler.apply(fewer, { devices, tags: [], heard: now });
  assert.equal(watched.length, mostTaps);
  const source = readFileSync(join(import.meta.dirname, "..", "learn", "learn.c"), "utf8");
  assert.ok(source.includes(`#define MOST_TAPS ${mostTaps}\n`));
});
