/* Of causes with a remedy: those that `remedies.test.ts` does not follow by itself. */

/** Another test does it: in this file of core/controller, by this name. */
export interface Elsewhere {
  readonly file: string;
  readonly test: string;
}
export interface Never {
  readonly why: string;
}

const upgrades = { file: "upgrade/upgrade.test.ts" } as const;
const moves = { file: "upgrade/moves.test.ts" } as const;
const goesBack =
  "an image that does not come up: the first VM goes back, nothing more is touched, and everybody can read why";
const goesOn =
  "a new image goes in one VM at a time, the own controller's last, and the old volumes go with each proof";

export const notHere: Readonly<Record<string, Elsewhere | Never>> = {
  "no-image": {
    file: "requests/shown.test.ts",
    test: "what needs an image that no server has is stuck until somebody adds it or names another one",
  },
  "no-storage": { why: "volumes are deleted, and servers are given more room, at the Storage Manager" },
  "held-for-copy": {
    file: "volumes/holds.test.ts",
    test: "what is held for a copy that never comes says so, and is given up by name",
  },
  "host-doubts-store": {
    file: "histories/one-host-forked.test.ts",
    test: "a VM that ends while another host says that it was told to run it waits, and a release of that host takes it back there",
  },
  "host-lost-store": {
    file: "histories/unsure.test.ts",
    test: "of a VM that the host with a lost store never named again confirms nothing until an operator has looked",
  },
  "host-replaced": {
    file: "histories/unsure.test.ts",
    test: "is nothing where another machine has the host's name, whatever that one says, until the former one is known to be off",
  },
  "forgotten-runs": {
    file: "histories/put-back.test.ts",
    test: "what a host may run that nobody knew of ends with its power",
  },
  "restored-unheard": {
    file: "histories/put-back.test.ts",
    test: "where some host of then may live on, nothing starts before each has been heard, and what runs goes on",
  },
  "service-name-taken": {
    file: "services/service-data.test.ts",
    test: "two VMs cannot have one name: the second waits until the first is gone",
  },
  "address-outside": {
    why: "a fixed address needs a fixed range, and one outside of it is refused before it is accepted; only a range that is not the one asked for brings it about",
  },
  "cannot-leave": { ...moves, test: "a VM for which there is no room runs on, and says why" },
  "leaves-after": { ...moves, test: "services move one after the other: the next one when all others are well" },
  "leaves-with-its-host": {
    why: "its host is switched off, and another one takes it over: host/root-vm/succession.test.ts, testbed/management/self-hosted.test.ts",
  },
  "other-storage-manager": {
    why: "which Storage Manager a cell has is fixed when it is made, so another cell is made; what it says is held by references/foreign.test.ts",
  },
  "not-granted": {
    file: "references/foreign.test.ts",
    test: "a copy waits for its origin to be shown, then for the grant, and goes on when it is hidden again",
  },
  "upgrade-went-back": { ...upgrades, test: goesBack },
  "upgrade-over": { ...upgrades, test: goesBack },
  "upgrade-stopped": { ...upgrades, test: goesBack },
  "upgrade-tried": { ...upgrades, test: goesOn },
  "upgrade-one-at-a-time": { ...upgrades, test: goesOn },
  "upgrade-next": { ...upgrades, test: goesOn },
  "upgrade-comes-last": { ...upgrades, test: goesOn },
  "upgrade-awaits": { ...upgrades, test: "a VM waits for the other members of Presence to be well" },
  unguarded: {
    file: "cells/guard.test.ts",
    test: "its machines, its summary and why say that nobody looks after them, and how that ends",
  },
  "child-malformed": {
    why: "a model with such a child is refused before it is accepted; only one of an earlier version can have it",
  },
  "child-named-root": {
    file: "model/root-model.test.ts",
    test: "a child of the root cell has its label for a name, and none is called root",
  },
};
