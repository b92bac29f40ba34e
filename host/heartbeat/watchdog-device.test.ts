import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openWatchdog } from "./watchdog-device.ts";

/* What is no watchdog, or none that can be told to rest. A real one is in a guest: testbed/hosts/watchdog.long.test.ts. */
let sys: string;
const logged: string[] = [];
const says = (nowayout: string): Promise<void> => writeFile(join(sys, "null/nowayout"), `${nowayout}\n`);
const open = (file = "/dev/null") => openWatchdog(file, (event) => logged.push(event), sys);

before(async () => {
  sys = await mkdtemp(join(tmpdir(), "cells-watchdog-"));
  await mkdir(join(sys, "null"));
});
after(() => rm(sys, { recursive: true, force: true }));

test("one that could not be told to rest again, or of which the kernel says nothing, is refused before it is opened", async () => {
  const cannot = /^the watchdog \/dev\/null \(host\.watchdog\) cannot be told to rest again/;
  await assert.rejects(open(), ({ message }: Error) => cannot.test(message));
  for (const nowayout of ["1", ""]) {
    await says(nowayout);
    await assert.rejects(open(), ({ message }: Error) => cannot.test(message), nowayout);
  }
});

test("what is no device is refused, and so is one that does not wait for as long as it has to", async () => {
  await says("0");
  for (const file of [join(sys, "null/nowayout"), join(sys, "none")])
    await assert.rejects(open(file), /is no device of this machine$/);
  await assert.rejects(open(), /^Error: the watchdog \/dev\/null does not wait for 12 s$/);
  assert.deepEqual(logged, []);
});
