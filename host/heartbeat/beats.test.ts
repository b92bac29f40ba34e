import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName, uid } from "../../model/cell/identifiers.ts";
import { Room as ManagerRoom, policy } from "../service/manager.testing.ts";
import { machine, manager, Room, s1, s2 } from "./beats.testing.ts";
import { takeBeats } from "./beats.ts";

test("it says to each server where a machine writes that it is there, every 3 s, and to no other", () => {
  const reads = machine("c", "10.0.2.2", { writable: false });
  const room = new Room([machine("a", "10.0.2.1"), machine("b", "10.0.2.1"), reads, machine("d", "10.0.9.9")]);
  room.until(8000);
  const beat = (count: number): string => `agent.s1 {"boot":7,"count":${count}}`;
  assert.deepEqual([room.sent, [...room.subscribed]], [[beat(1), beat(2), beat(3)], [s1]]);
  room.sent = [];
  takeBeats(room.state, manager, null);
  room.settle();
  assert.deepEqual([room.sent, [...room.subscribed]], [["agent.s1 null"], []], "nobody wants it any more");
  room.sent = [];
  room.until(20_000);
  assert.deepEqual(room.sent, []);
});

test("where nobody hears it for 9 s it ends what writes; what nobody would start elsewhere stays, and what only reads", () => {
  const others = [machine("r", "10.0.2.1", { restart: "host" }), machine("c", "10.0.2.2", { writable: false })];
  const room = new Room([machine("a", "10.0.2.1"), machine("left", "10.0.2.1"), ...others]);
  room.until(4000);
  room.answer(s1, 1);
  room.answer(s1, 2);
  room.hear("h2");
  room.until(12_900);
  assert.deepEqual(room.lost, [], "the beat that it said at 4.0 s was heard");
  room.until(13_100);
  assert.deepEqual(room.lost, [uid("a")]);
});

test("one server that hears it is enough, and so are most of the hosts; unless it gets no answers itself", () => {
  const both = [machine("a", "10.0.2.1"), machine("b", "10.0.2.2")];
  const one = new Room(both);
  one.hear();
  for (let second = 1; second < 60; second += 1) {
    one.until(second * 1000);
    one.answer(s2, one.state.beats.count);
  }
  assert.deepEqual(one.lost, []);
  const hosts = new Room(both);
  hosts.hear("h2", "h3");
  hosts.until(60_000);
  assert.deepEqual(hosts.lost, [], "a server that is silent alone ends nothing");
  hosts.state.beats.doubts = true;
  hosts.settle();
  assert.deepEqual(hosts.lost, [uid("a"), uid("b")]);
});

test("a server that has heard it counts also when its last machine there has ended, and the one that is left is silent", () => {
  const [a, b] = [machine("a", "10.0.2.1"), machine("b", "10.0.2.2")];
  const room = new Room([a, b]);
  room.hear();
  for (let second = 1; second <= 20; second += 1) {
    room.until(second * 1000);
    room.answer(s2, room.state.beats.count);
  }
  room.state.records.set(uid("b"), { ...b, stage: "ended" });
  room.settle();
  assert.deepEqual(room.lost, [], "it was heard a moment ago");
  room.until(30_000);
  assert.deepEqual(room.lost, [uid("a")]);
});

test("what was never said, or is acknowledged by a server where nothing of this host writes, is no answer", () => {
  const room = new Room([machine("a", "10.0.2.1")]);
  room.hear();
  for (let second = 1; second < 12; second += 1) {
    room.until(second * 1000);
    room.answer(s1, 99);
    room.answer(s2, room.state.beats.count);
  }
  assert.deepEqual(room.lost, [uid("a")]);
});

test("a Host Manager that stood still leaves that time out, and one that has started counts anew: nobody was asked meanwhile", () => {
  const room = new Room([machine("a", "10.0.2.1")]);
  room.hear();
  room.until(4000);
  room.answer(s1, 2);
  // 3 s later its timer was due, and it stood still for 33 s from then on.
  room.state.now = 40_000;
  room.settle();
  room.until(45_900);
  assert.deepEqual(room.lost, []);
  room.until(46_100);
  assert.deepEqual(room.lost, [uid("a")]);
  const beat = { boot: 7, count: 40 };
  const again = new Room([machine("a", "10.0.2.1")], {
    records: new Map(),
    desiredAt: new Map([[s1, new Map([["beat", beat]])]]),
  });
  again.hear();
  again.until(9900);
  assert.deepEqual([again.sent[0], again.lost], ['agent.s1 {"boot":7,"count":41}', []]);
});

test("one that stands still again and again is heard by nobody all the same, and ends what writes", () => {
  for (const lateMs of [0, 1900, 2100, 3000, 10_000, 60_000]) {
    const room = new Room([machine("a", "10.0.2.1")]);
    room.hear();
    room.until(4000);
    room.answer(s1, 2);
    // What is due in 9 s comes with three timers, and no more than two seconds beside them are for listening.
    room.until(4000 + 11_000 + 5 * lateMs, lateMs);
    assert.deepEqual(room.lost, [uid("a")], `each timer ${lateMs} ms late`);
  }
});

test("one that stands still again and again, and is answered while it does, ends nothing", () => {
  for (const lateMs of [2100, 10_000, 60_000]) {
    const room = new Room([machine("a", "10.0.2.1")]);
    room.hear();
    let said = 0;
    // What was said when it woke up last was made durable, and the answer has lain there since.
    room.until(40 * lateMs, lateMs, () => {
      if (said > 0) room.answer(s1, said);
      said = room.state.beats.count;
    });
    assert.deepEqual(room.lost, [], `each timer ${lateMs} ms late`);
  }
});

test("after it stood still it listens before it ends anything, though it was about to: what answers it lies unread", () => {
  const cut = (): Room => {
    const room = new Room([machine("a", "10.0.2.1")]);
    room.hear();
    room.until(4000);
    room.answer(s1, 2);
    room.until(12_900);
    assert.deepEqual(room.lost, []);
    room.state.now = 60_000;
    room.settle();
    assert.deepEqual(room.lost, []);
    return room;
  };
  const alone = cut();
  alone.until(60_900);
  assert.deepEqual(alone.lost, []);
  alone.until(61_100);
  assert.deepEqual(alone.lost, [uid("a")]);
  // It stands still while it listens: once more, and then no more.
  const twice = cut();
  twice.state.now = 90_000;
  twice.settle();
  assert.deepEqual(twice.lost, []);
  twice.state.now = 120_000;
  twice.settle();
  assert.deepEqual(twice.lost, [uid("a")]);
  // Each time that somebody hears it again it may stand still as often.
  const heard = cut();
  heard.state.now = 90_000;
  heard.settle();
  heard.answer(s1, heard.state.beats.count);
  heard.until(98_900);
  heard.state.now = 150_000;
  heard.settle();
  heard.state.now = 180_000;
  heard.settle();
  assert.deepEqual(heard.lost, []);
  heard.hear("h2", "h3");
  heard.settle();
  heard.hear();
  heard.state.now = 210_000;
  heard.settle();
  assert.deepEqual(heard.lost, []);
  heard.until(211_100);
  assert.deepEqual(heard.lost, [uid("a")]);
});

test("as long as it is not known whose addresses its disks are at nothing is taken back", () => {
  const beat = { boot: 7, count: 40 };
  const restored = { records: new Map(), desiredAt: new Map([[s1, new Map([["beat", beat]])]]) };
  const room = new Room([machine("a", "10.0.2.1")], restored);
  room.state.peerAddresses = null;
  room.until(5000);
  assert.deepEqual(room.sent, []);
});

test("what was ended so has crashed, as its controller hears, and is not started again here by itself", () => {
  const room = new ManagerRoom();
  room.found();
  room.desire("policy/shop", policy());
  const { vm } = machine("a", "10.0.2.1");
  room.desire("vm/a", vm);
  room.settle();
  assert.equal(room.machines.get(uid("a")), 1);
  room.state.beats.isolated.add(uid("a"));
  room.settle();
  assert.deepEqual([room.machines.size, room.state.beats.isolated.size], [0, 0]);
  const { power, ended, phase, reason } = room.vm("a") ?? {};
  assert.deepEqual([power, ended, phase], ["off", "crashed", "failed"]);
  assert.match(reason ?? "", /no storage server had heard its host for 9 s/);
  room.settle();
  assert.equal(room.machines.size, 0);
});

test("of several HA Managers each says for its own VMs that it takes them, and it beats for as long as one wants it", () => {
  const second = peerName("ha-manager.2");
  const room = new Room([machine("a", "10.0.2.1"), machine("b", "10.0.2.1"), machine("c", "10.0.2.1")]);
  room.hear();
  takeBeats(room.state, manager, { host: "h1", ends: ["a"] });
  takeBeats(room.state, second, { host: "h1", ends: ["b"] });
  room.until(13_000);
  assert.deepEqual([...room.lost].sort(), [uid("a"), uid("b")]);
  takeBeats(room.state, manager, null);
  assert.deepEqual([room.state.beats.wanted, [...room.state.beats.ends]], [true, [uid("b")]]);
  takeBeats(room.state, second, null);
  assert.equal(room.state.beats.wanted, false);
});
