import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { readSpecification } from "../../model/specification/specification.ts";
import { birthOf, criticalPath, type Happening, type Row, rowNames } from "./birth.ts";
import { renderBirth, stepLines } from "./birth-svg.ts";
import { happeningIn, once, vmsOfServices } from "./record.ts";

/** Seconds after the start, as a cloud's services log them. */
const say = (second: number, service: string, event: string, fields: Happening["fields"] = {}): Happening => ({
  atMs: second * 1000,
  service,
  event,
  fields,
  path: typeof fields.path === "string" ? fields.path : null,
});
const member = (peer: string, from: number, to: number): readonly Happening[] => [
  say(from, "supervisor", "service/started", { peer, pid: 7 }),
  say(to, "supervisor", "service/answers", { peer }),
];
/** It waits for something, is handed to a host, starts, answers, and its controller hears of it. */
const machine = (
  path: string,
  host: string,
  at: readonly [number, number, number, number, number],
): readonly Happening[] => [
  say(at[0], "controller.root", "element/state", { path, phase: "waiting", reason: "waits for its volume" }),
  say(at[1], host, "machine/stage", { path, stage: "starting" }),
  say(at[1] + 0.1, "controller.root", "element/state", {
    path,
    phase: "working",
    reason: "its machine is being started",
  }),
  say(at[2], host, "machine/stage", { path, stage: "running" }),
  say(at[3], host, "machine/health", { path, what: "answering" }),
  say(at[4], "controller.root", "element/state", { path, phase: "ready", reason: null }),
];
const step = (second: number, text: string): Happening => say(second, "host.h1", "bootstrap/step", { text });

const birth: readonly Happening[] = [
  ...member("agent.s1", 0.5, 1),
  ...member("host.h1", 0.5, 3),
  ...member("host.h2", 0.5, 2),
  say(2.9, "host.h1", "process/started"),
  step(4, "the services run as a process"),
  step(5, "the bootstrap model was accepted"),
  step(6, "the process has ended, and root/core1/vm starts"),
  step(11, "the controller in root/core1/vm has accepted the whole of small.sf"),
  ...machine("root/core1/vm", "host.h1", [4.5, 5.5, 6.5, 10, 10.5]),
  ...["authority", "controller.root"].map((service) => say(9, service, "process/started")),
  say(15.7, "cell-manager", "process/started"),
  say(20, "controller.primary", "process/started"),
  say(25, "gateway", "process/started"),
  say(31, "controller.one", "process/started"),
  ...machine("root/core2/vm", "host.h2", [11, 12, 13, 15, 15.5]),
  ...machine("root/core3/vm", "host.h2", [11, 12, 13, 16, 16.5]),
  ...machine("root/controllers/primary/vm", "host.h1", [17, 18, 19, 21, 21.5]),
  ...machine("primary/gateway/vm", "host.h1", [22, 23, 24, 26, 27]),
  ...machine("root/controllers/one/vm", "host.h2", [28, 29, 30, 32, 32.5]),
  // After it was accepted nothing is of interest.
  ...machine("one/vm", "host.h2", [33.5, 34, 35, 36, 37]),
];
const moments = { startMs: 0, gatewayMs: 27_500, acceptedMs: 33_000 };
const vmOf = new Map([
  ["authority", "root/core1/vm"],
  ["controller.root", "root/core1/vm"],
  ["cell-manager", "root/core3/vm"],
  ["controller.primary", "root/controllers/primary/vm"],
  ["gateway", "primary/gateway/vm"],
  ["controller.one", "root/controllers/one/vm"],
]);
const whole = (): ReturnType<typeof birthOf> => birthOf(birth, moments, vmOf);

test("each process and machine of a birth has a row, with what it waited for", () => {
  const { rows } = whole();
  const names = rows.map(({ name }) => name);
  assert.deepEqual(names.slice(0, 5), ["server s1", "host h2", "host h1", rowNames.firstProcess, "root/core1/vm"]);
  assert.ok(!names.includes("one/vm"));
  const core1 = rows.find(({ name }) => name === "root/core1/vm");
  assert.deepEqual(
    core1?.pieces.map(({ kind, fromMs, toMs }) => [kind, fromMs, toMs]),
    [
      ["waits", 4500, 5500],
      ["starts", 5500, 6500],
      ["starts", 6500, 10_000],
      ["waits", 10_000, 10_500],
    ],
  );
  assert.deepEqual(core1?.ticks[0], { atMs: 9000, text: "authority" });
});

test("the critical path goes by what each needs, has no gaps, and adds up to the whole", () => {
  const { path, startMs, endMs } = whole();
  const rows = path.map(({ row }) => row).filter((row, index, all) => row !== all[index - 1]);
  assert.deepEqual(rows, [
    null,
    "host h1",
    rowNames.firstProcess,
    "root/core1/vm",
    rowNames.whole,
    "root/core3/vm",
    null,
    "root/controllers/primary/vm",
    null,
    "primary/gateway/vm",
    rowNames.gateway,
    null,
    "root/controllers/one/vm",
    rowNames.accepted,
  ]);
  let atMs = startMs;
  for (const { fromMs, toMs } of path) {
    assert.equal(fromMs, atMs);
    assert.ok(toMs > fromMs);
    atMs = toMs;
  }
  assert.equal(atMs, endMs);
});

test("of two that are needed the one that was there last is on the path", () => {
  const row = (name: string, fromMs: number, toMs: number): Row => ({
    name,
    ticks: [],
    pieces: [{ fromMs, toMs, kind: "starts", text: "starts" }],
  });
  const rows = (first: number, second: number): readonly Row[] => [
    row("host h1", 0, first),
    row("host h2", 0, second),
    row(rowNames.firstProcess, 0, 100),
  ];
  const on = (each: readonly Row[]): readonly (string | null)[] =>
    criticalPath(each, rowNames.firstProcess, 0).map((step) => step.row);
  assert.deepEqual(on(rows(40, 30)), ["host h1", rowNames.firstProcess]);
  assert.deepEqual(on(rows(30, 40)), ["host h2", rowNames.firstProcess]);
  // What came after it cannot have been waited for.
  assert.deepEqual(on(rows(30, 140)), ["host h1", rowNames.firstProcess]);
  assert.deepEqual(on([]), []);
});

test("it is drawn, with every row and the path in words", () => {
  const drawn = renderBirth({ title: "A birth <1>", origin: ["here & now"], birth: whole() });
  for (const { name } of whole().rows) assert.ok(drawn.includes(`>${name}</text>`), name);
  assert.match(drawn, /A birth &lt;1&gt;/);
  assert.match(drawn, /here &amp; now/);
  assert.equal(drawn.match(/class="path"/g)?.length, whole().path.filter(({ row }) => row !== null).length + 1);
  assert.doesNotMatch(drawn, /NaN|undefined|Infinity/);
  assert.match(stepLines(whole()).join("\n"), /^ {3}5\.0 \+ {2}1\.0 s {2}first process: until: the process has ended/m);
});

test("a line of a log is read, and what two have told counts once", () => {
  const fields = { path: "root/core1/vm", stage: "running" };
  const line = JSON.stringify({
    level: "info",
    time: "1970-01-01T00:00:02Z",
    service: "host.h1",
    event: "machine/stage",
    fields,
  });
  const read = happeningIn(line);
  assert.deepEqual(read, say(2, "host.h1", "machine/stage", fields));
  for (const other of ["", "QEMU said something", "{}", '{"time":"then","event":"a","fields":{}}'])
    assert.equal(happeningIn(other), null);
  assert.equal(once([read, read, say(3, "host.h1", "machine/stage", fields)] as Happening[]).length, 2);
});

test("a service that has not told when it began to listen did so when its machine answered", () => {
  const silent = birth.filter(({ service, event }) => service !== "gateway" || event !== "process/started");
  const { path } = birthOf(silent, moments, vmOf);
  const rows = path.map(({ row }) => row).filter((row, index, all) => row !== all[index - 1]);
  assert.ok(rows.includes("primary/gateway/vm") && rows.includes("root/core1/vm"), rows.join(", "));
});

test("a gateway whose controller hears first that it is ready is on the path, from when it listens", () => {
  // A guest's clock and its host's differ: what the host says of its health may come after its controller knows.
  const late = birth
    .filter(({ service, event }) => service !== "gateway" || event !== "process/started")
    .map((each) =>
      each.path === "primary/gateway/vm" && each.event === "machine/health" ? { ...each, atMs: 27_100 } : each,
    );
  const named = (happenings: readonly Happening[]): readonly string[] =>
    birthOf(happenings, moments, vmOf).path.map(({ row }) => row ?? "nobody");
  assert.ok(named(late).includes("root/core1/vm"), named(late).join(", "));
  const { path } = birthOf([...late, say(25.5, "gateway", "gateway/listening")], moments, vmOf);
  const asks = path.find(({ row }) => row === rowNames.gateway);
  assert.equal(asks?.fromMs, 25_500);
});

test("which VM has which service is in the document, as it was written", () => {
  const text = (name: string): string => readFileSync(new URL(`../../examples/root/${name}`, import.meta.url), "utf8");
  const files = { "small.sf": text("small.sf"), "service.sf": text("service.sf") };
  const cell = readSpecification({ main: "small.sf", files });
  assert.ok(cell.ok, JSON.stringify(cell));
  const found = vmsOfServices(JSON.parse(JSON.stringify(cell.value.document)));
  assert.equal(found.get("controller.root"), "root/core1/vm");
  assert.equal(found.get("presence.2"), "root/core2/vm");
  assert.equal(found.get("cell-manager"), "root/core3/vm");
  assert.throws(() => vmsOfServices("nothing"), /cannot be read/);
});
