import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Refusal } from "../../model/api.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../runtime/installation.testing.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { installationSupply } from "./supply.ts";

/** The port of HTTPS is fixed, so each process gets an address of its own inside 127.0.0.0/8. */
const addressOf = (number: number): string => `127.${98 + (process.pid % 100)}.${(process.pid >> 8) & 255}.${number}`;

const alive = new Set<ChildProcess>();
let installation: TestInstallation;
after(async () => {
  const ended = [...alive].map((child) => once(child, "exit"));
  for (const child of alive) child.kill("SIGTERM");
  await Promise.all(ended);
  await installation.remove();
});

test("the gateway learns from the services what could be had, and what is silent is unknown", async () => {
  installation = await createTestInstallation("supply");
  const configure = async (name: string, number: number, role: ProcessConfiguration["role"]) =>
    installation.configure(peerName(name), { change: { role, address: addressOf(number) } });
  const { configuration } = await configure("gateway", 9, "gateway");
  const nobody = await installationSupply(configuration);
  assert.deepEqual(nobody, { hosts: null, storage: null, addresses: null });
  for (const [index, role] of (["placer", "storage-manager", "address-manager"] as const).entries()) {
    const { file } = await configure(role, index + 1, role);
    alive.add(spawn(process.execPath, [join(import.meta.dirname, "../../runtime/main.ts"), file], { stdio: "ignore" }));
  }
  await eventually("all three answer", async () => {
    const { hosts, storage, addresses } = await installationSupply(configuration);
    return hosts !== null && storage !== null && addresses !== null;
  });
  const { hosts, storage, addresses } = await installationSupply(configuration);
  assert.deepEqual(hosts, [], "there is no host");
  assert.equal(storage?.totalMiB, 0, "there is no storage server");
  assert.match(addresses?.internal.pool ?? "", /^\d+\.\d+\.\d+\.\d+\/\d+$/);
  // One that was never heard of might have anything.
  await configure("host.h1", 5, "host");
  await eventually(
    "the Placer waits for the host",
    async () => (await installationSupply(configuration)).hosts === null,
  );
  const other = await configure("controller.shop", 6, "controller");
  const answer = await peerRequest(other.configuration, peerName("placer"), { method: "GET", path: "/offers" });
  assert.equal(answer.status, 403);
  assert.match((JSON.parse(await answer.text()) as Refusal).error.message, /only the gateway/);
});
