import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { resolver } from "../configuration.ts";
import type { Testbed } from "../harness.ts";
import { cells, stateOf, until } from "../lab.testing.ts";
import { rootSpecification } from "../self-hosted.ts";

/** The VM with the role `dns-manager` of `examples/root/small.sf`, and the operator's name server. */
const dnsManager = "10.0.0.32";
const [zone, key, port] = ["cloud.example.org", "transfer", "5353"];

/** A cell whose machine has an external address and a name for everybody. */
const shown = `
shown extends Cell {
  net extends Subnet { x.size 8; x.addressRange "external"; }
  golden extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }
  boot extends VolumeCopy { x.image "<ref:/shown/golden>"; }
  vm extends VM { x.memory 96; x.public true; }
  disk extends VolumeConnection { x.vm "<ref:/shown/vm>"; x.volume "<ref:/shown/boot>"; x.bootOrder 0; }
  card extends VirtualInterface { x.vm "<ref:/shown/vm>"; x.subnet "<ref:/shown/net>"; x.vifName "www"; }
}
`;

/** What the operator's guide has for `nsd`, at an address of the management network. */
function configuration(directory: string, secret: string): string {
  const guide = readFileSync(new URL("../../docs/operator.md", import.meta.url), "utf8");
  const written = /```text\n(key:[^`]+)```/.exec(guide)?.[1] ?? "";
  const files = ["zonelistfile", "xfrdfile", "pidfile"].map((name) => `  ${name}: "${join(directory, name)}"`);
  return [
    "server:",
    `  ip-address: ${resolver.address}@${port}`,
    '  username: ""',
    '  database: ""',
    `  zonesdir: "${directory}"`,
    `  xfrdir: "${directory}"`,
    "  xfrd-reload-timeout: 0",
    ...files,
    "remote-control:",
    "  control-enable: no",
    written.replace(/secret: "[^"]*"/, `secret: "${secret}"`),
  ].join("\n");
}

/**
 * Names of external addresses leave a cloud that runs in itself: the root cell says to whom, the secret comes by the gateway,
 * and a real name server on the management network fetches them from the DNS Manager's VM and answers.
 */
export async function namesForTheOutside(t: Testbed): Promise<void> {
  const directory = join(dirname(t.configFile), "zone");
  mkdirSync(directory, { recursive: true });
  const secret = Buffer.alloc(32, 5).toString("base64");
  const [secretFile, server] = [join(directory, "secret"), join(directory, "nsd.conf")];
  writeFileSync(secretFile, `${secret}\n`, { mode: 0o600 });
  writeFileSync(server, configuration(directory, secret));
  const root = rootSpecification(t.at, "small");
  const text = readFileSync(root, "utf8");
  const declared = [
    `x.zone.name "${zone}"; x.zone.servers "ns1.example.org";`,
    `x.zone.key "${key}";`,
    `x.zone.secondaries ["${resolver.address}"];`,
  ].join(" ");
  writeFileSync(
    root,
    text.replace("root extends Cell, Provided {", (start) => `${start}\n  ${declared}`),
  );
  await cells(t, "apply", root, "--yes");
  const says = (what: string, form: RegExp): Promise<unknown> =>
    until(
      what,
      () => t.cells(["zone"]),
      ({ stdout }) => form.test(stdout),
    );
  await says("nobody can fetch it without a secret", /nobody can fetch it: the secret of "transfer" is not here/);
  assert.match(
    await cells(t, "zone", "key", key, "--secret-file", secretFile),
    /is sealed; transfers are signed by it/,
  );
  await says("the key counts", /cloud\.example\.org, number \d+, is handed to 10\.0\.0\.9/);
  const file = join(directory, "shown.sf");
  writeFileSync(file, shown);
  await cells(t, "apply", file, "--yes");
  const address = (await stateOf(t, "shown/card"))?.address ?? assert.fail("it has no address");
  const started = await t.resolver(["nsd", "-c", server]);
  assert.equal(started.code, 0, started.stderr);
  try {
    const look = (name: string) => t.resolver(["busybox", "nslookup", "-type=a", name, `${resolver.address}:${port}`]);
    await until(
      `${zone} is served by the operator's name server`,
      () => look(`www.shown.${zone}`),
      ({ stdout }) => stdout.includes(String(address)),
    );
    const unsigned = await t.resolver([
      "sh",
      "-c",
      `${transferByTcp} | socat -t3 - TCP4:${dnsManager}:53 | od -An -tx1`,
    ]);
    // Refused (5) is the last half of the fourth octet behind the length.
    assert.match(unsigned.stdout.trim(), /^(?:[0-9a-f]{2} ){5}[0-9a-f]5 /, "the address alone fetches nothing");
  } finally {
    await t.resolver(["sh", "-c", `kill "$(cat ${join(directory, "pidfile")})"`]);
  }
  await cells(t, "delete", "shown", "--yes", "--allow-destroy", "shown/boot");
  writeFileSync(root, text);
  // That the cell is gone changes the root cell, too.
  await until(
    "the root cell is as it was",
    () => t.cells(["apply", root, "--yes"]),
    ({ code }) => code === 0,
  );
}

/** A question for all of the zone, as a shell writes it. */
const labels = zone.split(".").flatMap((label) => [label.length, ...Buffer.from(label)]);
const question = [0, 9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, 252, 0, 1];
const transferByTcp = `printf '${[0, question.length, ...question].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("")}'`;
