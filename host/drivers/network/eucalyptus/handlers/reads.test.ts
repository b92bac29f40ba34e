import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Machine } from "../../diverter/testing/namespaces.testing.ts";
import { planOf, World } from "../packets/world.testing.ts";
import type { LocalConfiguration, LocalPlan } from "../plan/plan.ts";
import { gathered, type Run, runner, scriptOf } from "./run.ts";
import { applySets, readSets, setChanges } from "./sets.ts";
import { readTables, TableHandler } from "./tables.ts";

/* Which of the system's programs a pass starts, with the real ones. */

const plan = (more: Partial<LocalConfiguration> = {}, name = "edge-03-two-nodes-n1", port = 3306): LocalPlan =>
  planOf(
    readFileSync(join(import.meta.dirname, "..", "cases", name, "gni.xml"), "utf8").replace(
      "<fromPort>3306",
      `<fromPort>${port}`,
    ),
    "10.111.5.43",
    { bridgeMac: "02:00:00:00:00:FE", ...more },
  );
const world = new World();
let node: Machine;
let run: Run;
before(async () => {
  node = await world.machine();
  run = world.run(node);
  node.run("ip", "link", "add", "em1", "type", "veth", "peer", "name", "other");
  for (const device of ["em1", "other"]) node.run("ip", "link", "set", device, "up");
  node.run("ip", "link", "add", "br0", "type", "bridge");
});
after(() => world.end());

test("a look reads each tool once, a rule is read back as its chain alone, and a flush reads nothing again", async () => {
  const started: string[] = [];
  // Nobody waits for what is announced.
  const service = world.service(node, "node", (program, args, input) => {
    if (program !== "arping") started.push([program, ...args].join(" "));
    return run(program, args, input);
  });
  const startedBy = async (pass: () => Promise<void>): Promise<readonly string[]> => {
    started.length = 0;
    await pass();
    assert.deepEqual(service.state.failed, {});
    return [...started];
  };
  const offer = (global: LocalPlan) => service.offer({ mode: "EDGE", global });
  await startedBy(() => offer(plan()));
  const others = [
    "ebtables-nft-save",
    "ipset save",
    "ip -j -d address show",
    "sysctl -e net.ipv4.ip_forward net.bridge.bridge-nf-call-iptables",
  ];
  const reads = ["iptables-save", `sh -c ${scriptOf(others)} ebtables-nft-save or ipset or ip or sysctl`];
  assert.deepEqual(await startedBy(() => service.look()), reads);
  const changed = await startedBy(() => offer(plan({}, "edge-03-two-nodes-n1", 3305)));
  assert.deepEqual(changed, [...reads, "iptables-restore --noflush", "iptables -t filter -S sg-11aa22bb"]);
  assert.match(node.run("iptables-save"), /-A sg-11aa22bb .*--dport 3305:3306 -j ACCEPT/);
  assert.deepEqual(await startedBy(() => service.look()), reads, "it is as it was read back");
  const written = [
    ...["ebtables-nft-restore --noflush", "ebtables-nft-save"],
    ...["iptables-restore --noflush", "iptables -t filter -S"],
    ...["iptables-restore --noflush", "iptables -t nat -S"],
  ];
  assert.deepEqual(await startedBy(() => service.flush()), [...reads, ...written]);
  assert.deepEqual(await startedBy(() => service.look()), reads);
  // What a call has taken away, also of another's table, the next one does not find there any more.
  await startedBy(() => offer(plan({ metadataHere: true })));
  const both = await startedBy(async () => void (await Promise.all([offer(plan()), service.flush()])));
  assert.equal(both.filter((each) => each.startsWith("iptables-restore")).length, 2, both.join("\n"));
  assert.ok(!node.run("iptables-save").includes("CELLS_METADATA"));
  assert.deepEqual(await startedBy(() => service.look()), reads);
  // A rule that is deleted by hand comes back.
  const whole = node.run("iptables", "-S");
  node.run("iptables", "-D", "sg-11aa22bb", "1");
  const mended = await startedBy(() => service.look());
  assert.deepEqual(mended, [...reads, "iptables-restore --noflush", "iptables-save"]);
  assert.equal(node.run("iptables", "-S"), whole);
  await service.leave();
});

test("what was read back of a table or chain is what a save prints, chain by chain", async () => {
  for (const [name, peer] of [
    ["edge-03-two-nodes-n1", "node"],
    ["managed-02-two-groups", "network"],
  ] as const) {
    const wanted =
      peer === "node"
        ? plan({ outgoingClosed: true, metadataHere: true })
        : planOf(
            readFileSync(join(import.meta.dirname, "..", "cases", name, "gni.xml"), "utf8"),
            "10.111.1.54",
            {},
            peer,
          );
    await applySets(run, setChanges(await readSets(run), wanted.sets));
    const handler = new TableHandler(run, "iptables");
    for (const table of [...wanted.own.iptables, ...wanted.iptables]) {
      const told = await handler.apply([table], await readTables(run, "iptables"), [
        ...wanted.iptables,
        ...wanted.own.iptables,
      ]);
      assert.deepEqual([...told].sort(), [...(await readTables(run, "iptables"))].sort(), `${name} ${table.name}`);
    }
    await handler.clear(wanted.iptables, await readTables(run, "iptables"));
  }
});

test("were the words of a chain alone others than a save's, it would be written once more, and not for ever", async () => {
  const wanted = [
    { name: "filter", chains: [{ name: "EUCA_TRIED", policy: null, rules: [["-p", "tcp", "-j", "ACCEPT"]] }] },
  ] as const;
  const other: Run = async (program, args, input) => {
    const said = await run(program, args, input);
    return program === "iptables" ? said.replaceAll("-p tcp", "--protocol tcp") : said;
  };
  const handler = new TableHandler(other, "iptables");
  const times: number[] = [];
  for (let look = 0; look < 4; look += 1) {
    await handler.apply(wanted, await readTables(other, "iptables"));
    times.push(handler.written.length);
  }
  assert.deepEqual(times, [1, 1, 0, 0]);
  await handler.clear(wanted, await readTables(other, "iptables"));
});

test("programs that are asked for at once are one process, which says each its own, fails as the first does, and ends with all in it", async () => {
  const started: string[] = [];
  const counting: Run = (program, args, input) => {
    started.push(program);
    return runner()(program, args, input);
  };
  const together = gathered(counting);
  assert.deepEqual(
    await Promise.all([together("echo", ["one"]), together("true", []), together("echo", ["-n", "two"])]),
    ["one\n", "", "two"],
  );
  assert.deepEqual(started.splice(0), ["sh"]);
  assert.equal(await together("echo", ["alone"]), "alone\n");
  // What is more than a word is read by no shell, and what has an input is nobody else's.
  assert.deepEqual(
    await Promise.all([
      together("echo", ["$(id)"]),
      together("echo", ["a b"]),
      together("cat", [], "c"),
      together("echo", ["d"]),
    ]),
    ["$(id)\n", "a b\n", "c", "d\n"],
  );
  assert.deepEqual(started.splice(0), ["echo", "echo", "echo", "cat", "echo"]);
  const failing = await Promise.allSettled([
    together("echo", ["one"]),
    together("ls", ["/nowhere"]),
    together("echo", ["two"]),
  ]);
  for (const each of failing)
    assert.match(String(each.status === "rejected" && each.reason), /sh ended with 2: .*\/nowhere/);
  const ended = new Promise((resolve) => {
    const child = spawn("sh", ["-c", scriptOf(["sleep 100", "echo no"])]);
    child.on("close", resolve);
    // The shell has told what to do at its end before it starts anything.
    setTimeout(() => child.kill("SIGTERM"), 200);
  });
  await ended;
});
