import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import { createTestInstallation, eventually } from "../installation.testing.ts";
import { replaceFile } from "../process/replace-file.ts";
import { watchMembers, watchPeers } from "./peers-watch.ts";

let root = "";
const closing: (() => void)[] = [];
before(async () => {
  root = await mkdtemp(join(tmpdir(), `cells-watch-${process.pid}-`));
});
after(async () => {
  for (const close of closing) close();
  await rm(root, { recursive: true, force: true });
});
/** Never looks by itself within a test. */
const onlyTold = { lookEveryMs: 2 ** 30, unwatchedEveryMs: 2 ** 30 };

test("a file that is replaced, written or taken away and brought back is told of, and the same content is not", async () => {
  const file = join(root, "peers.json");
  await replaceFile(file, "1");
  let changes = 0;
  closing.push(
    watchPeers(
      file,
      () => {
        changes += 1;
      },
      onlyTold,
    ),
  );
  await replaceFile(file, "2");
  await eventually("replaced", () => changes === 1);
  await replaceFile(file, "2");
  await writeFile(file, "3");
  await eventually("written", () => changes === 2);
  await rm(file);
  await replaceFile(file, "4");
  await eventually("brought back", () => changes === 3);
});

test("one telling ends before the next begins, and the last content is told", async () => {
  const file = join(root, "slow.json");
  await replaceFile(file, "0");
  let [under, most, last] = [0, 0, 0];
  const release: (() => void)[] = [];
  closing.push(
    watchPeers(
      file,
      async () => {
        under += 1;
        most = Math.max(most, under);
        last += 1;
        await new Promise<void>((resolve) => release.push(resolve));
        under -= 1;
      },
      onlyTold,
    ),
  );
  await replaceFile(file, "1");
  await eventually("the first is told", () => release.length === 1);
  for (const text of ["2", "3", "4"]) await replaceFile(file, text);
  release[0]?.();
  await eventually("a later one is told", () => last >= 2);
  const end = (): boolean => {
    for (const each of release.splice(0)) each();
    return under === 0;
  };
  await eventually("all are", end);
  assert.equal(most, 1);
});

test("a directory that is another one by now, and one that comes late, are looked at again", async () => {
  const directory = join(root, "late");
  const file = join(directory, "peers.json");
  let changes = 0;
  const often = { lookEveryMs: 30, unwatchedEveryMs: 30 };
  closing.push(
    watchPeers(
      file,
      () => {
        changes += 1;
      },
      often,
    ),
  );
  await mkdir(directory);
  await writeFile(file, "1");
  await eventually("it came", () => changes === 1);
  await rename(directory, join(root, "former"));
  await mkdir(directory);
  await writeFile(file, "2");
  await eventually("it is another", () => changes === 2);
});

test("who watches a bind mount that is read-only, in another mount namespace, is told", {
  skip: process.getuid?.() === 0 ? false : "mounting needs root",
}, async () => {
  const [shared, mounted] = [join(root, "shared"), join(root, "mounted")];
  await mkdir(shared);
  await mkdir(mounted);
  await replaceFile(join(shared, "peers.json"), "1");
  const script = `
    import { watchPeers } from ${JSON.stringify(join(import.meta.dirname, "peers-watch.ts"))};
    watchPeers(process.argv[1], () => process.exit(7), { lookEveryMs: 2 ** 30, unwatchedEveryMs: 2 ** 30 });
    setInterval(() => {}, 2 ** 30);
    console.log("watching");`;
  const mount = `mount --bind "$0" "$1" && mount -o remount,bind,ro "$1" && exec "$2" --input-type=module -e "$3" "$1/peers.json"`;
  const args = ["--mount", "--propagation", "private", "sh", "-c", mount, shared, mounted, process.execPath, script];
  const child = spawn("unshare", args, { stdio: ["ignore", "pipe", "inherit"] });
  closing.push(() => child.kill("SIGKILL"));
  const exited = once(child, "exit");
  await once(child.stdout, "data");
  await replaceFile(join(shared, "peers.json"), "2");
  assert.deepEqual(await exited, [7, null]);
});

test("where the kernel has no watch to give the file is looked at", {
  skip: process.getuid?.() === 0 ? false : "an own limit needs root",
}, async () => {
  const file = join(root, "unwatched.json");
  await replaceFile(file, "1");
  const script = `
    import { watchPeers } from ${JSON.stringify(join(import.meta.dirname, "peers-watch.ts"))};
    import { watch } from "node:fs";
    import { dirname } from "node:path";
    let why = "it can watch";
    try { watch(dirname(process.argv[1])); } catch (error) { why = error.code; }
    watchPeers(process.argv[1], () => process.exit(7), { lookEveryMs: 2 ** 30, unwatchedEveryMs: 30 });
    setInterval(() => {}, 2 ** 30);
    console.log(why);`;
  const limit = `echo 0 > /proc/sys/user/max_inotify_instances && exec "$0" --input-type=module -e "$1" "$2"`;
  const args = ["--user", "--map-root-user", "sh", "-c", limit, process.execPath, script, file];
  const child = spawn("unshare", args, { stdio: ["ignore", "pipe", "inherit"] });
  closing.push(() => child.kill("SIGKILL"));
  const exited = once(child, "exit");
  assert.match(String(await once(child.stdout, "data")), /^E(MFILE|NOSPC)/);
  await replaceFile(file, "2");
  assert.deepEqual(await exited, [7, null]);
});

test("members are listed, and told when others are", async () => {
  const installation = await createTestInstallation("watch-members");
  try {
    const { configuration } = await installation.configure(peerName("presence.1"));
    const told: string[] = [];
    const watched = await watchMembers(configuration, "presence.", (members) => told.push(members.join(" ")));
    closing.push(watched.stop);
    assert.deepEqual(watched.members, ["presence.1"]);
    await installation.configure(peerName("host.h1"));
    await installation.configure(peerName("presence.2"));
    await eventually("another one", () => told.length > 0);
    assert.deepEqual(told, ["presence.1 presence.2"]);
    watched.stop();
    const nowhere = { ...configuration, peersFile: join(root, "nowhere", "peers.json") };
    await assert.rejects(
      watchMembers(nowhere, "presence.", () => undefined),
      /ENOENT/,
    );
  } finally {
    await installation.remove();
  }
});
