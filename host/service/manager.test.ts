import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { DesiredVm } from "../../core/documents/vocabulary.ts";
import { hostName, peerName, uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { MachineCondition } from "../drivers/hypervisor/driver.ts";
import type { Outcome } from "../host-requests.ts";
import type { ProbeTarget } from "../liveness/liveness.ts";
import { askedOf, desiredVm, policy, Room, shop } from "./manager.testing.ts";
import type { Action } from "./planner.ts";

test("network, then machine; a tombstone stops it, frees everything and only then withdraws its state", () => {
  const room = new Room();
  room.found();
  room.desire("vm/a", desiredVm("a", 1));
  room.settle();
  assert.equal(room.vm("a")?.phase, "waiting");
  assert.match(room.vm("a")?.reason ?? "", /rules of cell shop have not reached/);
  room.desire("policy/shop", policy());
  room.settle();
  assert.deepEqual(room.vm("a"), {
    incarnation: 1,
    power: "on",
    ended: null,
    phase: "ready",
    reason: null,
    probes: null,
  });
  assert.ok(room.published.has("location/10.64.0.97"));
  assert.deepEqual([...room.subscribed], ["host.h2"]);
  const seen: (string | undefined)[] = [];
  room.fails = () => {
    seen.push(room.vm("a")?.power);
    return null;
  };
  room.log.length = 0;
  room.desire("vm/a", null);
  assert.equal(room.published.has("location/10.64.0.97"), false);
  room.settle();
  assert.deepEqual(room.log, ["stop-machine a", "implement-network", "release-disks a"]);
  assert.deepEqual(seen, ["on", "off", "off"]);
  assert.equal(room.vm("a"), undefined);
  assert.deepEqual([...room.durable.keys()], ["cell-number/shop", "in-force/shop", "over/controller.shop/a"]);
});

test("an ended machine is reported and left to its controller; the next incarnation starts after it is cleared away", () => {
  const room = new Room();
  room.found();
  room.desire("policy/shop", policy());
  room.desire("vm/a", desiredVm("a", 1));
  room.settle();
  room.machines.delete(uid("a"));
  room.ask({ kind: "machine-ended", end: { vm: uid("a"), incarnation: 1, ended: "crashed", detail: "killed" } });
  room.settle();
  assert.deepEqual(room.vm("a"), { incarnation: 1, power: "off", ended: "crashed", phase: "failed", reason: "killed" });
  room.desire("vm/a", desiredVm("a", 2));
  room.settle();
  assert.equal(room.vm("a")?.incarnation, 2);
  assert.equal(room.vm("a")?.power, "on");
  // An old document changes nothing.
  room.desire("vm/a", desiredVm("a", 1));
  room.settle();
  assert.equal(room.machines.get(uid("a")), 2);
});

test("a disk grows once while its machine runs, also over a restart; what went wrong is said and tried again", () => {
  const room = new Room();
  room.found();
  room.desire("policy/shop", policy());
  const vm = desiredVm("a", 1);
  room.desire("vm/a", vm);
  room.settle();
  const grown = (sizeMiB: number, busType: "virtio" | "ide" = "virtio") => ({
    ...vm,
    disks: vm.disks.map((disk) => ({ ...disk, busType, attachment: { ...disk.attachment, growToMiB: sizeMiB } })),
  });
  room.log.length = 0;
  room.fails = () => "QEMU refuses";
  room.desire("vm/a", grown(200));
  for (const action of room.next()) room.ask({ kind: "done", outcome: room.carryOut(action) });
  assert.deepEqual(room.vm("a")?.disks, [{ connection: "a-c", sizeMiB: null, reason: "QEMU refuses" }]);
  assert.equal(room.vm("a")?.phase, "ready");
  room.fails = () => null;
  room.input({ kind: "timer", name: "retry/a" });
  room.settle();
  assert.deepEqual(room.log, ["grow-disk a", "grow-disk a"]);
  assert.deepEqual(room.vm("a")?.disks, [{ connection: "a-c", sizeMiB: 200, reason: null }]);
  room.boot();
  room.found();
  room.settle();
  assert.deepEqual(room.log, ["grow-disk a", "grow-disk a", "implement-network"]);
  room.desire("vm/a", grown(300, "ide"));
  room.settle();
  assert.equal(room.log.length, 3, "a guest would not see it");
  assert.equal(room.vm("a")?.disks, undefined);
});

test("what ran when a host was switched off in order was stopped; after a power cut it has crashed", () => {
  for (const [switchedOff, ended] of [
    [true, "stopped"],
    [undefined, "crashed"],
  ] as const) {
    const room = new Room();
    room.found();
    room.desire("policy/shop", policy());
    room.desire("vm/a", desiredVm("a", 1));
    room.settle();
    room.machines.clear();
    room.boot(true, switchedOff);
    room.found();
    room.settle();
    assert.deepEqual([room.vm("a")?.power, room.vm("a")?.ended], ["off", ended]);
    assert.match(room.vm("a")?.reason ?? "", ended === "stopped" ? /its host was switched off/ : /ended while/);
  }
});

test("a VM whose data would fill the host's memory is refused with the number, and never tried", () => {
  const room = new Room();
  room.found();
  room.desire("policy/shop", policy());
  room.desire("vm/a", desiredVm("a", 1, { data: Array.from({ length: 20_000 }, (_, at) => at) }));
  room.settle();
  assert.equal(room.startedOnce.size, 0);
  assert.equal(room.vm("a")?.phase, "failed");
  assert.match(room.vm("a")?.reason ?? "", /its x.data has 20000 attributes and items, and 1000 are allowed/);
});

test("a start that failed is told as an end only when its process is confirmed gone, also after a restart", () => {
  const room = new Room();
  room.found();
  room.desire("policy/shop", policy());
  room.desire("vm/a", desiredVm("a", 1));
  for (let stuck = false; !stuck; ) {
    const actions = room.next();
    assert.notEqual(actions.length, 0);
    for (const action of actions) {
      const outcome = room.carryOut(action);
      stuck = action.kind === "start-machine";
      const failed = { error: "a did not start", unconfirmed: true } as const;
      room.ask({ kind: "done", outcome: { ...outcome, ...(stuck ? failed : {}) } as Outcome });
    }
  }
  assert.equal(room.vm("a")?.ended, null);
  assert.equal(room.vm("a")?.power, "on", "its controller gives nothing of it away");
  assert.match(room.vm("a")?.reason ?? "", /a did not start; nothing of it is given away before it is gone/);

  room.boot();
  room.ask({ kind: "found", machines: [{ vm: uid("a"), incarnation: 1, pid: 1, ending: true }] });
  assert.equal(room.vm("a")?.power, "on");
  room.log.length = 0;
  room.settle();
  assert.deepEqual(room.log, ["implement-network", "stop-machine a", "implement-network", "release-disks a"]);
  const failed = { incarnation: 1, power: "off", ended: null, phase: "failed", reason: "a did not start" };
  assert.deepEqual(room.vm("a"), failed);
});

test("the VM that its host starts again: after its end, a failed start and silence, never after a refusal", () => {
  const room = new Room();
  room.found();
  room.desire("policy/shop", policy());
  const rest = (): void => {
    room.settle();
    room.input({ kind: "timer", name: "retry/a" });
    room.settle();
  };
  room.fails = (action) => (action.kind === "start-machine" ? "no such export" : null);
  room.desire("vm/a", desiredVm("a", 1, { restart: "host" }));
  room.settle();
  assert.equal(room.vm("a")?.phase, "waiting");
  room.fails = () => null;
  rest();
  assert.equal(room.vm("a")?.phase, "ready");
  room.machines.delete(uid("a"));
  room.ask({ kind: "machine-ended", end: { vm: uid("a"), incarnation: 1, ended: "crashed", detail: "killed" } });
  // Its controller, which runs in it, is to do nothing.
  assert.deepEqual([room.vm("a")?.ended, room.vm("a")?.phase], [null, "waiting"]);
  assert.ok(room.published.has("location/10.64.0.97"));
  rest();
  assert.deepEqual([room.vm("a")?.power, room.vm("a")?.incarnation], ["on", 1]);
  room.log.length = 0;
  room.desire("vm/a", desiredVm("a", 1, { restart: "host", ...probed }));
  room.ask({
    kind: "health",
    change: { vm: uid("a"), incarnation: 1, asked: askedOf("a"), health: "silent", reason: "no answer" },
  });
  rest();
  assert.deepEqual(room.log, ["stop-machine a", "release-disks a", "start-machine a"]);
  // After the Host Manager's own restart too, once it has looked for machines.
  room.machines.clear();
  room.boot();
  room.found();
  rest();
  assert.equal(room.machines.get(uid("a")), 1);
  room.desire("vm/a", desiredVm("a", 1, { restart: "host", power: "off" }));
  rest();
  assert.equal(room.machines.size, 0);
  room.desire("vm/b", desiredVm("b", 1, { restart: "host", memoryMiB: 4096 }));
  rest();
  assert.equal(room.vm("b")?.phase, "failed");
  room.desire("vm/b", desiredVm("b", 1, { restart: "host" }));
  rest();
  assert.equal(room.machines.has(uid("b")), false);
});

test("its host starts a VM again soon when it had answered, and not as fast when it had not", () => {
  for (const [answered, afterMs] of [
    [true, 500],
    [false, 3000],
  ] as const) {
    const room = new Room();
    room.found();
    room.desire("policy/shop", policy());
    room.desire("vm/a", desiredVm("a", 1, { restart: "host", ...probed }));
    room.settle();
    const change = { vm: uid("a"), incarnation: 1, asked: askedOf("a"), health: "answering", reason: null } as const;
    if (answered) room.ask({ kind: "health", change });
    room.machines.delete(uid("a"));
    const end = { vm: uid("a"), incarnation: 1, ended: "crashed", detail: "killed" };
    const effects = room.input({ kind: "request", id: 9, request: { kind: "machine-ended", end } });
    const timer = effects.find((effect) => effect.kind === "timer" && effect.name === "retry/a");
    assert.deepEqual(timer, { kind: "timer", name: "retry/a", afterMs });
    room.input({ kind: "timer", name: "retry/a" });
    room.settle();
    assert.equal(room.machines.get(uid("a")), 1);
  }
});

test("a start that failed is never repeated for that incarnation", () => {
  const room = new Room();
  room.found();
  room.fails = (action) => (action.kind === "start-machine" ? "no such export" : null);
  room.desire("policy/shop", policy());
  room.desire("vm/a", desiredVm("a", 1));
  room.settle();
  const { phase, ended, power, reason } = room.vm("a") ?? {};
  assert.deepEqual(
    { phase, ended, power, reason },
    { phase: "failed", ended: null, power: "off", reason: "no such export" },
  );
});

test("after a restart running machines are adopted; lost ones are reported; nothing is planned before the list", () => {
  const room = new Room();
  room.found();
  room.desire("policy/shop", policy());
  room.desire("vm/a", desiredVm("a", 1));
  room.desire("vm/b", desiredVm("b", 1));
  room.settle();
  room.input({
    kind: "actual",
    from: peerName("host.h2"),
    key: "location/10.64.0.200",
    value: {
      address: "10.64.0.200",
      host: "h2",
      hostMac: "02:00:00:00:01:02",
      cellNumber: 7,
      identity: 4,
      vmIdentity: 5,
      subnetIdentity: 3,
    },
  });
  room.settle();
  room.machines.delete(uid("b"));
  room.log.length = 0;
  room.boot();
  // In the very first snapshot: silence would mean "gone" to the controller.
  assert.equal(room.vm("a")?.power, "on");
  assert.equal(room.vm("b")?.power, "on");
  assert.deepEqual(room.next(), []);
  room.found();
  const [network] = room.next();
  assert.ok(network?.kind === "implement-network" && network.global.locations.length === 1);
  room.ask({ kind: "done", outcome: room.carryOut(network) });
  room.ask({ kind: "done", outcome: { kind: "release-disks", vm: uid("b"), error: null } });
  room.credentials.delete(uid("b"));
  room.settle();
  assert.equal(room.vm("a")?.phase, "ready");
  assert.equal(room.vm("b")?.ended, "crashed");
  assert.ok(!room.log.some((line) => line.startsWith("st")));
  // In step with h2, which no longer says it.
  room.input({ kind: "reachable", peer: peerName("host.h2"), reachable: true });
  assert.equal(room.next().length, 1);
});

test("who may ask and see: controllers their own cell, hosts the locations that concern them", () => {
  const room = new Room();
  room.found();
  room.desire("policy/shop", policy());
  room.desire("vm/a", desiredVm("a", 1));
  room.settle();
  const { service, state } = room;
  assert.equal(service.accepts(peerName("placer"), "vm/a"), false);
  assert.equal(service.accepts(shop, "policy/bank"), false);
  assert.equal(service.accepts(shop, "vm/../x"), false);
  assert.equal(service.entitled(state, peerName("host.h2"), "location/10.64.0.97"), true);
  assert.equal(service.entitled(state, peerName("host.h3"), "location/10.64.0.97"), false);
  assert.equal(service.entitled(state, peerName("controller.bank"), "controller.shop/vm/a"), false);
  assert.equal(service.entitled(state, shop, "controller.shop/vm/a"), true);
  assert.equal(service.entitled(state, peerName("placer"), "host"), true);
  // Only then is everyone who follows looked at again.
  const before = service.audience?.(state);
  room.desire("policy/shop", policy(["h1", "h2", "h3"]));
  assert.equal(service.audience?.(state), before);
  const [vif] = desiredVm("a", 1).interfaces;
  assert.ok(vif !== undefined);
  room.desire("vm/a", desiredVm("a", 1, { interfaces: [{ ...vif, audience: [hostName("h3")] }] }));
  assert.notEqual(service.audience?.(state), before);
  assert.equal(service.entitled(state, peerName("host.h3"), "location/10.64.0.97"), true);
  assert.equal(service.entitled(state, peerName("host.h2"), "location/10.64.0.97"), false);
  const bank = peerName("controller.bank");
  room.input({ kind: "desired", from: bank, key: "vm/a", value: desiredVm("a", 9) as unknown as Json });
  room.settle();
  assert.equal(room.vm("a")?.incarnation, 1);
  const target = { kind: "exec-target", vm: "shop/a", incarnation: null } as const;
  assert.deepEqual(room.ask({ ...target, client: shop }), { vm: "a", address: "10.64.0.97" });
  assert.ok("refused" in (room.ask({ ...target, client: bank }) as object));
});

test("no more memory is given out than the host offers, and a refusal says so", () => {
  const room = new Room();
  room.found();
  room.desire("policy/shop", policy());
  room.desire("vm/a", desiredVm("a", 1, { memoryMiB: 500 }));
  room.desire("vm/b", desiredVm("b", 1, { memoryMiB: 400 }));
  room.settle();
  assert.deepEqual([...room.machines.keys()], ["a"]);
  assert.match(room.vm("b")?.reason ?? "", /44 MiB of memory left and the VM needs 400 MiB, its machine 256 MiB more/);
  assert.deepEqual(
    [room.vm("b")?.phase, room.vm("b")?.ended],
    ["failed", null],
    "its controller may place it elsewhere",
  );
  room.desire("vm/a", null);
  room.settle();
  assert.deepEqual([...room.machines.keys()], [], "what was refused is never started later");
  room.desire("vm/b", desiredVm("b", 2, { memoryMiB: 400 }));
  room.settle();
  assert.deepEqual([...room.machines.keys()], ["b"]);
});

test("what each VM takes is said to Placers, from before its start until nothing of it runs, and CPUs are held to as well", () => {
  const room = new Room();
  room.found();
  const taken = () => Object.fromEntries([...room.published].filter(([key]) => key.startsWith("taken/")));
  room.desire("vm/a", desiredVm("a", 1, { cpus: 20 }));
  room.settle();
  // It waits for its cell's rules: its room is promised.
  assert.deepEqual([[...room.machines.keys()], taken()], [[], { "taken/a": { memoryMiB: 100, cpus: 20, by: shop } }]);
  room.desire("policy/shop", policy());
  room.settle();
  room.desire("vm/b", desiredVm("b", 1, { cpus: 13 }));
  room.settle();
  assert.match(room.vm("b")?.reason ?? "", /this host has 12 virtual CPUs left and the VM needs 13/);
  assert.deepEqual([[...room.machines.keys()], Object.keys(taken())], [["a"], ["taken/a"]]);
  room.desire("vm/b", desiredVm("b", 2, { cpus: 12 }));
  room.settle();
  assert.deepEqual(
    [[...room.machines.keys()], Object.keys(taken())],
    [
      ["a", "b"],
      ["taken/a", "taken/b"],
    ],
  );
  for (const name of ["a", "b"]) room.desire(`vm/${name}`, null);
  room.settle();
  assert.deepEqual([[...room.machines.keys()], taken()], [[], {}]);
  const sees = (peer: string) => room.service.entitled(room.state, peerName(peer), "taken/a");
  assert.deepEqual(["placer", "placer.2", "controller.shop", "host.h2"].map(sees), [true, true, false, false]);
});

const probed = {
  liveness: { protocol: "icmp", port: null, intervalMs: 500, failures: 3 },
} as const satisfies Partial<DesiredVm>;

test("what probes and the hypervisor say of a VM is published, survives a restart, and ends with its incarnation", () => {
  const room = new Room();
  room.found();
  room.desire("policy/shop", policy());
  room.desire("vm/a", desiredVm("a", 1, probed));
  const targets = () => room.ask({ kind: "probe-targets" }) as unknown as readonly ProbeTarget[];
  assert.deepEqual(targets(), []);
  room.settle();
  const expected = { vm: "a", incarnation: 1, interface: "a-i", liveness: probed.liveness, reboots: 0, stalled: false };
  assert.deepEqual(targets(), [{ ...expected, health: "starting" }]);
  assert.deepEqual([room.vm("a")?.phase, room.vm("a")?.health], ["working", "starting"]);
  const vm = uid("a");
  const health = (say: "answering" | "silent", reason: string | null, incarnation = 1) =>
    room.ask({ kind: "health", change: { vm, incarnation, asked: askedOf("a"), health: say, reason } });
  health("answering", null);
  assert.deepEqual([room.vm("a")?.phase, room.vm("a")?.health], ["ready", "answering"]);
  room.boot();
  room.found();
  room.settle();
  assert.equal(room.vm("a")?.health, "answering");

  const condition = (what: MachineCondition["condition"], detail: string, connections: readonly string[] = []) =>
    room.ask({ kind: "machine-condition", condition: { vm, incarnation: 1, condition: what, detail, connections } });
  condition("stalled", "Input/output error", ["a-c"]);
  assert.equal(room.vm("a")?.phase, "waiting");
  assert.match(room.vm("a")?.reason ?? "", /^its disk a-c gives errors: Input\/output error; it goes on when/);
  assert.equal(targets()[0]?.stalled, true);
  condition("running", "its disks answer again");
  assert.equal(room.vm("a")?.phase, "ready");
  condition("rebooted", "its guest reset itself");
  assert.deepEqual([room.vm("a")?.health, room.vm("a")?.reboots, room.vm("a")?.incarnation], ["starting", 1, 1]);
  health("answering", null);
  health("silent", "did not answer 3 ICMP probes in a row", 9);
  assert.equal(room.vm("a")?.health, "answering", "news of another incarnation");
  health("silent", "did not answer 3 ICMP probes in a row");
  assert.deepEqual([room.vm("a")?.phase, room.vm("a")?.power], ["failed", "on"]);
  // A guest that hangs is given no time to power off; one that listens is.
  const graces: (number | undefined)[] = [];
  room.fails = (action) => {
    if (action.kind === "stop-machine") graces.push(action.graceMs);
    return null;
  };
  room.desire("vm/a", desiredVm("a", 2, probed));
  room.settle();
  assert.deepEqual(
    [room.vm("a")?.incarnation, room.vm("a")?.health, room.vm("a")?.reboots],
    [2, "starting", undefined],
  );
  room.desire("vm/a", desiredVm("a", 3));
  room.settle();
  assert.deepEqual(graces, [0, 10_000]);
  assert.deepEqual(targets(), [], "without liveness it is not asked");
  assert.equal(room.vm("a")?.phase, "ready");
});

const event = fc.oneof(
  fc.record({
    kind: fc.constant("desire" as const),
    vm: fc.constantFrom("a", "b", "c"),
    raise: fc.nat(2),
    power: fc.constantFrom("on" as const, "off" as const),
  }),
  fc.record({ kind: fc.constant("tombstone" as const), vm: fc.constantFrom("a", "b", "c") }),
  fc.record({ kind: fc.constant("die" as const), vm: fc.constantFrom("a", "b", "c") }),
  fc.record({ kind: fc.constant("work" as const), actions: fc.nat(4), fail: fc.boolean() }),
  fc.constant({ kind: "restart" as const }),
);

test("property: whatever happens in between, planning ends, planning again does nothing, and what runs is what is wanted", () => {
  fc.assert(
    fc.property(fc.array(event, { minLength: 10, maxLength: 80, size: "max" }), (events) => {
      const room = new Room();
      room.found();
      room.desire("policy/shop", policy());
      const incarnations = new Map<string, number>();
      const pending: Action[] = [];
      for (const happening of events) {
        switch (happening.kind) {
          case "desire": {
            const incarnation = (incarnations.get(happening.vm) ?? 1) + happening.raise;
            incarnations.set(happening.vm, incarnation);
            room.desire(`vm/${happening.vm}`, desiredVm(happening.vm, incarnation, { power: happening.power }));
            break;
          }
          case "tombstone":
            // A controller never uses an incarnation again.
            incarnations.set(happening.vm, (incarnations.get(happening.vm) ?? 1) + 1);
            if (room.documents.has(`vm/${happening.vm}`)) room.desire(`vm/${happening.vm}`, null);
            break;
          case "die": {
            const vm = uid(happening.vm);
            const incarnation = room.machines.get(vm);
            if (incarnation === undefined) break;
            room.machines.delete(vm);
            room.ask({ kind: "machine-ended", end: { vm, incarnation, ended: "crashed", detail: "died" } });
            break;
          }
          case "work": {
            pending.push(...room.next());
            room.fails = () => (happening.fail ? "refused" : null);
            for (const action of pending.splice(0, happening.actions)) {
              const outcome = room.carryOut(action);
              room.ask({ kind: "done", outcome });
            }
            room.fails = () => null;
            break;
          }
          case "restart":
            pending.length = 0;
            room.boot();
            room.found();
        }
      }
      for (const action of pending) room.ask({ kind: "done", outcome: room.carryOut(action) });
      for (const subject of [...room.state.troubles.keys()]) room.input({ kind: "timer", name: `retry/${subject}` });
      room.settle();
      assert.deepEqual(room.next(), []);
      for (const [vm, incarnation] of room.machines) {
        const wanted = room.documents.get(`vm/${vm}`) as unknown as DesiredVm | undefined;
        assert.ok(wanted?.power === "on" && wanted.incarnation === incarnation);
        assert.equal(room.vm(vm)?.power, "on");
      }
      for (const key of room.published.keys()) {
        const vm = key.match(/\/vm\/(.*)/)?.[1];
        if (vm !== undefined) assert.ok(room.documents.has(`vm/${vm}`));
      }
    }),
    { numRuns: 400 },
  );
});
