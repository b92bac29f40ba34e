import assert from "node:assert/strict";
import { test } from "node:test";
import { parseIpv4 } from "../../../../../model/addresses/addresses.ts";
import type { DeviceAddress } from "../plan/plan.ts";
import { applyAddresses, prolong } from "./devices.ts";
import type { Run } from "./run.ts";

/* Addresses of a network host under a lease, with what would be run. */
const at = (last: number): DeviceAddress => ({
  device: "em1",
  address: parseIpv4(`10.0.0.${last}`) ?? 0,
  prefixLength: 32,
  announced: true,
});
const shown = [{ ifname: "em1", addr_info: [{ family: "inet", local: "10.0.0.1", prefixlen: 32 }] }];

test("a lease that goes on is said of addresses that are there, and brings none that are on their way", async () => {
  const batches: string[] = [];
  const run: Run = async (_program, _args, input) => {
    if (input !== undefined) batches.push(input);
    return JSON.stringify(shown);
  };
  await prolong(
    run,
    () => [at(1), at(2)],
    () => 3,
  );
  await prolong(
    run,
    () => [at(1), at(2)],
    () => null,
  );
  // It was over when it was known which are there.
  await prolong(
    run,
    () => [at(1)],
    () => 0,
  );
  // Nobody wants it any more since then.
  let wanted = [at(1)];
  const letsGo: Run = (...words) => {
    wanted = [];
    return run(...words);
  };
  await prolong(
    letsGo,
    () => wanted,
    () => 3,
  );
  assert.deepEqual(batches, [
    "address change 10.0.0.1/32 dev em1 valid_lft 3 preferred_lft 3\n",
    "address change 10.0.0.1/32 dev em1 valid_lft forever preferred_lft forever\n",
  ]);
});

test("an address comes for as long as the lease lasts then, and none comes after it", async () => {
  const ran: string[] = [];
  const run: Run = async (program, args) => {
    ran.push([program, ...args].join(" "));
    return "";
  };
  const left = [3, 2, 0];
  const added = [at(1), at(2), at(3)];
  await assert.rejects(
    applyAddresses(run, { added, removed: [] }, () => left.shift() ?? 0),
    /the lease .* is over/,
  );
  assert.deepEqual(ran, [
    "ip address add 10.0.0.1/32 dev em1 valid_lft 3 preferred_lft 3",
    "ip address add 10.0.0.2/32 dev em1 valid_lft 2 preferred_lft 2",
  ]);
});

test("without a lease a thousand addresses are a few calls, and one that has gone by itself keeps no other", async () => {
  const calls: string[][] = [];
  const gone = new Set(["10.0.0.3/32", "10.0.0.7/32"]);
  const run: Run = async (_program, args, input = "") => {
    const lines = args[0] === "-batch" ? input.trimEnd().split("\n") : [args.join(" ")];
    const done: string[] = [];
    calls.push(done);
    for (const [at, line] of lines.entries()) {
      if (line.startsWith("address del") && gone.has(line.split(" ")[2] ?? ""))
        throw new Error(`RTNETLINK answers: Address not found\nCommand failed -:${at + 1}`);
      done.push(line);
    }
    return "";
  };
  const removed = Array.from({ length: 8 }, (_, at) => ({ device: "em1", address: `10.0.0.${at}/32` }));
  await applyAddresses(run, { added: [], removed });
  assert.deepEqual(
    calls.flat(),
    removed.filter(({ address }) => !gone.has(address)).map(({ address }) => `address del ${address} dev em1`),
  );
  calls.length = 0;
  const many = Array.from({ length: 1000 }, (_, at) => ({
    device: "em1",
    address: 0x0a000000 + at,
    prefixLength: 32,
    announced: false,
  }));
  await applyAddresses(run, { added: many, removed: [] });
  assert.deepEqual([calls.length, calls.flat().length], [5, 1000]);
  assert.equal(calls.flat().at(-1), "address add 10.0.3.231/32 dev em1");
});
