import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { readView } from "../../../../../model/eucalyptus/view/read-view.ts";
import type { Machine } from "../../diverter/testing/namespaces.testing.ts";
import { type NetworkAgent, startAgent } from "../agent/agent.ts";
import { ViewFile } from "../agent/view-file.ts";
import { World } from "./world.testing.ts";

/*
 * Two network hosts of one cluster with the real kernel: who is not told in time that it carries on has let its addresses go by itself, also where its
 * process stands still, and one that goes on late brings none of them back.
 */

const recorded = readFileSync(join(import.meta.dirname, "..", "cases", "managed-02-two-groups", "gni.xml"), "utf8");
const elastic = "10.111.101.60";
const addresses = { a: "10.111.1.54", b: "10.111.1.55" } as const;
const viewNaming = (name: keyof typeof addresses) => {
  const text = recorded
    .replace("<value>MANAGED</value>", "<value>MANAGED-NOVLAN</value>")
    .replaceAll(addresses.a, addresses[name]);
  const read = readView(text);
  return read.ok ? read.value.view : assert.fail(JSON.stringify(read.error));
};

const leaseMs = 5000;
const world = new World();
const machines = new Map<string, Machine>();
const of = (name: string): Machine => machines.get(name) ?? assert.fail(name);
const hosts = new Map<string, { readonly agent: NetworkAgent; readonly views: ViewFile }>();
const host = (name: string) => hosts.get(name) ?? assert.fail(name);
const has = (name: string): boolean => of(name).run("ip", "-4", "-o", "address").includes(elastic);
const answers = (): boolean => of("outside").succeeds("arping", "-c", "1", "-w", "1", "-I", "net", elastic);

before(async () => {
  for (const name of ["a", "b", "outside"]) machines.set(name, await world.machine());
  const outside = of("outside");
  outside.run("ip", "link", "add", "net", "type", "bridge");
  outside.run("ip", "link", "set", "net", "up");
  outside.run("ip", "address", "add", "10.111.1.50/16", "dev", "net");
  for (const name of ["a", "b"] as const) {
    const machine = of(name);
    machine.cable("em1", outside, `to-${name}`);
    outside.run("ip", "link", "set", `to-${name}`, "master", "net");
    machine.run("ip", "link", "add", "em2", "type", "bridge");
    machine.run("ip", "address", "add", `${addresses[name]}/16`, "dev", "em1");
    const directory = join(world.directory, name);
    mkdirSync(directory);
    writeFileSync(join(directory, "eucalyptus.conf"), "VNET_PRIVINTERFACE=em2\n");
    const views = new ViewFile(directory, (why) => assert.fail(why));
    const self = { address: addresses[name], peer: "network" } as const;
    const { lease } = views;
    const more = { signals: new EventEmitter(), log: () => {}, periodMs: 600_000, run: world.run(machine), lease };
    const agent = await startAgent({ directory, self, ...more });
    hosts.set(name, { agent, views });
    views.follow(agent);
  }
});
after(async () => {
  for (const { agent } of hosts.values()) await agent.leave().catch(() => undefined);
  await world.end();
});

/** On a machine that others use, too. */
async function within(isSo: () => boolean): Promise<boolean> {
  for (const until = performance.now() + 20_000; performance.now() < until; ) {
    if (isSo()) return true;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
}
/** It is told that it carries on, as a Host Manager is each second; until what is returned is called. */
const keeps = (name: string): (() => void) => {
  const timer = setInterval(() => host(name).views.hold(leaseMs), 500);
  timer.unref();
  return () => clearInterval(timer);
};

test("a network host that is told nothing any more has let its addresses go, and another one has them", async () => {
  const [a, b] = [host("a"), host("b")];
  b.views.hold(0);
  b.views.put(viewNaming("a"));
  const end = keeps("a");
  a.views.put(viewNaming("a"));
  assert.ok(await within(() => has("a")));
  assert.ok(answers());
  // For longer than one lease, as long as it is told.
  await new Promise((resolve) => setTimeout(resolve, leaseMs + 1000));
  assert.ok(await within(() => has("a")));
  end();
  // Its process does nothing from now on.
  assert.ok(await within(() => !has("a")), "the kernel has taken it away");
  assert.ok(!answers());
  const endOther = keeps("b");
  b.views.put(viewNaming("b"));
  assert.ok(await within(() => has("b")));
  assert.ok(answers());
  endOther();
  b.views.hold(null);
  // It goes on, and has heard nothing yet.
  await a.agent.look();
  assert.ok(!has("a"));
});

test("a network host without a lease keeps its addresses, also one that had one", async () => {
  // That is its last word on it.
  await new Promise((resolve) => setTimeout(resolve, leaseMs + 2000));
  assert.ok(has("b") && answers());
});
