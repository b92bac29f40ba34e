import assert from "node:assert/strict";
import { test } from "node:test";
import { routeOf } from "../routes.ts";
import { builtInRoles } from "../tenancy/rules.ts";
import { type ActionName, type Asker, actions, type SubjectOf, whyNot, whyNotBy } from "./actions.ts";
import type { Subjects } from "./subjects.ts";

const names = Object.keys(actions) as ActionName[];
const rulesOf = (role: string) => builtInRoles.find(({ name }) => name === role)?.rules ?? assert.fail(role);
const askers = {
  operator: { kind: "operator" },
  "root-admin": { kind: "user", rules: rulesOf("root-admin") },
  "account-admin": { kind: "user", rules: rulesOf("account-admin") },
  user: { kind: "user", rules: rulesOf("user") },
  reader: { kind: "user", rules: rulesOf("reader") },
  cell: { kind: "cell" },
} as const satisfies Readonly<Record<string, Asker>>;

/** Who may what, to something that nothing stands against: letters in the order of `askers`. */
const may: Readonly<Record<ActionName, string>> = {
  start: "o r a u . c",
  stop: "o r a u . c",
  restart: "o r a u . c",
  console: "o r a u . c",

  display: "o r a u . c",
  move: "o . . . . .",
  forceStop: "o . . . . .",
  drain: "o . . . . .",
  resume: "o . . . . .",
  dead: "o . . . . .",
  pauseHa: "o . . . . .",
  resumeHa: "o . . . . .",
  releaseHeld: "o . . . . .",
  retryWork: "o . . . . .",
  cancelWork: "o . . . . .",
  acknowledge: "o . . . . .",
  dedicate: "o . . . . .",
  release: "o . . . . .",
  changeCell: "o r a u . c",
  deleteCell: "o r a u . c",
  rollback: "o r a u . c",
  changePool: "o r a u . .",
  deletePool: "o r a u . .",
  enablePoolHost: "o r a u . .",
  disablePoolHost: "o r a u . .",
  removePoolHost: "o r a u . .",
  cloneVolume: "o r a u . .",
  changeVolume: "o r a u . .",
  shareVolume: "o r a u . .",
  unshareVolume: "o r a u . .",
  deleteVolume: "o r a u . .",
  enableDomain: "o r . . . .",
  disableDomain: "o r . . . .",
  deleteDomain: "o r . . . .",
  enableUser: "o r a . . .",
  disableUser: "o r a . . .",
  deleteUser: "o r a . . .",
  enableAccount: "o r . . . .",
  lockAccount: "o r . . . .",
  disableAccount: "o r . . . .",
  deleteAccount: "o r . . . .",
  setQuota: "o r . . . .",
};

const vm: Subjects["vm"] = {
  path: "shop/web",
  phase: "ready",
  reason: null,
  wanted: "on",
  power: "on",
  host: "h1",
  isHostHeard: true,
};
const off = { ...vm, wanted: "off", power: "off", host: null, isHostHeard: null } as const;
const host: Subjects["host"] = { host: "h1", administration: "enabled", presence: "up" };
const work: Subjects["work"] = { path: "shop/web", type: "HA", step: "Investigating", isHeld: false };
const pool: Subjects["pool"] = { pool: "racks", hosts: [] };
const member: Subjects["poolHost"] = { name: "rack1", isEnabled: false, vms: [] };
const volume: Subjects["volume"] = { volume: "golden", rights: ["copy", "write", "manage"] };
const shared: Subjects["volume"] = { volume: "golden", rights: ["read"] };
const party: Subjects["party"] = { party: "ROOT/acme/dev", state: "enabled" };
const version: Subjects["version"] = { version: 3, isPresent: false, hasText: true };

type Case<A extends ActionName> = readonly [SubjectOf<A>, "yes" | "so" | "no", RegExp?];
const enabling: readonly Case<"enableAccount">[] = [
  [{ ...party, state: "locked" }, "yes"],
  [party, "so"],
  [{ ...party, state: "deleting" }, "no"],
];
const disabling: readonly Case<"disableAccount">[] = [
  [party, "yes"],
  [{ ...party, state: "disabled" }, "so"],
  [{ ...party, state: "deleting" }, "no"],
];
const deleting: readonly Case<"deleteAccount">[] = [
  [party, "yes"],
  [{ ...party, state: "deleting" }, "so"],
];
/** Each action with every kind of state that it looks at. */
const states: { readonly [A in ActionName]: readonly Case<A>[] } = {
  start: [
    [off, "yes"],
    [{ ...vm, phase: "failed" }, "yes"],
    [{ ...vm, wanted: null }, "yes"],
    [vm, "so", /^shop\/web is to run already$/],
    [{ ...off, phase: "deleting" }, "no", /is being taken away$/],
  ],
  stop: [
    [vm, "yes"],
    [off, "so", /^shop\/web is to be off already$/],
    [{ ...vm, phase: "deleting" }, "no", /is being taken away$/],
  ],
  restart: [
    [vm, "yes"],
    [off, "no", /^shop\/web is off: `cells start shop\/web` starts it$/],
    [{ ...vm, phase: "deleting" }, "no", /is being taken away$/],
  ],
  display: [
    [vm, "yes"],
    [{ ...off, reason: "it was stopped" }, "no", /does not run: it was stopped$/],
  ],
  console: [
    [vm, "yes"],
    [{ ...vm, power: null }, "yes"],
    [off, "no", /does not run: it is off$/],
    [{ ...vm, phase: "waiting", power: null, reason: "no host has room" }, "no", /does not run: no host has room$/],
  ],
  move: [
    [vm, "yes"],
    [off, "no", /does not run: it is off\. It is placed anew when it starts$/],
  ],
  forceStop: [
    [{ ...vm, isHostHeard: false }, "yes"],
    [{ ...vm, isHostHeard: null }, "yes"],
    [off, "no", /^nothing of shop\/web runs anywhere: `cells stop shop\/web` is enough$/],
    [vm, "no", /^h1 is heard, and stops what it runs: `cells stop shop\/web` waits for its word$/],
  ],
  drain: [
    [host, "yes"],
    [{ ...host, administration: "disabled" }, "yes"],
    [{ ...host, administration: "maintenance" }, "so", /^h1 is in maintenance already$/],
  ],
  resume: [
    [{ ...host, administration: "maintenance" }, "yes"],
    [{ ...host, administration: "reserved" }, "yes"],
    [host, "so", /^h1 takes VMs already$/],
  ],
  dead: [
    [{ ...host, presence: "dead" }, "yes"],
    [{ ...host, presence: "suspected" }, "yes"],
    [host, "no", /^host h1 is being heard: it runs$/],
    [{ ...host, presence: "unknown" }, "no", /is not known yet/],
    [{ ...host, presence: "off" }, "so", /was said already of h1/],
  ],
  pauseHa: [
    [{ paused: null }, "yes"],
    [{ paused: "storm" }, "yes"],
    [{ paused: "asked" }, "so"],
  ],
  resumeHa: [
    [{ paused: "asked" }, "yes"],
    [{ paused: "storm" }, "yes"],
    [{ paused: null }, "so"],
  ],
  releaseHeld: [
    [{ ...work, isHeld: true }, "yes"],
    [work, "so", /^nothing holds shop\/web$/],
  ],
  retryWork: [
    [work, "yes"],
    [{ ...work, step: "Cancelled" }, "yes"],
    [{ ...work, step: "Done" }, "no", /^nothing is being done about shop\/web/],
    [{ ...work, type: "Migration" }, "no", /\(Migration\) is another's: `cells host resume`/],
  ],
  cancelWork: [
    [work, "yes"],
    [{ ...work, step: "Scheduled" }, "yes"],
    [{ ...work, step: "Fencing" }, "no", /is at Fencing: a fence that has begun is carried through/],
    [{ ...work, step: "Cancelled" }, "so"],
    [{ ...work, step: "Done" }, "no", /^nothing is being done/],
    [{ ...work, type: "CheckStop" }, "no", /`cells start` wants it on again$/],
    [{ ...work, type: "ForceStop" }, "no", /its host ends it when it is heard$/],
  ],
  acknowledge: [
    [{ kind: "held", isAcknowledged: false }, "yes"],
    [{ kind: "held", isAcknowledged: true }, "so"],
  ],
  changeCell: [
    [{ cell: "shop", isHeard: true }, "yes"],
    [{ cell: "shop", isHeard: false }, "no", /^nothing is heard of shop/],
  ],
  deleteCell: [
    [{ cell: "shop", isHeard: true }, "yes"],
    [{ cell: "shop", isHeard: false }, "no", /^nothing is heard of shop/],
    [{ cell: "root", isHeard: true }, "no", /^the root cell is the cloud itself/],
  ],
  rollback: [
    [version, "yes"],
    [{ ...version, isPresent: true }, "so"],
    [{ ...version, hasText: false }, "no", /^the text of version 3 is not kept$/],
  ],
  dedicate: [
    [{ place: "z1", dedicatedTo: null }, "yes"],
    [{ place: "z1", dedicatedTo: "the domain ROOT/acme" }, "no", /^z1 is dedicated to the domain ROOT\/acme already$/],
  ],
  release: [
    [{ place: "z1", dedicatedTo: "the domain ROOT/acme" }, "yes"],
    [{ place: "z1", dedicatedTo: null }, "no", /^z1 is dedicated to nobody$/],
  ],
  changePool: [[pool, "yes"]],
  deletePool: [
    [pool, "yes"],
    [{ ...pool, hosts: ["b", "a"] }, "no", /^the pool racks has hosts: a, b; take them out of it first$/],
  ],
  enablePoolHost: [
    [member, "yes"],
    [{ ...member, isEnabled: true }, "so"],
  ],
  disablePoolHost: [
    [{ ...member, isEnabled: true }, "yes"],
    [member, "so"],
  ],
  removePoolHost: [
    [member, "yes"],
    [{ ...member, isEnabled: true }, "no", /^rack1 is enabled: disable it first$/],
    [{ ...member, vms: ["u1"] }, "no", /^a VM stands at rack1/],
    [{ ...member, vms: ["u1", "u2"] }, "no", /^2 VMs stand at rack1/],
  ],
  cloneVolume: [
    [volume, "yes"],
    [{ ...shared, rights: ["copy"] }, "yes"],
    [shared, "no", /^golden is shared with you, and not to be copied$/],
  ],
  changeVolume: [
    [volume, "yes"],
    [shared, "no", /^golden is shared with you, and its owner's people alone change it$/],
  ],
  shareVolume: [
    [volume, "yes"],
    [{ ...shared, rights: ["copy"] }, "no", /its owner's people alone/],
  ],
  unshareVolume: [
    [volume, "yes"],
    [shared, "no", /its owner's people alone/],
  ],
  deleteVolume: [
    [volume, "yes"],
    [shared, "no", /its owner's people alone/],
  ],
  enableDomain: enabling,
  disableDomain: disabling,
  deleteDomain: deleting,
  enableUser: enabling,
  disableUser: disabling,
  deleteUser: deleting,
  enableAccount: enabling,
  lockAccount: [
    [party, "yes"],
    [{ ...party, state: "locked" }, "so"],
    [{ ...party, state: "deleting" }, "no"],
  ],
  disableAccount: disabling,
  deleteAccount: deleting,
  setQuota: deleting,
};

test("each action, in each state, by each kind of person: yes, or the sentence why not", () => {
  let looked = 0;
  for (const name of names)
    for (const [subject, expected, sentence] of states[name])
      for (const [at, [who, asker]] of Object.entries(askers).entries()) {
        const isAllowed = may[name].split(" ")[at] !== ".";
        const verdict = whyNot(name, asker, subject as never);
        const about = `${name} by ${who}: ${JSON.stringify(subject)}`;
        if (!isAllowed) {
          assert.ok(verdict !== null && !verdict.isSo, about);
          assert.equal(verdict.why, whyNotBy(name, asker), about);
        } else {
          assert.equal(verdict === null ? "yes" : verdict.isSo ? "so" : "no", expected, about);
          if (sentence !== undefined) assert.match(verdict?.why ?? "", sentence, about);
        }
        looked += 1;
      }
  assert.ok(looked > 400);
});

test("of who is not known it is not said that he may not", () => {
  for (const name of names) {
    const [subject, expected] = states[name][0] as readonly [never, string];
    assert.equal(expected, "yes", `the first state of ${name} is one in which it may be done`);
    assert.equal(whyNot(name, null, subject), null, name);
  }
});

test("what stands against an action is a sentence without an end, and a label begins with a capital letter", () => {
  for (const name of names) {
    assert.match(actions[name].label, /^[A-Z][A-Za-z ]+$/);
    for (const [subject] of states[name]) {
      const { why = "x" } = whyNot(name, null, subject as never) ?? {};
      assert.doesNotMatch(why, /[.!?]$|undefined|null/, name);
    }
  }
});

test("an action that the operator alone may is none of a tenant's route, or has no verb there", () => {
  for (const name of names) {
    const { route, verb } = actions[name];
    if (routeOf(route).who === "operator") assert.equal(verb, null, name);
    if (routeOf(route).who === "tenant") assert.notEqual(verb, null, name);
  }
});
