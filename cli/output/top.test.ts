import assert from "node:assert/strict";
import { test } from "node:test";
import type { InstallationStatus } from "../../model/api.ts";
import { rowsOfStatus, statusOfRows } from "../../model/contract/follow/rows.ts";
import { plain } from "../terminal/terminal.ts";
import { renderTop, topOf } from "./top.ts";

const machine = (cell: string, name: string, load: number, residentMiB: number | null) => ({
  path: `${cell.split(".")[0]}/${name}`,
  cell,
  stage: "running",
  memoryMiB: 512,
  residentMiB,
  cpus: 2,
  load,
});
const host = { address: "10.0.0.1", state: "up", usedMiB: 1024, cpus: 4, accelerator: "tcg", vms: 2, memoryMiB: 4096 };
const status: InstallationStatus = {
  services: [{ name: "placer", address: "10.0.0.9", running: true, pid: 1, restarts: 0 }],
  servers: [{ server: "s1", address: "10.0.0.1", totalMiB: 9, freeMiB: 4, volumes: 1, state: "up" }],
  hosts: [
    {
      ...host,
      host: "h1",
      reservedMiB: 100,
      load: { vms: 1.5, management: 0.25 },
      machines: [machine("shop", "web", 0.5, 300), machine("db.shop", "vm", 1, 100)],
    },
    { ...host, host: "h2", machines: [machine("shop", "app\u001b[31m", 0.75, null)] },
    { ...host, host: "h3", state: "unreachable", machines: [machine("shop", "old", 9, 9)] },
  ],
  spare: { hosts: 1, lack: null },
};

test("a status goes through the rows of its topic as it is", () => {
  assert.deepEqual(statusOfRows(rowsOfStatus(status)), status);
});

test("what uses most comes first; cells are the sum of their machines, and a host that is away says nothing", () => {
  const top = topOf(status, "cpu");
  assert.deepEqual(
    top.hosts.map(({ name, cpu, memoryMiB }) => [name, cpu, memoryMiB]),
    [
      ["h1", 1.75, 1124],
      ["h2", 0, 1024],
    ],
  );
  assert.deepEqual(
    top.vms.map(({ name }) => name),
    ["db.shop/vm", "shop/app\u001b[31m", "shop/web"],
  );
  assert.deepEqual(top.cells, [
    { name: "shop", cpu: 1.25, cpus: 4, memoryMiB: 300, ofMiB: 1024 },
    { name: "db.shop", cpu: 1, cpus: 2, memoryMiB: 100, ofMiB: 512 },
  ]);
  assert.deepEqual(topOf(status, "memory").vms.map(({ name }) => name)[0], "shop/web");
  assert.deepEqual(top.silent, ["h3"]);
  const text = renderTop(top, plain).join("\n");
  assert.match(text, /^HOST +CPU +OF +MEMORY MiB +OF +DISK KiB\/s +NET KiB\/s\nh1 +1\.75 +4 +1124 +4096/);
  assert.match(text, /not known, since they do not answer: h3$/);
  assert.ok(!text.includes("\u001b"));
});

test("who sends and receives most comes first; of a host of a version before nothing is known of that", () => {
  const said = (name: string, network: number) => ({ ...machine("shop", name, 0, 1), network });
  const before = { ...host, host: "h4", machines: [machine("shop", "older", 0, 1)] };
  const now = { ...host, host: "h5", machines: [said("quiet", 0), said("busy", 2048), said("loud", 4096)] };
  const top = topOf({ ...status, hosts: [before, now] }, "network");
  assert.deepEqual(
    top.vms.map(({ name, network }) => [name, network]),
    [
      ["shop/loud", 4096],
      ["shop/busy", 2048],
      ["shop/older", undefined],
      ["shop/quiet", 0],
    ],
  );
  assert.deepEqual(
    top.hosts.map(({ name, network }) => [name, network]),
    [
      ["h5", 6144],
      ["h4", undefined],
    ],
  );
  assert.equal(top.cells[0]?.network, 6144);
  assert.match(renderTop(top, plain).join("\n"), /shop\/loud .* 4\.0 +h5/);
});

test("who reads and writes most comes first, and its cell has the sum", () => {
  const said = (name: string, disk: number) => ({ ...machine("shop", name, 0, 1), disk });
  const now = { ...host, host: "h5", machines: [said("quiet", 0), said("busy", 2048), said("loud", 4096)] };
  const top = topOf({ ...status, hosts: [now] }, "disk");
  assert.deepEqual(
    top.vms.map(({ name, disk }) => [name, disk]),
    [
      ["shop/loud", 4096],
      ["shop/busy", 2048],
      ["shop/quiet", 0],
    ],
  );
  assert.deepEqual([top.cells[0]?.disk, top.hosts[0]?.disk, top.cells[0]?.network], [6144, 6144, undefined]);
  assert.match(renderTop(top, plain).join("\n"), /shop\/loud .* 4\.0 +h5/);
});
