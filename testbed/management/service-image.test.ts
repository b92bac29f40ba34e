import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type ServiceRole, serviceRoles } from "../../core/documents/service-roles.ts";
import { Agent, Machine } from "../../host/drivers/network/diverter/testing/namespaces.testing.ts";
import { buildServiceImage } from "../../image/service.ts";
import { hashCredential } from "../../runtime/http/bearer.ts";
import { createAuthority } from "../../runtime/identity/certificates.ts";
import { eventually } from "../../runtime/installation.testing.ts";
import { cacheDirectory } from "../places.ts";
import { birthFiles, createServiceAuthority, guestAddress } from "./service-authority.ts";
import type { GuestStarted } from "./service-guest.ts";

/**
 * Service VMs as a host runs them. One enrols with its token, lives through a power cut without the authority, and is silent
 * while a second role of it cannot come up; the other one is born with the stores of roles that ran elsewhere.
 */
const skip = process.getuid?.() === 0 ? false : "needs root";
const memoryMiB = 160;
const users = readFileSync(join(import.meta.dirname, "../../image/service/passwd"), "utf8").split("\n");
const userOf = (role: ServiceRole): string =>
  users.find((line) => line.startsWith(`${role}:`))?.split(":")[2] ?? "none";
const encoded = (files: Readonly<Record<string, Buffer>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(files).map(([path, content]) => [path, content.toString("base64")]));

/** Runs `use` in a directory and a network namespace of its own, with an agent that can run a service VM there. */
const withGuest = async (t: TestContext, use: (directory: string, host: Agent) => Promise<void>): Promise<void> => {
  const image = await buildServiceImage({
    cacheDirectory: cacheDirectory(),
    onProgress: (words) => t.diagnostic(words),
  });
  const directory = mkdtempSync(join(tmpdir(), "cells-service-"));
  chmodSync(directory, 0o711);
  const machine = await Machine.start();
  const host = new Agent(machine, "../../../../../testbed/management/service-guest.ts", directory, image);
  try {
    await host.call("prepare");
    await use(directory, host);
  } finally {
    await host.call("end").catch(() => undefined);
    await host.stop();
    await machine.stop();
    rmSync(directory, { recursive: true, force: true });
  }
};

/** Waits until the guest has said something on its console. */
const said = async (host: Agent, words: RegExp): Promise<void> => {
  for (let tries = 600; !words.test(await host.call<string>("console")); tries -= 1) {
    assert.ok(tries > 0, `the guest never said ${words}:\n${await host.call("console")}`);
    await sleep(100);
  }
};
const report = async (t: TestContext, host: Agent, what: string, started: GuestStarted): Promise<void> => {
  const { memoryMiB: used } = await host.call<{ memoryMiB: number }>("usage");
  const seconds = (ms: number): string => (ms / 1000).toFixed(1);
  t.diagnostic(
    `${what}: liveness probe answered after ${seconds(started.answeredMs)} s (${seconds(started.cpuMs)} s of CPU), ` +
      `${used.toFixed(0)} MiB of host memory`,
  );
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

/** A file on the data volume, from the copy that `listing` has made. */
const contentOf = (directory: string, path: string): string =>
  execFileSync("debugfs", ["-R", `cat ${path}`, join(directory, "data.raw")], { encoding: "utf8", stdio: "pipe" });

test(
  "a service VM enrols, keeps its state through a power cut, and is silent while a role is down",
  {
    skip,
  },
  (t) =>
    withGuest(t, async (directory, host) => {
      const own = await createServiceAuthority(join(directory, "authority"), { "dns-manager": "dns-manager" });
      const foreign = join(directory, "foreign");
      await createAuthority(foreign);
      const ca = join(own.directory, "authority");
      const port = serviceRoles["dns-manager"].distribution;
      const name = "web1.test.cells.internal";
      const desire = ["name/w-1", { uid: "w-1", name, address: "10.64.0.2", public: true }] as const;
      await host.call("authority", own.configurationFile);

      const data = own.data({ "dns-manager": {} });
      const started = await host.call<GuestStarted>("start", { memoryMiB, data, awaitAnswer: true });
      await report(t, host, `with its token, ${memoryMiB} MiB`, started);
      assert.deepEqual(await host.call("lookUp", name), [], "the name is there before anybody desired it");
      const stranger = await host.call<string>("desire", port, foreign, ...desire);
      assert.match(stranger, /^failed/, "a certificate of another authority is as good as ours");
      assert.deepEqual(await host.call("lookUp", name), []);
      assert.equal(await host.call("desire", port, ca, ...desire), "dns-manager");
      assert.deepEqual(await host.call("lookUp", name), ["10.64.0.2"]);
      assert.equal(await host.call("answers", 5), true);
      await host.call("cut");

      // It has its key and certificate, so nobody is needed; and what lives is not born again.
      await host.call("cutAuthority");
      const more = own.data({ "dns-manager": {}, placer: { token: "no token at all" } });
      const files = encoded({ "birth/dns-manager/state.sqlite": Buffer.from("another's") });
      const other = { memoryMiB: 224, data: more, awaitAnswer: false, files, how: "resume" };
      const { remark } = await host.call<GuestStarted>("start", other);
      assert.match(remark ?? "", /it booted, since .* no state for x\.memory 224 and x\.cpus 1, but for 160 and 1/);
      await said(host, /"service":"dns-manager","event":"process\/started"/);
      // They share a process, which goes on with the one while the other fails over and over.
      await said(host, /("service":"placer","event":"process\/failed"[\s\S]*){6}/);
      await eventually("what was durable before the power cut is there", async () => {
        const [found] = await host.call<readonly string[]>("lookUp", name);
        return found === "10.64.0.2";
      });
      assert.doesNotMatch(await host.call<string>("console"), /ended \(/);
      assert.equal(await host.call("answers", 2), false, "the VM answers though one of its roles does not");
      const last = await host.call<string>("stop", 60_000);
      assert.match(last, /the data volume was not closed properly, and is in order/);
      assert.match(last, /"event":"stopped"/);
      assert.doesNotMatch(last, /PRIVATE KEY|login:|no token at all/);

      // The service's files are its own and nobody else's.
      const user = userOf("dns-manager");
      const ownFile = (mode: string, name: string): RegExp =>
        new RegExp(`${mode} \\([12]\\) ${user} ${user} .* ${name}$`);
      const has = (path: string, expected: RegExp): void => {
        const lines = listing(directory, path);
        assert.ok(
          lines.some((line) => expected.test(line)),
          `${expected}:\n${lines.join("\n")}`,
        );
      };
      has("/", ownFile("40700", "dns-manager"));
      has("/dns-manager", ownFile("100600", "state\\.sqlite"));
      has("/dns-manager", ownFile("40700", "identity"));
      has("/dns-manager/identity", ownFile("100600", "key\\.pem"));
      const map = execFileSync("qemu-img", ["map", "--output=json", join(directory, "root.qcow2")], {
        encoding: "utf8",
      });
      const written = (JSON.parse(map) as { depth: number; data: boolean }[]).filter(
        (part) => part.depth === 0 && part.data,
      );
      assert.deepEqual(written, [], "the root file system was written to");
    }),
);

test(
  "a VM goes on from the saved state of its image as itself, and two of one state share no random number",
  {
    skip,
  },
  (t) =>
    withGuest(t, async (directory, host) => {
      const keys: string[] = [];
      for (const number of [1, 2]) {
        // The same VM in another installation: all that it is told differs in its token alone.
        const own = await createServiceAuthority(join(directory, `authority${number}`), { placer: "placer" });
        await host.call("authority", own.configurationFile);
        const data = own.data({ placer: {} });
        const wanted = { memoryMiB, data, awaitAnswer: true };
        const started = await host.call<GuestStarted>("start", { ...wanted, how: "resume" });
        assert.equal(started.remark, null);
        await report(t, host, "from its saved state, with its token", started);
        const last = await host.call<string>("stop", 60_000);
        assert.match(last, /goes on from a saved state/);
        assert.match(last, /the data volume was blank and has a file system now/);
        assert.match(last, /"event":"stopped"/);
        const seconds = Date.parse(/"time":"([^"]+)"[^\n]*process\/started/.exec(last)?.[1] ?? "") - Date.now();
        assert.ok(Math.abs(seconds) < 120_000, "its clock is right");
        const user = userOf("placer");
        const lines = listing(directory, "/placer/identity");
        assert.ok(
          lines.some((line) => new RegExp(`100600 \\([12]\\) ${user} ${user} .* key\\.pem$`).test(line)),
          lines.join("\n"),
        );
        keys.push(contentOf(directory, "/placer/identity/key.pem"));
        assert.match(keys.at(-1) ?? "", /PRIVATE KEY/);

        // Its next incarnation has the same disks.
        const again = await host.call<GuestStarted>("start", { ...wanted, how: "resume" });
        assert.equal(again.remark, null);
        await report(t, host, "from its saved state, once more", again);
        await host.call("stop", 60_000);
        listing(directory, "/");
        assert.equal(contentOf(directory, "/placer/identity/key.pem"), keys.at(-1));
        await host.call("cutAuthority");
        await host.call("forget");
      }
      assert.notEqual(keys[0], keys[1], "two machines of one state made the same key");

      // A state is of the disk that it was saved with: the machine does what one without a state does.
      const lost = { memoryMiB, data: null, awaitAnswer: false, how: "resume", emptied: true };
      const { remark } = await host.call<GuestStarted>("start", lost);
      assert.match(remark ?? "", /it booted, since .*: its disk was written since the state was saved/);
    }),
);

test("a gateway goes on from the saved state in a process of its own program", { skip }, (t) =>
  withGuest(t, async (directory, host) => {
    const own = await createServiceAuthority(join(directory, "authority"), { gateway: "gateway" });
    await host.call("authority", own.configurationFile);
    const hash = hashCredential("a credential of nobody");
    const wanted = {
      memoryMiB: 176,
      data: own.data({ gateway: { gateway: { credentialHashes: [hash] } } }),
      awaitAnswer: true,
    };
    for (const [how, goesOn] of [
      ["resume", true],
      ["boot", false],
    ] as const) {
      const started = await host.call<GuestStarted>("start", { ...wanted, how });
      assert.equal(started.remark, null);
      await report(t, host, `a gateway, ${how}`, started);
      const last = await host.call<string>("stop", 60_000);
      assert.equal(/gateway goes on in a process of the state/.test(last), goesOn, last);
      assert.match(last, /gateway answers/);
      assert.match(last, /"event":"stopped"/);
    }
  }),
);

test("roles that ran elsewhere go on in a VM that is born with their stores, the authority among them", { skip }, (t) =>
  withGuest(t, async (directory, host) => {
    const names = { placer: "placer", presence: "presence.1" } as const;
    const own = await createServiceAuthority(join(directory, "authority"), names);
    // It has run, and ended without a goodbye: its store knows whom it may enrol.
    await host.call("authority", own.configurationFile);
    await host.call("cutAuthority");
    // Cut off while it was born: half a store, which is copied again.
    const half = join(directory, "half");
    mkdirSync(join(half, "authority"), { recursive: true });
    writeFileSync(join(half, "authority/state.sqlite"), "half a store");
    writeFileSync(join(half, ".unborn"), "");
    const volume = join(directory, "data");
    execFileSync("mke2fs", ["-q", "-t", "ext4", "-d", half, `${volume}.raw`, "64M"]);
    execFileSync("qemu-img", ["convert", "-f", "raw", "-O", "qcow2", `${volume}.raw`, `${volume}.qcow2`]);

    const data = own.data({ authority: {}, placer: {}, presence: {} }, guestAddress);
    const files = encoded(birthFiles("authority", own.directory));
    const started = await host.call<GuestStarted>("start", { memoryMiB: 256, data, awaitAnswer: true, files });
    await report(t, host, "authority, placer and presence, 256 MiB", started);
    const last = await host.call<string>("stop", 60_000);
    assert.match(last, /authority goes on from what it was born with/);
    assert.match(last, /"event":"stopped"/);
    const [authority, placer] = [userOf("authority"), userOf("placer")];
    const holds = (path: string, expected: RegExp): void =>
      assert.ok(
        listing(directory, path).some((line) => expected.test(line)),
        `${path} ${expected}`,
      );
    holds("/", /\.born$/);
    holds("/authority/authority", new RegExp(`100600 \\(1\\) ${authority} ${authority} .*authority\\.pem$`));
    holds("/placer/identity", new RegExp(`100600 \\(1\\) ${placer} ${placer} .*certificate\\.pem$`));
    assert.ok(listing(directory, "/").every((line) => !line.endsWith(".unborn")));
  }),
);
