import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import type { DesiredPlaces } from "../../core/documents/network/network.ts";
import type { ActualLocation, CellPolicy } from "../../core/documents/vocabulary.ts";
import { cellName, hostName, ipv4, mac, peerName, uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { GlobalNetwork } from "../drivers/network/driver.ts";
import { desiredVm, policy, Room } from "../service/manager.testing.ts";
import { believedLocations, foreignNumber, mostLocations } from "./locations.ts";

/*
 * Two cells on one host, shop and bank, both with rules. h2 has an interface of the bank, h9 one of the shop. h9 is in
 * somebody's hands, or the shop's controller is.
 */
const bank = peerName("controller.bank");
const bankPolicy = (changes: Partial<CellPolicy> = {}): CellPolicy => ({
  ...policy(["h1", "h2"]),
  cell: cellName("bank"),
  cellNumber: 8,
  ...changes,
});
const claim = (host: string, address: string, cellNumber: number): ActualLocation => ({
  address: ipv4(address),
  host: hostName(host),
  hostMac: mac("02:00:00:00:09:09"),
  cellNumber,
  identity: 1,
  vmIdentity: 2,
  subnetIdentity: 3,
});
const places = (cell: string, ...own: readonly (readonly [address: string, host: string])[]): DesiredPlaces => ({
  cell: cellName(cell),
  own: own.map(([address, host]) => ({
    address: ipv4(address),
    host: hostName(host),
    identity: 41,
    vmIdentity: 42,
    subnetIdentity: 43,
  })),
  foreign: [],
});

class Network extends Room {
  constructor() {
    super();
    this.found();
  }
  says(location: ActualLocation): void {
    const value = location as unknown as Json;
    this.input({ kind: "actual", from: peerName(`host.${location.host}`), key: `location/${location.address}`, value });
  }
  now(): GlobalNetwork {
    this.settle();
    this.input({ kind: "timer", name: "retry/network" });
    this.state.revision = null;
    const [action] = this.next();
    assert.ok(action?.kind === "implement-network");
    this.ask({ kind: "done", outcome: this.carryOut(action) });
    return action.global;
  }
  where(address: string): string | undefined {
    return this.now().locations.find((location) => location.address === address)?.host;
  }
}

test("an address is where the controller placed it that it belongs to, whatever other hosts say", () => {
  const room = new Network();
  room.desire("policy/shop", policy(["h1", "h9"]));
  room.desire("policy/bank", bankPolicy(), bank);
  room.desire("places/shop", places("shop", ["10.64.1.1", "h9"]));
  room.desire("places/bank", places("bank", ["10.64.2.1", "h2"]), bank);
  room.says(claim("h9", "10.64.1.1", 7));
  room.says(claim("h2", "10.64.2.1", 8));
  room.says(claim("h9", "10.64.2.1", 8));
  assert.equal(room.where("10.64.2.1"), "h2", "h9 has nothing to say of the bank");
  const [own] = room.now().locations.filter(({ address }) => address === "10.64.1.1");
  assert.deepEqual([own?.host, own?.identity, own?.vmIdentity], ["h9", 41, 42], "who it is, its controller says");
  room.says(claim("h9", "10.64.1.77", 7));
  assert.equal(room.where("10.64.1.77"), undefined, "nobody placed that there");
  room.says(claim("h2", "10.64.1.1", 7));
  assert.equal(room.where("10.64.1.1"), "h9", "h2 is not where the shop placed it");
  // It has moved: h9 goes on saying that it has it.
  room.desire("policy/shop", policy(["h1", "h2", "h9"]));
  room.desire("places/shop", places("shop", ["10.64.1.1", "h2"]));
  assert.equal(room.where("10.64.1.1"), "h2");
});

test("an interface of another cell is where the directory let its controller know that it is", () => {
  const room = new Network();
  room.desire("policy/shop", policy(["h1", "h2", "h9"]));
  const foreign = [{ address: ipv4("10.64.2.1"), host: hostName("h2") }];
  room.desire("places/shop", { ...places("shop"), foreign });
  room.says(claim("h9", "10.64.2.1", 7));
  assert.equal(room.where("10.64.2.1"), undefined);
  room.says(claim("h2", "10.64.2.1", 7));
  const [found] = room.now().locations;
  assert.deepEqual([found?.host, found?.cellNumber], ["h2", foreignNumber], "it is none of the shop's own");
  // A directory of the previous version does not say where.
  room.desire("places/shop", { ...places("shop"), foreign: null });
  room.says(claim("h9", "10.64.3.1", 8));
  assert.equal(room.where("10.64.3.1"), "h9");
});

test("of two cells that placed one address, the one that has it keeps it", () => {
  const room = new Network();
  room.desire("policy/bank", bankPolicy(), bank);
  room.desire("places/bank", places("bank", ["10.64.2.1", "h2"]), bank);
  room.says(claim("h2", "10.64.2.1", 8));
  assert.equal(room.where("10.64.2.1"), "h2");
  room.desire("policy/shop", policy(["h1", "h9"]));
  room.desire("places/shop", places("shop", ["10.64.2.1", "h9"]));
  room.says(claim("h9", "10.64.2.1", 7));
  assert.equal(room.where("10.64.2.1"), "h2");
  room.desire("places/bank", places("bank"), bank);
  assert.equal(room.where("10.64.2.1"), "h9");
});

test("a cell has a number of its own here, also when its controller says another's", () => {
  const room = new Network();
  room.desire("policy/bank", bankPolicy({ cellNumber: 2 }), bank);
  room.desire("policy/shop", { ...policy(), cellNumber: 2 });
  const numbers = (): readonly number[] => room.now().policies.map(({ cellNumber }) => cellNumber);
  const [theirs, own] = numbers();
  assert.equal(theirs, 2);
  assert.notEqual(own, 2);
  room.desire("policy/shop", { ...policy(), cellNumber: 2, version: 2 });
  assert.deepEqual(numbers(), [theirs, own]);
  // Whoever comes first after a restart.
  const durable = new Map(room.durable);
  const again = new Room();
  for (const [key, value] of durable) again.durable.set(key, value);
  again.documents.set("policy/shop", { ...policy(), cellNumber: 2 } as unknown as Json);
  again.boot();
  assert.deepEqual(
    [...again.state.policies.values()].map(({ cellNumber }) => cellNumber),
    [own],
  );
});

test("a host that says of more addresses than one can have is not listened to beyond that", () => {
  const room = new Network();
  room.desire("policy/shop", policy(["h1", "h9"]));
  const said = (at: number) => claim("h9", `10.65.${at >> 8}.${at & 255}`, 7);
  // Each word is a step with all that comes of it; nearly all are known from before.
  const known = Array.from({ length: mostLocations - 10 }, (_, at) => said(at));
  room.state.locations.set(peerName("host.h9"), new Map(known.map((location) => [location.address, location])));
  for (let at = known.length; at < mostLocations + 10; at += 1) room.says(said(at));
  assert.equal(room.state.locations.get(peerName("host.h9"))?.size, mostLocations);
});

test("a controller is where the authority says, and opens no other address of the underlay", () => {
  const room = new Network();
  const addresses = { "controller.shop": "10.0.3.1", "host.h2": "10.0.1.2", "agent.s1": "10.0.2.1" };
  room.ask({ kind: "peer-addresses", addresses });
  const controllerAt = (address: string): string | undefined => {
    room.desire("policy/shop", { ...policy(), controller: { ...policy().controller, address: ipv4(address) } });
    return room.now().policies[0]?.controller.address;
  };
  assert.equal(controllerAt("10.0.2.1"), "10.0.3.1", "a storage server is not opened");
  room.ask({ kind: "peer-addresses", addresses: { ...addresses, "controller.shop": "10.0.3.9" } });
  assert.equal(room.now().policies[0]?.controller.address, "10.0.3.9", "it has moved");
  room.ask({ kind: "peer-addresses", addresses: { "agent.s1": "10.0.2.1" } });
  assert.equal(room.now().policies[0]?.controller.address, "0.0.0.0", "of which nothing is known is nowhere");
});

test("an interface gets no address of the underlay, and none that another cell has", () => {
  const room = new Network();
  room.ask({ kind: "peer-addresses", addresses: { "agent.s1": "10.0.2.1" } });
  room.desire("policy/shop", policy());
  room.desire("policy/bank", bankPolicy(), bank);
  room.desire("places/bank", places("bank", ["10.64.2.1", "h2"]), bank);
  const [link] = desiredVm("a", 1).interfaces;
  const put = (name: string, address: string): string => {
    const interfaces = link === undefined ? [] : [{ ...link, uid: uid(`${name}-i`), address: ipv4(address) }];
    room.desire(`vm/${name}`, desiredVm(name, 1, { interfaces }));
    room.settle();
    return `${room.vm(name)?.phase}: ${room.vm(name)?.reason}`;
  };
  assert.match(put("b", "10.0.2.1"), /^failed: .* address 10.0.2.1, which is that of a host or a service/);
  assert.match(put("c", "10.0.1.1"), /^failed: .* address 10.0.1.1, which is that of a host or a service/);
  assert.match(put("d", "10.64.2.1"), /^failed: .* which an interface of another cell has elsewhere/);
  assert.deepEqual(room.now().interfaces, []);
  assert.equal(put("e", "10.64.2.9"), "ready: null");
  const interfaces = link === undefined ? [] : [{ ...link, uid: uid("f-i"), address: ipv4("10.64.2.9") }];
  room.desire("vm/f", desiredVm("f", 1, { cell: cellName("bank"), interfaces }), bank);
  assert.equal(room.now().interfaces.length, 1, "the shop's machine keeps its address");
  room.settle();
  assert.equal(room.machines.has(uid("f")), false);
});

test("of two machines of one cell with an address the one that runs has it, and the other starts when it has ended", () => {
  const room = new Network();
  room.desire("policy/shop", policy());
  const [link] = desiredVm("a", 1).interfaces;
  const withLink = (name: string, id: string) =>
    desiredVm(name, 1, {
      interfaces: link === undefined ? [] : [{ ...link, uid: uid(id), address: ipv4("10.64.1.9") }],
    });
  room.desire("vm/old", withLink("old", "old-i"));
  room.settle();
  assert.equal(room.vm("old")?.phase, "ready");
  room.desire("vm/new", withLink("new", "new-i"));
  assert.deepEqual(
    room.now().interfaces.map(({ vm }) => vm),
    [uid("old")],
  );
  room.settle();
  assert.equal(room.machines.has(uid("new")), false);
  assert.match(
    room.vm("new")?.reason ?? "",
    /has the address 10\.64\.1\.9, which a machine of \S+ has here until it ends/,
  );
  room.desire("vm/old", null);
  room.settle();
  assert.deepEqual([room.machines.has(uid("old")), room.vm("new")?.phase], [false, "ready"]);
});

const hosts = ["h2", "h9"] as const;
const addresses = ["10.64.1.1", "10.64.1.2", "10.64.2.1"] as const;
const anyPlaces = fc.uniqueArray(fc.tuple(fc.constantFrom(...addresses), fc.constantFrom(...hosts)), {
  selector: ([address]) => address,
});
/** What a host or a controller says; null: it takes it back. */
const anyWord = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      host: fc.constantFrom(...hosts),
      address: fc.constantFrom(...addresses),
      number: fc.constantFrom(7, 8, null),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      cell: fc.constantFrom("shop", "bank"),
      own: fc.option(anyPlaces),
      foreign: fc.option(anyPlaces),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      cell: fc.constantFrom("shop", "bank"),
      number: fc.constantFrom(7, 8, 9),
      reached: fc.option(fc.subarray([...hosts])),
    }),
  },
);
const seed = Number(process.env.CELLS_SEED ?? randomInt(2 ** 31));

test("what is believed after a word of one host or controller is what would be believed if all were looked at anew", (context) => {
  context.diagnostic(`CELLS_SEED=${seed}`);
  fc.assert(
    fc.property(fc.array(anyWord, { maxLength: 40 }), (words) => {
      const room = new Network();
      room.desire("policy/shop", policy(["h1", ...hosts]));
      room.desire("policy/bank", { ...bankPolicy(), hosts: policy(["h1", ...hosts]).hosts }, bank);
      let held = room.state.held;
      let version = 100;
      for (const word of words) {
        if ("reached" in word) {
          const { cell, number, reached } = word;
          const rules = cell === "bank" ? bankPolicy() : policy();
          const said = {
            ...rules,
            cellNumber: number,
            version: ++version,
            hosts: policy(["h1", ...(reached ?? [])]).hosts,
          };
          room.desire(`policy/${cell}`, reached === null ? null : said, cell === "bank" ? bank : undefined);
        } else if ("host" in word) {
          const { host, address, number } = word;
          const value = number === null ? null : (claim(host, address, number) as unknown as Json);
          room.input({ kind: "actual", from: peerName(`host.${host}`), key: `location/${address}`, value });
        } else {
          const { cell, own, foreign } = word;
          const from = cell === "bank" ? bank : undefined;
          const elsewhere = foreign?.map(([address, host]) => ({ address, host })) ?? null;
          const said = own === null ? null : { ...places(cell, ...own), foreign: elsewhere };
          room.desire(`places/${cell}`, said as unknown as Json, from);
        }
        const byAddress = (state: typeof room.state) =>
          new Map(believedLocations(state).map((location) => [location.address, location]));
        const anew = { ...room.state, believed: null, held };
        assert.deepEqual(byAddress(room.state), byAddress(anew));
        held = anew.held;
      }
    }),
    { seed, numRuns: 200 },
  );
});
