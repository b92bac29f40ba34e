import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

const root = join(import.meta.dirname, "..", "..");
const cases = join(root, "host/drivers/network/eucalyptus/cases");
const directory = mkdtempSync(join(tmpdir(), "cells-network-"));
after(() => rmSync(directory, { recursive: true, force: true }));
const cells = (...words: readonly string[]) =>
  spawnSync(process.execPath, [join(root, "cli/main.ts"), "network", ...words], { cwd: directory, encoding: "utf8" });
const inFile = (name: string, text: string): string => {
  writeFileSync(join(directory, name), text);
  return name;
};

test("a plan goes into a directory, by the names of the recordings, and an earlier one does not stay", () => {
  const edge = cells(
    "view",
    "plan",
    join(cases, "edge-03-two-nodes-n1/gni.xml"),
    "--self",
    "10.111.5.43",
    "--out",
    "plan",
  );
  assert.equal(edge.status, 0, edge.stderr);
  assert.match(edge.stderr, /names the security group sg-deadbeef, which is not in the view; it is left out/);
  assert.deepEqual(readdirSync(join(directory, "plan")).sort(), [
    "ebtables-rules.txt",
    "euca-dhcp.conf",
    "ipset-restore.0.txt",
    "ipset-restore.1.txt",
    "ipsets.txt",
    "iptables-restore.txt",
  ]);
  const recorded = readFileSync(join(cases, "edge-03-two-nodes-n1/ebtables-rules.txt"), "utf8");
  assert.equal(readFileSync(join(directory, "plan/ebtables-rules.txt"), "utf8"), recorded);
  const network = ["--self", "10.111.1.54", "--peer", "network", "--out", "plan"];
  assert.equal(cells("view", "plan", join(cases, "managed-01-one-group/gni.xml"), ...network).status, 0);
  assert.deepEqual(readdirSync(join(directory, "plan")).sort(), [
    "euca-dhcp.conf",
    "iptables-restore.txt",
    "segments.txt",
  ]);
});

test("metadata from private addresses is an option", () => {
  const file = join(cases, "edge-08-metadata-private/gni.xml");
  const of = (...more: readonly string[]): string =>
    cells("view", "plan", file, "--self", "10.111.5.43", ...more).stdout;
  const rule = "-d 169.254.169.254/32 -j MARK";
  assert.ok(of("--metadata-private").includes(rule) && !of().includes(rule));
});

test("a view that is refused ends with 3, and writes nothing", () => {
  for (const [name, text] of [
    ["cut.xml", "<network-data><configuration>"],
    ["type.xml", '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><network-data>&b;</network-data>'],
    ["large.xml", `<network-data>${" ".repeat(10 * 1024 * 1024)}</network-data>`],
    ["latin.xml", "<network-data>\u00ff</network-data>"],
  ] as const) {
    writeFileSync(join(directory, name), text, name === "latin.xml" ? "latin1" : "utf8");
    const found = cells("view", "plan", name, "--self", "10.0.0.1", "--out", "none");
    assert.equal(found.status, 3, `${name}: ${found.stderr}`);
    assert.match(found.stderr, /refused as a whole/);
    assert.ok(!existsSync(join(directory, "none")));
  }
  assert.equal(cells("view", "check", "cut.xml", "--self", "10.0.0.1").status, 3);
  assert.equal(cells("view", "check", "nowhere.xml", "--self", "10.0.0.1").status, 1);
  assert.equal(cells("view", "check", "cut.xml", "--self", "10.0.0.1; reboot").status, 2);
});

test("a configuration is checked, and made of old values", () => {
  const bad = inFile("bad.json", '{\n "Mode": "EDGY",\n "MacPrefix": "x"\n}\n');
  const found = cells("configuration", "check", bad);
  assert.equal(found.status, 1);
  assert.match(found.stderr, /bad\.json:2:10: \/Mode: .*\n(?:.*\n)*bad\.json:3:15: \/MacPrefix: /);
  const old = inFile(
    "eucalyptus.conf",
    'VNET_MODE=MANAGED\nVNET_PUBLICIPS="10.0.0.1"\nVNET_SUBNET=1.121.64.0\nVNET_NETMASK=255.255.192.0\nVNET_ADDRSPERNET=16\nPROPERTY one.cluster.minnetworktag 512\n',
  );
  const made = cells("configuration", "import", old);
  assert.equal(made.status, 0, made.stderr);
  assert.equal(cells("configuration", "check", inFile("good.json", made.stdout)).status, 0);
});
