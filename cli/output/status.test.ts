import assert from "node:assert/strict";
import { test } from "node:test";
import type { CellSummary, InstallationStatus } from "../../model/api.ts";
import { type Paint, plain } from "../terminal/terminal.ts";
import { hasUtf8, renderBar, renderDuration, renderSize, renderStatus, type StatusView } from "./status.ts";

const nowMs = Date.parse("2026-01-31T12:00:00Z");
const view: StatusView = { paint: plain, columns: 80, utf8: true, nowMs };
const machine = { cell: "shop", stage: "running", memoryMiB: 128, residentMiB: 231, cpus: 1, load: 0.25 };
const status: InstallationStatus = {
  services: [
    {
      name: "placer",
      peer: "placer",
      address: "10.0.0.13",
      running: true,
      pid: 1,
      restarts: 2,
      state: "running",
      since: "2026-01-31T10:40:00Z",
      memoryMiB: 61,
      lastEnd: "SIGKILL",
    },
    { name: "s1", peer: "agent.s1", address: "10.0.2.1", running: false, pid: null, restarts: 0, state: "resting" },
  ],
  hosts: [
    {
      host: "h1",
      address: "10.0.1.1",
      state: "up",
      memoryMiB: 4096,
      usedMiB: 1024,
      reservedMiB: 1024,
      cpus: 2,
      accelerator: "tcg",
      vms: 1,
      load: { vms: 0.5, management: 0.01 },
      machines: [
        { ...machine, path: "shop/web/vm" },
        { ...machine, path: "shop/app/vm", stage: "starting", residentMiB: null },
      ],
    },
    {
      host: "h2",
      address: "10.0.1.2",
      state: "unreachable",
      memoryMiB: 0,
      usedMiB: 0,
      cpus: 0,
      accelerator: "unknown",
      vms: 0,
    },
  ],
  servers: [
    {
      server: "s1",
      address: "10.0.2.1",
      totalMiB: 20480,
      freeMiB: 5120,
      volumes: 12,
      bin: { files: 2, usedMiB: 900 },
      state: "up",
    },
    { server: "s2", address: "10.0.2.2", totalMiB: 0, freeMiB: 0, volumes: 0, state: "unreachable" },
  ],
};
const reason = `no host can hold it: ${"h1: its memory is taken; ".repeat(8)}`;
const cells: readonly CellSummary[] = [
  {
    cell: "shop",
    version: 3,
    phases: { ready: 10, waiting: 1, failed: 1 },
    elements: 12,
    waiting: [
      { path: "shop/db/vm", phase: "failed", reason },
      { path: "shop/\u001b[2Jx", phase: "waiting", reason: null },
    ],
  },
];

test("the picture shows hosts with their VMs, servers, services and cells", () => {
  const lines = renderStatus(status, cells, view).split("\n");
  assert.deepEqual(lines.slice(0, 6), [
    "Hosts  1 of 2 reachable, 1 VM   memory █ VMs  ▒ management  ░ free",
    "  ✓ h1     █████▒▒▒▒▒░░░░░░░░░░ 2.0 GiB of 4.0 GiB  CPU ██▒░░░░░ 0.51 of 2  tcg",
    "      · shop/app/vm                  starting",
    "      ✓ shop/web/vm                  128 MiB (231 MiB resident)  CPU 0.25",
    "  ✗ h2     10.0.1.2  not reachable: what runs there is not known",
    "Storage servers  12 volumes",
  ]);
  assert.deepEqual(lines.slice(6, 11), [
    "  ✓ s1     ███████████████░░░░░ 5.0 GiB of 20 GiB free  12 volumes, bin 900 MiB",
    "  ✗ s2     10.0.2.2  not reachable: its volumes cannot be written",
    "Services  1 of 2 run",
    "  ✓ placer   10.0.0.13  running 1 h 20 min  61 MiB  2 restarts, last: SIGKILL",
    "  ✗ agent.s1 10.0.2.1   resting",
  ]);
  assert.equal(lines[12], "  ✗ shop  version 3, 12 elements: 10 ready, 1 waiting, 1 failed");
  assert.match(lines[13] ?? "", /^ {6}✗ shop\/db\/vm no host can hold it: h1: .*…$/);
});

test("a cell whose HA Manager is gone says so below its line", () => {
  const [shop] = cells;
  assert.ok(shop !== undefined);
  const unguarded = "ha-manager.2 is gone: do \u001b[2Jthis";
  const services = { placer: 1, storageManager: 1, haManager: 2, unguarded };
  const lines = renderStatus(status, [{ ...shop, services }], view).split("\n");
  assert.equal(lines[13], "      ha-manager.2 is gone: do \ufffd[2Jthis");
});

test("a host in maintenance says what is still there, where that goes, and why it does not", () => {
  const [h1, h2] = status.hosts;
  assert.ok(h1 !== undefined && h2 !== undefined);
  const drawn = (...hosts: InstallationStatus["hosts"]): readonly string[] =>
    renderStatus({ ...status, hosts }, [], view).split("\n");
  const web = { cell: "shop", path: "shop/web/vm", to: "h3", reason: null };
  const app = { ...web, path: "shop/app/vm", to: null, reason: "h3: \u001b[2Jis full" };
  const leaving = [app, web];
  assert.deepEqual(drawn({ ...h1, administration: "maintenance", leaving }).slice(2, 7), [
    "      · in maintenance: 2 VMs are still there",
    "      · shop/app/vm stays: h3: \ufffd[2Jis full",
    "      · shop/web/vm leaves for h3",
    "      · shop/app/vm                  starting",
    "      ✓ shop/web/vm                  128 MiB (231 MiB resident)  CPU 0.25",
  ]);
  const empty = drawn({ ...h1, machines: [], administration: "maintenance" });
  assert.equal(empty[2], "      · in maintenance, and empty: it can be switched off");
  assert.equal(drawn({ ...h1, administration: "disabled" })[2], "      · disabled: it takes nothing new");
  const off = drawn({ ...h2, administration: "maintenance" });
  assert.equal(off[2], "      · in maintenance: `cells host resume h2` when it is back");
});

test("whether the fullest host may be lost is said below the hosts", () => {
  const said = (loss: InstallationStatus["loss"]): string | undefined =>
    renderStatus({ ...status, ...(loss === undefined ? {} : { loss }) }, [], view).split("\n")[5];
  assert.match(said(undefined) ?? "", /^Storage servers/);
  assert.match(said({ host: "h1", vms: 0, stranded: [] }) ?? "", /^Storage servers/);
  assert.equal(
    said({ host: "h1", vms: 2, stranded: [] }),
    "  ✓ if h1, the fullest, is lost, there is room elsewhere for its 2 VMs",
  );
  assert.equal(
    said({ host: "h1", vms: 3, stranded: ["shop/web/vm", "shop/db/vm"] }),
    "  ✗ if h1 is lost, 2 of its 3 VMs had no room: shop/web/vm and 1 more",
  );
});

test("whether as much room is kept as the operator wants is said below that", () => {
  const said = (spare: NonNullable<InstallationStatus["spare"]>): string | undefined =>
    renderStatus({ ...status, spare }, [], view).split("\n")[5];
  assert.equal(said({ hosts: 1, lack: null }), "  ✓ room is kept for the loss of 1 host, as `x.ha.spareHosts` says");
  assert.equal(
    said({ hosts: 2, lack: { vms: 1, memoryMiB: 512 } }),
    "  ✗ if 2 hosts are lost, 1 VM (512 MiB) had no room (`x.ha.spareHosts`)",
  );
});

test("that fewer hosts are left to the cloud's own VMs than are to be is said there, too", () => {
  const said = (systemHosts: NonNullable<InstallationStatus["systemHosts"]>): string | undefined =>
    renderStatus({ ...status, systemHosts }, [], { ...view, columns: 200 }).split("\n")[5];
  const helps = "let one more join, or VMs that have one alone end";
  const of = (kept: number): string => `left to the cloud's own VMs (\`x.placement.systemHosts\` ${kept}): ${helps}`;
  assert.equal(said({ kept: 1, left: 0 }), `  ✗ no host is ${of(1)}`);
  assert.equal(said({ kept: 3, left: 2 }), `  ✗ 2 of 3 hosts are ${of(3)}`);
});

test("no line is longer than the terminal, and nothing that a tenant wrote reaches it raw", () => {
  for (const columns of [80, 60]) {
    for (const line of renderStatus(status, cells, { ...view, columns }).split("\n")) {
      assert.ok(line.length <= columns, line);
      assert.ok(!line.includes("\u001b"), "control characters are replaced");
    }
  }
});

test("without UTF-8 it is ASCII and says the same; colour adds nothing but colour", () => {
  const ascii = renderStatus(status, cells, { ...view, utf8: false }).replaceAll("\ufffd", "?");
  assert.match(ascii, /^[\n -~]*$/);
  assert.match(ascii, /^ {2}\+ h1 {5}#####=====---------- 2\.0 GiB of 4\.0 GiB/m);
  const paint: Paint = (_colour, text) => `\u001b[31m${text}\u001b[0m`;
  const codes = new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, "g");
  assert.equal(
    renderStatus(status, cells, { ...view, paint }).replaceAll(codes, ""),
    renderStatus(status, cells, view),
  );
});

test("an empty installation says what would fill it", () => {
  const empty = renderStatus({ services: [], hosts: [], servers: [] }, [], view);
  assert.match(empty, /Hosts {2}0 of 0 reachable.*\n {2}none has registered/);
  assert.match(empty, /Cells\n {2}none: `cells apply/);
});

test("an older gateway's answer, without what was added, is drawn as far as it goes", () => {
  const services = [{ name: "placer", address: "10.0.0.13", running: false, pid: null, restarts: 1 }];
  assert.match(renderStatus({ services, hosts: [], servers: [] }, [], view), /✗ placer 10\.0\.0\.13 {2}stopped/);
});

test("bars, sizes and durations", () => {
  const signs = ["#", "=", "-"] as const;
  assert.equal(renderBar([1, 1], 1000, 6, signs), "#=----", "what is there shows");
  assert.equal(renderBar([50, 60], 100, 6, signs), "###===", "and never more than the whole");
  assert.equal(renderBar([], 0, 3, signs), "---");
  assert.deepEqual([0, 1023, 1024, 20_480].map(renderSize), ["0 MiB", "1023 MiB", "1.0 GiB", "20 GiB"]);
  assert.deepEqual([-5, 59_000, 61_000, 3_600_000, 12_000_000, 90_000_000].map(renderDuration), [
    "0 s",
    "59 s",
    "1 min",
    "1 h",
    "3 h 20 min",
    "1 d 1 h",
  ]);
  assert.ok(hasUtf8({ LANG: "C.UTF-8" }) && !hasUtf8({}) && !hasUtf8({ LC_ALL: "C", LANG: "de_DE.UTF-8" }));
});

test("a host shows which addresses it announces by BGP, to whom and since when", () => {
  const [up] = status.hosts;
  assert.ok(up !== undefined);
  const shown = (announces: NonNullable<typeof up.announces>) =>
    renderStatus({ ...status, hosts: [{ ...up, machines: [], announces }] }, [], { ...view, columns: 120 }).split(
      "\n",
    )[2];
  const one = { address: "198.18.0.10", since: "2026-01-31T11:59:00Z" };
  const further = ["11", "12", "13", "14", "15"].map((last) => ({ address: `198.18.0.${last}`, since: null }));
  const to = ["192.0.2.1", "192.0.2.2"];
  assert.equal(
    shown({ to, addresses: [one, further[0]!] }),
    "      announces 198.18.0.10 (1 min), 198.18.0.11 to 192.0.2.1 and 192.0.2.2",
  );
  assert.match(shown({ to: [], addresses: [one, ...further] }) ?? "", /, 198\.18\.0\.13 and 2 more to nobody$/);
  assert.doesNotMatch(shown({ to, addresses: [] }) ?? "", /announces/);
});

test("a host shows what Presence says of it: up, suspected or dead, and since when", () => {
  const [up, away] = status.hosts;
  assert.ok(up !== undefined && away !== undefined);
  const lines = (host: typeof up, state: "up" | "suspected" | "dead" | "unknown", since: string | null) =>
    renderStatus({ ...status, hosts: [{ ...host, machines: [], presence: { state, since } }] }, [], {
      ...view,
      columns: 120,
    }).split("\n");
  const since = "2026-01-31T11:59:00Z";
  assert.match(lines(up, "up", since)[1] ?? "", /tcg {2}up 1 min$/);
  assert.match(lines(up, "suspected", since)[2] ?? "", /suspected for 1 min$/);
  assert.match(lines(away, "dead", since)[1] ?? "", /✗ h2 .* declared dead 1 min ago: what runs there is not known$/);
  assert.match(lines(away, "suspected", null)[1] ?? "", /suspected: what runs there is not known$/);
  const off = { ...away, machines: [], presence: { state: "dead", since, powerIsOff: true } } as const;
  const [, line = ""] = renderStatus({ ...status, hosts: [off] }, [], { ...view, columns: 120 }).split("\n");
  assert.match(line, /declared dead 1 min ago: its power is off, and nothing runs there$/);
  for (const state of ["up", "unknown"] as const)
    assert.match(lines(away, state, since)[1] ?? "", /not reachable: what runs there is not known$/);
});
