import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, Machine } from "../host/drivers/network/diverter/testing/namespaces.ts";
import { buildServiceImage } from "../image/service.ts";
import { peerName } from "../model/identifiers.ts";
import type { Json } from "../model/json.ts";
import { createAuthority, issueCertificate } from "../runtime/certificates.ts";
import { ports } from "../runtime/installation.ts";
import { type ServiceData, type ServiceRole, serviceRoles } from "../runtime/service-data.ts";
import { cacheDirectory } from "./places.ts";
import type { GuestStarted } from "./service-guest.ts";

/**
 * A service VM as a host runs it, twice: with one role, until its power is cut; then, on the same data volume, with a
 * second role that cannot come up, until it is asked to stop.
 */
const skip = process.getuid?.() === 0 ? false : "needs root";
const memoryMiB = 160;

const roleData = async (authority: string, role: ServiceRole, more: object = {}): Promise<object> => {
  const files = await issueCertificate(authority, peerName(role), ["10.0.0.13"]);
  const [certificate, key] = [files.certFile, files.keyFile].map((file) => readFileSync(file, "utf8"));
  return { name: role, identity: { kind: "issued", certificate, key }, ...more };
};
const dataOf = (caFile: string, roles: object): Json => {
  const data = { format: 1, authority: readFileSync(caFile, "utf8"), peers: {}, roles: roles as ServiceData["roles"] };
  return data as unknown as Json;
};

/** What lies on the data volume, as its file system says: mode, owner, group, size, name. */
const listing = (directory: string, path: string): readonly string[] => {
  const raw = join(directory, "data.raw");
  execFileSync("qemu-img", ["convert", "-O", "raw", join(directory, "data.qcow2"), raw]);
  const text = execFileSync("debugfs", ["-R", `ls -l ${path}`, raw], { encoding: "utf8", stdio: "pipe" });
  const state = execFileSync("dumpe2fs", ["-h", raw], { encoding: "utf8", stdio: "pipe" });
  assert.match(state, /^Filesystem state: +clean$/m);
  assert.doesNotMatch(state, /needs_recovery/);
  return text.split("\n").map((line) => line.trim().replace(/\s+/g, " "));
};

test("a service VM answers, keeps its state through a power cut, and is silent while a role is down", {
  skip,
}, async (t) => {
  const image = await buildServiceImage({
    cacheDirectory: cacheDirectory(),
    onProgress: (words) => t.diagnostic(words),
  });
  const directory = mkdtempSync(join(tmpdir(), "cells-service-"));
  chmodSync(directory, 0o711);
  const machine = await Machine.start();
  const host = new Agent(machine, "../../../../../testbed/service-guest.ts", directory, image);
  try {
    const [own, foreign] = [join(directory, "authority"), join(directory, "foreign")];
    const { caFile } = await createAuthority(own);
    await createAuthority(foreign);
    const names = await roleData(own, "dns-manager");
    const name = "web1.test.cells.internal";
    const wish = ["name/w-1", { uid: "w-1", name, address: "10.64.0.2" }] as const;
    await host.call("prepare");

    const started = await host.call<GuestStarted>("start", {
      ...{ memoryMiB, data: dataOf(caFile, { "dns-manager": names }), awaitAnswer: true },
    });
    const { memoryMiB: used } = await host.call<{ memoryMiB: number }>("usage");
    const seconds = (ms: number): string => (ms / 1000).toFixed(1);
    t.diagnostic(
      `liveness probe answered after ${seconds(started.answeredMs)} s (${seconds(started.cpuMs)} s of CPU), ` +
        `${memoryMiB} MiB of guest memory, ${used.toFixed(0)} MiB of host memory`,
    );
    assert.deepEqual(await host.call("lookUp", name), [], "the name is there before anybody desired it");
    const stranger = await host.call<string>("desire", ports.distribution, foreign, ...wish);
    assert.match(stranger, /^failed/, "a certificate of another authority is as good as ours");
    assert.deepEqual(await host.call("lookUp", name), []);
    assert.equal(await host.call("desire", ports.distribution, own, ...wish), "dns-manager");
    assert.deepEqual(await host.call("lookUp", name), ["10.64.0.2"]);
    assert.equal(await host.call("answers", 5), true);
    await host.call("cut");

    const data = dataOf(caFile, {
      "dns-manager": names,
      // A key to no certificate: the role cannot start.
      placer: await roleData(own, "placer", { distributionPort: 7200, httpPort: 7201 }).then((role) => ({
        ...role,
        identity: { ...(role as { identity: object }).identity, key: "-----BEGIN PRIVATE KEY-----\n" },
      })),
    });
    await host.call("start", { memoryMiB: 224, data, awaitAnswer: false });
    const said = async (words: RegExp): Promise<void> => {
      for (let tries = 600; !words.test(await host.call<string>("console")); tries -= 1) {
        assert.ok(tries > 0, `the guest never said ${words}:\n${await host.call("console")}`);
        await sleep(100);
      }
    };
    await said(/dns-manager answers/);
    await said(/placer ended \(code 1\) and is started again/);
    assert.deepEqual(await host.call("lookUp", name), ["10.64.0.2"], "what was durable before the power cut is gone");
    assert.equal(await host.call("answers", 2), false, "the VM answers though one of its roles does not");
    const last = await host.call<string>("stop", 20_000);
    assert.match(last, /the data volume was not closed properly, and is in order/);
    assert.match(last, /"event":"stopped"/);
    assert.doesNotMatch(last, /PRIVATE KEY|login:/);

    // Users are the image's, in the order of its roles; the service's files are its own and nobody else's.
    const user = 101 + serviceRoles.indexOf("dns-manager");
    const files = listing(directory, "/dns-manager");
    assert.ok(
      files.some((line) => new RegExp(`100600 \\(1\\) ${user} ${user} .* state\\.sqlite$`).test(line)),
      files.join("\n"),
    );
    assert.ok(
      listing(directory, "/").some((line) => new RegExp(`40700 \\(2\\) ${user} ${user} .* dns-manager$`).test(line)),
    );
    const map = execFileSync("qemu-img", ["map", "--output=json", join(directory, "root.qcow2")], { encoding: "utf8" });
    const written = (JSON.parse(map) as { depth: number; data: boolean }[]).filter(
      (part) => part.depth === 0 && part.data,
    );
    assert.deepEqual(written, [], "the root file system was written to");
  } finally {
    await host.call("end").catch(() => undefined);
    await host.stop();
    await machine.stop();
    rmSync(directory, { recursive: true, force: true });
  }
});
