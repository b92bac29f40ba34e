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

/** What the programs say that are asked for at once: no rule at a bridge, no set, devices, no switch. */
const readings = ["", "", JSON.stringify(links), ""].join("\0");

test("while a view is not in place whole, an instance that says ever other addresses has one, another at most once a minute, and those of before stay named", async () => {
  const directory = mkdtempSync(join(tmpdir(), "cells-euca-"));
  const earlier = "1.119.128.37";
  let said = parseIpv4("10.0.0.1") ?? assert.fail();
  let isWhole = false;
  let nowMs = 0;
  const logged: string[] = [];
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
        if (program === "sh") return readings;
        if (program === "ip" && args[0] !== "-V" && !isWhole) throw new Error("ip ended with 2: no");
        return "";
      },
      signals: new EventEmitter(),
      log: (event, { what = "" }) => void logged.push(`${event} ${what}`),
      now: () => nowMs,
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
      nowMs += 60_000;
      await agent.look();
      assert.notDeepEqual(agent.state.failed, {});
      assert.deepEqual(named(), [`i-a7f05959 ${formatIpv4(said)} failed`, `i-c1c2c3c4 ${earlier} failed`]);
    }
    isWhole = true;
    await agent.look();
    assert.deepEqual(named(), [`i-a7f05959 ${formatIpv4(said)} assigned`]);
    // In turns: the one that was told stays, and it is said that there is another.
    const [steady, before] = [said, told.length];
    for (let look = 0; look < 10; look += 1) {
      said = steady + ((look + 1) % 2);
      nowMs += 5_000;
      await agent.look();
    }
    assert.equal(told.length, before, "nobody is told of each turn");
    const unsteady = logged.filter((line) => line.startsWith("network-addresses-unsteady"));
    assert.deepEqual(unsteady, [
      `network-addresses-unsteady i-a7f05959 says ${formatIpv4(steady)} and ${formatIpv4(steady + 1)}: the first is told, and another one once a minute`,
    ]);
    said = steady + 1;
    nowMs += 60_000;
    await agent.look();
    assert.deepEqual(named(), [`i-a7f05959 ${formatIpv4(steady + 1)} assigned`], "another one in the end");
  } finally {
    for (const end of ends) await end();
    rmSync(directory, { recursive: true, force: true });
  }
});

test("a program that hangs is not waited for at the end, and is named; what was put in place is not said to be gone", {
  timeout: 60_000,
}, async () => {
  const directory = mkdtempSync(join(tmpdir(), "cells-euca-"));
  const logged: string[] = [];
  let hangs = false;
  let release = (): void => undefined;
  let started = (): void => undefined;
  const hanging = new Promise<string>((resolve) => {
    release = () => resolve("");
  });
  try {
    writeFileSync(join(directory, viewFile), view);
    writeFileSync(join(directory, machineFile), "VNET_BRIDGE=br0\n");
    const agent = await startAgent({
      directory,
      self: { address: "10.111.5.43", peer: "node" },
      run: async (program, args) => {
        if (program === "ip" && args[0] === "-j") return JSON.stringify(links);
        if (program === "sh") return readings;
        if (!hangs || program !== "iptables-save") return "";
        started();
        return hanging;
      },
      signals: new EventEmitter(),
      log: (event, { why = "" }) => void logged.push(`${event} ${why}`),
      longestStopMs: 50,
    });
    hangs = true;
    const isHanging = new Promise<void>((resolve) => {
      started = resolve;
    });
    void agent.look();
    await isHanging;
    await assert.rejects(agent.leave(), /what was put in place stays: the last pass .* has come to no end/);
    assert.deepEqual(
      logged.filter((line) => line.startsWith("network-stops-late")),
      ["network-stops-late the last pass was not over after 0.05 s, and waits for iptables-save: it is not waited for"],
    );
  } finally {
    release();
    await hanging;
    rmSync(directory, { recursive: true, force: true });
  }
});
