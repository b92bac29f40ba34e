import assert from "node:assert/strict";
import { test } from "node:test";
import type { ActualLocation, CellPolicy } from "../../core/documents/vocabulary.ts";
import { cellName, hostName, ipv4, mac } from "../../model/cell/identifiers.ts";
import { revisionOf } from "./planner.ts";

const policy = (version: number): CellPolicy => ({
  cell: cellName("shop"),
  cellNumber: 7,
  version,
  rules: [],
  networks: [],
  controller: { address: ipv4("10.0.3.1"), mac: mac("02:00:00:00:03:01"), identity: 99 },
  hosts: [],
});
const location: ActualLocation = {
  address: ipv4("10.64.0.1"),
  host: hostName("h2"),
  hostMac: mac("02:00:00:00:01:02"),
  cellNumber: 7,
  identity: 1,
  vmIdentity: 2,
  subnetIdentity: 3,
};
const network = (policies: readonly CellPolicy[], locations: readonly ActualLocation[] = []) =>
  revisionOf({ policies, interfaces: [], locations });

test("a revision stands for the documents of policies and locations", () => {
  const [first, second] = [policy(1), policy(2)];
  assert.equal(network([first], [location]), network([first], [location]));
  assert.notEqual(network([first]), network([second]));
  assert.notEqual(network([first]), network([structuredClone(first)]), "an equal document is looked at once more");
  assert.notEqual(network([first]), network([first, second]));
  assert.notEqual(network([first]), network([]));
  assert.notEqual(network([first], [location]), network([first]));
  assert.notEqual(network([first], [location]), network([first], [{ ...location, hostMac: mac("02:00:00:00:01:03") }]));
});

test("a revision costs no look at the rules", () => {
  const large: CellPolicy = {
    ...policy(1),
    get rules(): never {
      throw new Error("the rules were read");
    },
  };
  assert.throws(() => JSON.stringify(large), /the rules were read/);
  assert.equal(network([large]), network([large]));
});
