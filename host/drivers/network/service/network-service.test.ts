import assert from "node:assert/strict";
import { test } from "node:test";
import { allCalls, calls, type ModeDriver, PartlyFailed } from "./mode-driver.ts";
import { NetworkService, type NetworkServiceState } from "./network-service.ts";

/** A mode of ten lines: what a view says is a text, and what is in place is one for each call. */
interface Place {
  network: string;
  securityGroup: string;
  addressing: string;
}
type Driver = ModeDriver<string, Place, { readonly tools: boolean }>;
const world = (warnings: readonly string[] = []) => {
  const place: Place = { network: "", securityGroup: "", addressing: "" };
  const log: string[] = [];
  const broken = new Set<string>();
  const partly = new Map<string, string>();
  const said = async (step: string, then: () => void = () => {}): Promise<void> => {
    if (broken.has(step)) throw new Error(`${step} is broken`);
    log.push(step);
    then();
  };
  const put = (part: keyof Place) => (global: string) =>
    said(part, () => void Object.assign(place, { [part]: global }));
  const clear = () => void Object.assign(place, { network: "", securityGroup: "", addressing: "" });
  const driver: Driver = {
    init: async ({ tools }) => (tools ? [] : ["there is no ipset on this machine"]),
    upgrade: () => said("upgrade"),
    read: async () => ({ ...place }),
    scrub: (global, local) =>
      (local.network === global ? 0 : calls.network) |
      (local.securityGroup === global ? 0 : calls.securityGroup) |
      (local.addressing === global ? 0 : calls.addressing),
    flush: () => said("flush", clear),
    async network(global) {
      await put("network")(global);
      if (partly.size > 0) throw new PartlyFailed(partly);
    },
    securityGroup: put("securityGroup"),
    addressing: put("addressing"),
    cleanup: () => said("cleanup", clear),
    warnings: () => warnings,
  };
  const configuration = { tools: true };
  const states: NetworkServiceState[] = [];
  const other: Driver = { ...driver, upgrade: () => said("upgrade other"), scrub: () => 0, warnings: () => [] };
  const service = new NetworkService<string, Place, { readonly tools: boolean }>({
    drivers: new Map([
      ["TEN-LINES", driver],
      ["OTHER", other],
    ]),
    configuration: async () => ({ ...configuration }),
    report: (state) => states.push(state),
    periodMs: 10,
  });
  const taken = (): readonly string[] => log.splice(0);
  return { service, place, broken, partly, configuration, states, taken };
};
const view = (global: string, mode = "TEN-LINES") => ({ mode, global });

test("what the scrub says is done in order, after one upgrade; what is in place is left alone", async () => {
  const { service, place, taken } = world();
  await service.look();
  assert.deepEqual(taken(), []);
  await service.offer(view("a"));
  assert.deepEqual(taken(), ["upgrade", "network", "securityGroup", "addressing"]);
  await service.look();
  assert.deepEqual(taken(), []);
  place.securityGroup = "somebody deleted it";
  await service.look();
  assert.deepEqual(taken(), ["securityGroup"]);
  assert.deepEqual(service.state, { mode: "TEN-LINES", missing: [], failed: {}, refused: null, left: [] });
});

test("a flush makes all three due, and stays asked for until it works", async () => {
  const { service, broken, taken } = world();
  await service.offer(view("a"));
  taken();
  broken.add("flush");
  await service.flush();
  assert.deepEqual(taken(), []);
  assert.equal(service.state.failed.flush, "flush is broken");
  broken.clear();
  await service.look();
  assert.deepEqual(taken(), ["flush", "network", "securityGroup", "addressing"]);
  assert.deepEqual(service.state.failed, {});
});

test("a call that failed stays due with its reason, and the others are made", async () => {
  const { service, broken, place, taken } = world();
  broken.add("securityGroup");
  await service.offer(view("a"));
  assert.deepEqual(taken(), ["upgrade", "network", "addressing"]);
  assert.deepEqual(service.state.failed, { securityGroup: "securityGroup is broken" });
  // It stays due though the scrub does not ask for it any more.
  place.securityGroup = "a";
  broken.clear();
  await service.look();
  assert.deepEqual(taken(), ["securityGroup"]);
  assert.deepEqual(service.state.failed, {});
});

test("a call that has made all but some parts names them, until it makes them, too", async () => {
  const { service, partly } = world();
  partly.set("a group", "its tag is taken");
  await service.offer(view("a"));
  assert.deepEqual(service.state.failed, { network: "its tag is taken" });
  assert.deepEqual(service.state.partly, { network: partly });
  partly.clear();
  await service.look();
  assert.deepEqual([service.state.failed, service.state.partly], [{}, undefined]);
});

test("of what a view is warned, the first are told, while it is in force", async () => {
  const { service } = world(Array.from({ length: 1000 }, (_, at) => `${at} ${"x".repeat(at === 0 ? 10_000 : 1)}`));
  const told = (): readonly string[] => service.state.warnings ?? [];
  assert.deepEqual(told(), []);
  await service.offer(view("a"));
  const warnings = told();
  assert.deepEqual(
    [warnings.length, warnings[0]?.length, warnings[1], warnings.at(-1)],
    [21, 500, "1 x", "and 980 more"],
  );
  await service.refuse("the mode is missing");
  assert.equal(told().length, 21);
  await service.offer(view("b", "OTHER"));
  assert.deepEqual(told(), []);
});

test("a view that is refused leaves the last good one in force", async () => {
  const { service, place, taken } = world();
  await service.offer(view("a"));
  taken();
  await service.refuse("the mode is missing");
  assert.deepEqual([taken(), service.state.refused], [[], "the mode is missing"]);
  place.network = "";
  await service.offer(view("b", "NOBODY"));
  assert.deepEqual(taken(), ["network"]);
  assert.match(service.state.refused ?? "", /nothing here drives the mode NOBODY/);
  await service.offer(view("b"));
  assert.deepEqual([place.network, service.state.refused], ["b", null]);
});

test("what is missing is told and nothing is touched; it is looked for again by itself", async () => {
  const { service, configuration, taken } = world();
  configuration.tools = false;
  await service.offer(view("a"));
  assert.deepEqual([taken(), service.state.missing], [[], ["there is no ipset on this machine"]]);
  configuration.tools = true;
  await service.look();
  assert.deepEqual([taken().length, service.state.missing], [4, []]);
  configuration.tools = false;
  await service.reconfigure();
  assert.deepEqual(service.state.missing.length, 1);
});

test("words that come during a pass make one pass more, however many", async () => {
  const { service, states, taken } = world();
  await Promise.all([
    service.offer(view("a")),
    service.offer(view("b")),
    service.look(),
    service.look(),
    service.look(),
  ]);
  assert.ok(states.length <= 2, `${states.length} passes`);
  assert.ok(taken().filter((step) => step === "network").length <= 2);
  assert.deepEqual(service.state.failed, {});
});

test("another mode takes the machine over once the one before has gone", async () => {
  const { service, broken, taken } = world();
  await service.offer(view("a"));
  taken();
  broken.add("cleanup");
  await service.offer(view("a", "OTHER"));
  assert.deepEqual(taken(), []);
  broken.clear();
  await service.look();
  assert.deepEqual(taken(), ["cleanup", "upgrade other"]);
});

test("passes come by themselves; the end takes nothing away, and leaving does", async () => {
  const { service, place, taken } = world();
  await service.offer(view("a"));
  service.start();
  place.addressing = "";
  const until = performance.now() + 5000;
  while (place.addressing === "" && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 5));
  await service.stop();
  assert.equal(place.addressing, "a");
  taken();
  assert.equal(place.network, "a");
  await service.leave();
  assert.deepEqual([taken(), place.network], [["cleanup"], ""]);
  assert.equal(allCalls, 7);
});

test("a pass reads once, and again where a call does not say what it has left or fails", async () => {
  let [reads, saysNext, fails] = [0, true, false];
  const given: string[] = [];
  const call =
    (name: string): ModeDriver<string, string, unknown>["network"] =>
    async (_global, local, next) => {
      given.push(`${name}: ${local}`);
      if (saysNext) next(async () => `what ${name} left`);
      if (fails) throw new Error(`${name} is broken`);
    };
  const driver: ModeDriver<string, string, unknown> = {
    init: async () => [],
    upgrade: async () => {},
    read: async () => `reading ${++reads}`,
    scrub: () => allCalls,
    flush: async () => void given.push(`flush after ${reads}`),
    network: call("network"),
    securityGroup: call("securityGroup"),
    addressing: call("addressing"),
    cleanup: async () => {},
  };
  const service = new NetworkService({ drivers: new Map([["A", driver]]), configuration: async () => ({}) });
  const passed = async (pass: () => Promise<void>): Promise<readonly string[]> => {
    reads = 0;
    await pass();
    return given.splice(0);
  };
  const known = [
    "network: reading 1",
    "securityGroup: what network left",
    "addressing: what securityGroup left",
  ] as const;
  assert.deepEqual(await passed(() => service.offer({ mode: "A", global: "" })), known);
  // What a flush may have changed is read behind it.
  assert.deepEqual(await passed(() => service.flush()), ["flush after 0", ...known]);
  const anew = ["network: reading 1", "securityGroup: reading 2", "addressing: reading 3"];
  fails = true;
  assert.deepEqual(await passed(() => service.look()), anew);
  [saysNext, fails] = [false, false];
  assert.deepEqual(await passed(() => service.look()), anew);
});
