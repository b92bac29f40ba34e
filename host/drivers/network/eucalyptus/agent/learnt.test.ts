import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { formatIpv4, parseIpv4 } from "../../../../../model/addresses/addresses.ts";
import { type Allocation, writeAllocation } from "../../../../../model/eucalyptus/allocation/allocation.ts";
import { allocationFile, machineFile, startAgent, viewFile } from "./agent.ts";

/* SYSTEM, on a machine of which nothing is there but its bridge, two taps and what is heard at one of them. */

const recorded = readFileSync(join(import.meta.dirname, "..", "cases", "edge-03-two-nodes-n1", "gni.xml"), "utf8");
const view = recorded
  .replace("<value>EDGE</value>", "<value>SYSTEM</value>")
  .replaceAll(/<(privateIp|publicIp)>[^<]*</g, "<$1>0.0.0.0<");
const links = ["br0", "vn_i-a7f05959", "vn_i-c1c2c3c4"].map((ifname, at) => ({
  ifname,
  ifindex: at + 1,
  flags: ["UP"],
  address: "02:00:00:00:00:01",
}));

test("while a view is not in place whole, an instance that says ever other addresses has one, and those of before stay named", async () => {
  const directory = mkdtempSync(join(tmpdir(), "cells-euca-"));
  const earlier = "1.119.128.37";
  let said = parseIpv4("10.0.0.1") ?? assert.fail();
  let isWhole = false;
  const told: Allocation[] = [];
  const ends: (() => Promise<void>)[] = [];
  const named = (): readonly string[] =>
    (told.at(-1)?.instances ?? []).flatMap(({ id, privateIp }) =>
      privateIp === undefined ? [] : `${id} ${formatIpv4(privateIp.address)} ${privateIp.state}`,
    );
  try {
    writeFileSync(join(directory, viewFile), view);
    writeFileSync(join(directory, machineFile), "VNET_BRIDGE=br0\n");
    // Of a process of before.
    const privateIp = { address: parseIpv4(earlier) ?? 0, state: "assigned" } as const;
    writeFileSync(join(directory, allocationFile), writeAllocation({ instances: [{ id: "i-c1c2c3c4", privateIp }] }));
    const agent = await startAgent({
      directory,
      self: { address: "10.111.5.43", peer: "node" },
      run: async (program, args) => {
        if (program === "ip" && args[0] === "-j") return JSON.stringify(links);
        if (program === "ip" && args[0] !== "-V" && !isWhole) throw new Error("ip ended with 2: no");
        return "";
      },
      signals: new EventEmitter(),
      log: () => {},
      told: (allocation) => told.push(allocation),
      programs: {
        learner: {
          read: async () => [{ device: 2, mac: "d0:0d:a7:f0:59:59", holds: false, heard: said, works: true }],
          apply: async () => {},
        },
      },
    });
    ends.push(() => agent.stop());
    for (let look = 0; look < 5; look += 1) {
      said += 1;
      await agent.look();
      assert.notDeepEqual(agent.state.failed, {});
      assert.deepEqual(named(), [`i-a7f05959 ${formatIpv4(said)} failed`, `i-c1c2c3c4 ${earlier} failed`]);
    }
    isWhole = true;
    await agent.look();
    assert.deepEqual(named(), [`i-a7f05959 ${formatIpv4(said)} assigned`]);
  } finally {
    for (const end of ends) await end();
    rmSync(directory, { recursive: true, force: true });
  }
});
