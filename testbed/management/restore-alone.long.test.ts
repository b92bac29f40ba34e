import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { type Testbed, withTestbedDirectory } from "../harness.ts";
import { cells, stateOf, until } from "../lab.testing.ts";
import { memberDirectory } from "../places.ts";
import { rootSpecification } from "../self-hosted.ts";
import { execIn } from "../tenants/questions.testing.ts";
import { tenant, untilAllReady } from "./self-hosted.testing.ts";

/**
 * A cloud that runs in itself loses all of its machines, one of its two storage servers and every store of its management, and
 * comes back from the backup that its schedule has made, on fresh machines, with its tenant's cell as declared and
 * what the guest had written: only with `./cells test --all`, since it takes two births on
 * emulated processors. What needs no machines of it is in host/bootstrap/bootstrap-restored.test.ts, core/controller/histories/put-back.test.ts and
 * runtime/backup/kept-parts.test.ts.
 */
const skip = process.getuid?.() === 0 ? false : "needs root, for namespaces";
const patience = 600;
const passphrase = "four words make one";
const hosts = ["h1", "h2", "h3"];

const inTenant = async (t: Testbed, script: string): Promise<string> => {
  const { stdout } = await until(
    `one/vm: ${script}`,
    () => execIn(t, "one/vm", ["sh", "-c", script]),
    ({ code }) => code === 0,
    patience,
  );
  return stdout;
};

/** Files of volumes on a server, by their UIDs. */
const volumesOn = (t: Testbed, server: string): readonly string[] =>
  readdirSync(join(memberDirectory(t.at, server), "data", "volumes"))
    .filter((name) => name.endsWith(".qcow2"))
    .map((name) => name.replace(/\.qcow2$/, ""))
    .sort();

/** Copies go to the server with the most room, in turn where two are alike; of so many, one is beside what all are copies of. */
const others = ["again", "third", "fourth", "fifth"];
const boots = ["boot", ...others];
const copies = others.map((name) => `  ${name} extends VolumeCopy { x.image "<ref:/one/golden>"; }\n`).join("");
const uidOf = async (t: Testbed, path: string): Promise<string> => String((await stateOf(t, path))?.uid);

/**
 * A tenant whose machine runs from a volume that one server has whole, down to the image that it began as: without replicas
 * the other one may be lost. Resolves with that server.
 */
const tenantOfOneServer = async (t: Testbed, file: string): Promise<string> => {
  const whole = tenant("one").trimEnd().replace(/\}$/, `${copies}}\n`);
  const volumes = whole
    .split("\n")
    .filter((line) => !/extends (VM|VolumeConnection|Subnet|VirtualInterface)\b/.test(line));
  writeFileSync(file, volumes.join("\n"));
  await cells(t, "apply", file, "--yes");
  const golden = await uidOf(t, "one/golden");
  const server = ["s1", "s2"].find((each) => volumesOn(t, each).includes(golden));
  assert.ok(server !== undefined, `${golden} is on no server`);
  const uids = await Promise.all(boots.map((name) => uidOf(t, `one/${name}`)));
  const boot = boots[uids.findIndex((uid) => volumesOn(t, server).includes(uid))];
  assert.ok(boot !== undefined, `${server} has no copy of what it has: ${uids.join(" ")}`);
  writeFileSync(file, whole.replace('x.volume "<ref:/one/boot>"', `x.volume "<ref:/one/${boot}>"`));
  await cells(t, "apply", file, "--yes");
  return server;
};

/** The schedule goes into the root cell, as an operator writes it. Resolves with the name of the first backup. */
const scheduled = async (t: Testbed, publicKey: string): Promise<string> => {
  const file = rootSpecification(t.at, "small");
  const text = readFileSync(file, "utf8");
  const head = "root extends Cell, Provided {";
  assert.ok(text.includes(head));
  writeFileSync(file, text.replace(head, `${head}\n  x.backup.publicKey "${publicKey}";\n  x.backup.period 360;`));
  await cells(t, "apply", file, "--yes");
  const { stdout } = await until(
    "the schedule has left a backup on both servers",
    () => t.cells(["management", "list", "--output", "json"]),
    ({ code, stdout }) => code === 0 && /"s1"/.test(stdout) && /"s2"/.test(stdout),
    patience,
  );
  const { backups } = JSON.parse(stdout) as { backups: readonly { name: string; servers: readonly string[] }[] };
  const last = backups.at(-1);
  assert.ok(last !== undefined);
  return last.name;
};

test("a cloud that lost its machines and management comes back from its schedule's backup", {
  skip,
}, async (context) => {
  const start = performance.now();
  const reached = (what: string): void =>
    context.diagnostic(`${((performance.now() - start) / 1000).toFixed(0)} s: ${what}`);
  const onProgress = (line: string): void => reached(`up: ${line}`);
  await withTestbedDirectory({ profile: "small", hosts: hosts.length, servers: 2, onProgress }, async (t) => {
    await t.up();
    const directory = dirname(t.configFile);
    const [file, secret, key, backup] = ["one.sf", "passphrase", "operator.key", "cells.backup"].map((name) =>
      join(directory, name),
    ) as [string, string, string, string];
    writeFileSync(secret, `${passphrase}\n`, { mode: 0o600 });
    const survivor = await tenantOfOneServer(t, file);
    await untilAllReady(t, "root", patience);
    await inTenant(t, "echo written before > /root/kept; sync");
    reached("a tenant's guest has written a file");

    const publicKey = (await cells(t, "management", "key", key, "--passphrase-file", secret)).trim();
    const name = await scheduled(t, publicKey);
    await cells(t, "management", "fetch", name, backup);
    const opening = ["--key", key, "--passphrase-file", secret];
    const verified = await cells(t, "management", "verify", backup, ...opening);
    for (const part of ["authority", "controller.root", "controller.one", "controller.primary", "cell-manager"])
      assert.match(verified, new RegExp(`^  ${part.replace(".", "\\.")} `, "m"));
    reached(`the schedule made ${name}, and it is whole`);
    const running = await t.cells(["management", "restore", backup, ...opening, "--yes"]);
    assert.match(running.stderr, /the testbed runs, and would write over what is restored/);

    await t.down();
    const lost = survivor === "s1" ? "s2" : "s1";
    const before = volumesOn(t, survivor);
    context.diagnostic(`${survivor} keeps ${before.join(" ")}; lost with ${lost}: ${volumesOn(t, lost).join(" ")}`);
    for (const member of [...hosts, lost]) rmSync(memberDirectory(t.at, member), { recursive: true });
    rmSync(t.at.authority, { recursive: true });

    const restored = await cells(t, "management", "restore", backup, ...opening, "--yes");
    assert.match(restored, /restored controller\.one$/m);
    assert.match(restored, /left as they are: agent\.s1, agent\.s2/);
    reached("destroyed, and restored");
    await t.up();
    reached("up again");
    assert.match(await inTenant(t, "cat /root/kept"), /^written before$/m);
    reached("the tenant's guest reads its file");
    for (const cell of ["root", "one", "primary"]) await untilAllReady(t, cell, patience);
    assert.match(await cells(t, "plan", file), /unchanged/);
    reached("every cell is as declared");
    // No file of a volume was touched, whether anybody knows it or not.
    const after = volumesOn(t, survivor);
    assert.deepEqual(
      before.filter((volume) => !after.includes(volume)),
      [],
    );
    writeFileSync(
      file,
      readFileSync(file, "utf8").trimEnd().replace(/\}$/, "  later extends Volume { x.size 8; }\n}\n"),
    );
    await cells(t, "apply", file, "--yes");
    reached("it takes a change");
  });
});
