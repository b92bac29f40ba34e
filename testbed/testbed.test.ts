import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { readClientConfiguration, writeClientConfiguration } from "../cli/connection/client-config.ts";
import { runCommand } from "./command.ts";
import { type Testbed, withTestbed, withTestbedDirectory } from "./harness.ts";
import { cgroupRoots } from "./supervisor/cgroups.ts";
import { firstProcesses } from "./supervisor/first-process.ts";
import type { Role } from "./supervisor/members.ts";
import { down, type UpOptions } from "./up.ts";

/**
 * The testbed itself, with stand-ins in the members' places: what it makes, what members can see of one another, and
 * that nothing stays behind however it ends. Needs root.
 */
const standIn = [process.execPath, fileURLToPath(new URL("supervisor/stand-in.testing.ts", import.meta.url))];
const roles: readonly Role[] = [
  ...(["controller", "storage-manager", "address-manager", "dns-manager", "directory"] as const),
  ...(["placer", "presence", "tenancy", "host", "agent", "gateway"] as const),
];
const imagesDirectory = mkdtempSync(join(tmpdir(), "cells-test-images-"));
mkdirSync(join(imagesDirectory, "tiny"));
writeFileSync(join(imagesDirectory, "tiny", "disk.qcow2"), "image bytes");
after(() => rmSync(imagesDirectory, { recursive: true, force: true }));

const options: UpOptions = {
  hosts: 2,
  servers: 1,
  imagesDirectory,
  timeoutMs: 60_000,
  commands: Object.fromEntries(roles.map((role) => [role, standIn])),
};
const skip = process.getuid?.() === 0 ? false : "needs root, for namespaces";

/** Processes of this machine that name the testbed's directory or tag: its members, its holders, its first processes. */
const processesOf = (t: Testbed): readonly string[] =>
  readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry) && Number(entry) !== process.pid)
    .flatMap((entry) => {
      try {
        const command = readFileSync(`/proc/${entry}/cmdline`, "utf8").replaceAll("\0", " ");
        return command.includes(t.at.directory) || command.includes(t.at.tag) ? [`${entry} ${command}`] : [];
      } catch {
        return [];
      }
    });

const nothingLeft = (t: Testbed): void => {
  assert.deepEqual(processesOf(t), []);
  assert.deepEqual(firstProcesses(t.at.tag), { outer: [], init: [] });
  assert.equal(existsSync(t.at.run), false, "the run directory is gone");
  for (const root of cgroupRoots(t.at.tag)) assert.equal(existsSync(root), false, `${root} is gone`);
  const mounts = readFileSync("/proc/self/mounts", "utf8");
  assert.equal(mounts.includes(t.at.tag) || mounts.includes(t.at.directory), false, "no mount is left");
};

const untilGone = async (t: Testbed): Promise<void> => {
  for (let attempt = 0; processesOf(t).length > 0 && attempt < 200; attempt += 1) {
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
};

const seen = async (t: Testbed, member: string, path: string): Promise<string> =>
  (await t.exec(member, ["find", path])).stdout;

describe("testbed", { skip }, () => {
  test("members have machines of their own and see nothing of one another's", async () => {
    await withTestbed(options, async (t) => {
      const { url } = t.client();
      assert.deepEqual(await (await fetch(url)).json(), { name: "gateway", starts: 1 });
      await t.supervisor("POST", "/cells/shop");
      await t.supervisor("POST", "/cells/shop");
      assert.deepEqual(await t.supervisor("GET", "/cells"), ["shop"]);

      const devices = await t.exec("h1", ["ip", "-o", "address", "show", "dev", "cells0"]);
      assert.match(devices.stdout, /inet 10\.0\.1\.1\/16/);
      assert.doesNotMatch(devices.stdout, /inet6/);
      assert.match((await t.exec("h1", ["ip", "link", "show", "master", "cells0"])).stdout, /: eth0@/);
      assert.match((await t.exec("h2", ["cat", "/sys/class/net/cells0/address"])).stdout, /^02:00:0a:00:01:02$/m);
      const routes = (await t.exec("controller.shop", ["ip", "route"])).stdout;
      assert.match(routes, /^10\.64\.0\.0\/10 dev eth0 scope link/m);
      assert.match(routes, /^198\.18\.0\.0\/15 dev eth0 scope link/m);

      const [own, servers] = [await seen(t, "h1", t.at.directory), await seen(t, "s1", imagesDirectory)];
      assert.match(own, /members\/h1\/data\/starts/);
      assert.doesNotMatch(own, /members\/(?!h1)|authority\/|installation\.json/);
      assert.match(servers, /disk\.qcow2/);
      assert.doesNotMatch(await seen(t, "h1", "/run"), /members\/(?!h1)|supervisor\.sock|netns/);
      assert.match(await seen(t, "gateway", "/run"), /supervisor\.sock/);
      const peers = JSON.parse((await t.exec("h1", ["cat", `${t.at.shared}/peers.json`])).stdout);
      assert.equal(peers.peers["controller.shop"], "10.0.3.1");
      assert.equal((await t.exec("h1", ["touch", `${t.at.shared}/peers.json`])).code, 1, "peers are read-only");
    });
  });

  test("a member that dies is started again and finds its data and its mounts", async () => {
    await withTestbed(options, async (t) => {
      await t.exec("h1", ["mount", "-t", "tmpfs", "tmpfs", "/mnt"]);
      await t.kill("h1");
      for (;;) {
        const h1 = (await t.members()).find(({ name }) => name === "h1");
        if (h1?.answers && h1.restarts === 1) break;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      assert.match((await t.exec("h1", ["cat", `${t.at.directory}/members/h1/data/starts`])).stdout, /^2$/);
      assert.match((await t.exec("h1", ["grep", " /mnt ", "/proc/mounts"])).stdout, /tmpfs/);
      await t.stop("h2");
      assert.equal((await t.members()).find(({ name }) => name === "h2")?.running, false);
    });
  });

  test("down leaves only the data, and the next up brings the cells back with their numbers", async () => {
    await withTestbedDirectory(options, async (t) => {
      const first = await t.up();
      await t.supervisor("POST", "/cells/one");
      await t.supervisor("POST", "/cells/two");
      await t.supervisor("DELETE", "/cells/one");
      await t.down();
      nothingLeft(t);
      const second = await t.up();
      assert.deepEqual(second, first, "same credential, same port");
      await t.supervisor("POST", "/cells/one");
      const addresses = (await t.members()).map(({ name, address }) => `${name} ${address}`);
      assert.ok(addresses.includes("controller.two 10.0.3.2"));
      assert.ok(addresses.includes("controller.one 10.0.3.3"), "a number is not used again");
      assert.deepEqual(readClientConfiguration(t.at.clientFile), second, "for whoever names the directory");
      await t.down();
      nothingLeft(t);
      const before = process.env.CELLS_CONFIG;
      process.env.CELLS_CONFIG = t.configFile;
      await down({ directory: t.at.directory, purge: true });
      if (before === undefined) delete process.env.CELLS_CONFIG;
      else process.env.CELLS_CONFIG = before;
      assert.deepEqual([t.configFile, t.at.clientFile].filter(existsSync), [], "its configuration goes with it");
    });
  });

  test("killing process 1, or unshare, ends everything; down and up clear the rest", async () => {
    await withTestbedDirectory(options, async (t) => {
      await t.up();
      for (const which of ["init", "outer"] as const) {
        process.kill(firstProcesses(t.at.tag)[which][0]?.pid ?? 0, "SIGKILL");
        await untilGone(t);
        assert.deepEqual(processesOf(t), []);
        if (which === "init") await t.up();
      }
      await t.down();
      nothingLeft(t);
    });
  });

  test("an up that is killed at any moment leaves nothing that the next one does not clear", async () => {
    await withTestbedDirectory(options, async (t) => {
      for (const afterMs of [150, 300, 500, 900]) {
        const child = spawn(
          process.execPath,
          [
            "--input-type=module-typescript",
            "--eval",
            `import { up } from ${JSON.stringify(new URL("up.ts", import.meta.url).href)};
             await up(${JSON.stringify({ ...options, profile: "processes", directory: t.at.directory, configFile: t.configFile })});`,
          ],
          { stdio: "ignore" },
        );
        await new Promise((resolve) => setTimeout(resolve, afterMs));
        child.kill("SIGKILL");
        await new Promise((resolve) =>
          child.exitCode === null && child.signalCode === null ? child.once("exit", resolve) : resolve(0),
        );
        if (afterMs === 500) {
          await t.up();
          await t.down();
        } else await t.down();
        nothingLeft(t);
      }
    });
  });

  test("a member that cannot start fails the up, which says why and leaves nothing", async () => {
    const broken = { ...options.commands, placer: ["sh", "-c", "echo 'no such thing' >&2; exit 3"] };
    await withTestbedDirectory({ ...options, commands: broken, timeoutMs: 10_000 }, async (t) => {
      await assert.rejects(t.up(), /placer does not answer \(last end: exit code 3.*no such thing/s);
      nothingLeft(t);
    });
  });

  test("two testbeds run at once, and two ups of one do not", async () => {
    await withTestbed(options, async (a) => {
      await withTestbed({ ...options, hosts: 1 }, async (b) => {
        assert.notEqual(a.client().url, b.client().url);
        assert.equal((await b.members()).filter(({ name }) => /^h\d/.test(name)).length, 1);
        const [first, second] = await Promise.allSettled([a.up(), a.up()]);
        assert.equal(first.status, "fulfilled");
        assert.match(second.status === "rejected" ? String(second.reason) : "", /another `cells up`/);
      });
      assert.equal((await runCommand("curl", ["-sf", a.client().url])).code, 0);
      const running = firstProcesses(a.at.tag);
      const others = join(dirname(a.configFile), "others.json");
      writeClientConfiguration({ url: "http://127.0.0.1:1", credential: "another cloud's" }, others);
      assert.deepEqual(await a.up({ configFile: others }), a.client());
      assert.deepEqual(firstProcesses(a.at.tag), running, "it is found, whatever the user asked before");
    });
  });

  test("what a test gives up while it comes is taken away too", async () => {
    let given: Testbed | undefined;
    const gaveUp = withTestbedDirectory(options, async (t) => {
      given = t;
      t.up().catch(() => undefined);
      throw new Error("enough");
    });
    await assert.rejects(gaveUp, /enough/);
    nothingLeft(given ?? assert.fail());
  });
});
