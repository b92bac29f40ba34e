import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import type { Testbed } from "../../harness.ts";
import * as lab from "../../lab.testing.ts";

/**
 * A host is taken out while its machines work (decision 102): one that writes goes elsewhere with every line, one that its `x.placement` keeps
 * there is named and runs on until that is lifted, and afterwards the host takes machines again.
 */
const [one] = lab.machines;
const pinned = "lab/pinned/vm";
const pinnedTo = (host: string | null): string =>
  `pinned extends Machine { ${host === null ? "" : `vm:x.placement.host "${host}";`} }`;

/** What is there of the root cell in a testbed whose services are processes: its controller, for this and for `cells host dead`. */
export const beginRoot = async (t: Testbed, hosts: readonly string[] = ["h1", "h2", "h3"]): Promise<void> => {
  await t.supervisor("POST", "/cells/root");
  const file = join(dirname(t.configFile), "root.sf");
  writeFileSync(file, "root extends Cell {\n}\n");
  await lab.until(
    "the root cell's controller answers",
    () => t.cells(["apply", file, "--yes"]),
    ({ code }) => code === 0,
  );
  await lab.until(
    "every host has an element",
    () => lab.cells(t, "get", "root", "--output", "json"),
    (text) => hosts.every((host) => text.includes(`"${host}"`)),
  );
};
const machinesAt = async (t: Testbed, host: string): Promise<number> =>
  ((await lab.inventory(t, [host], []))[`${host} machines`] ?? []).length;

/** Begins and ends with `one` running and writing, at whatever host. */
export const drainsAndResumes = async (t: Testbed, context: TestContext): Promise<void> => {
  await beginRoot(t);
  const before = await lab.stateOf(t, one);
  const host = before?.host ?? "";
  await lab.applyLab(t, pinnedTo(host));
  assert.equal((await lab.untilReady(t, pinned))?.host, host);
  const dry = await lab.cells(t, "host", "drain", host, "--dry-run");
  assert.match(dry, new RegExp(`! ${one} {2}is stopped in order at ${host}, and starts elsewhere with its data`));
  const unknown = await t.cells(["host", "drain", "h9", "--yes"]);
  assert.equal(unknown.code, 2, unknown.stderr);
  assert.match(unknown.stderr, /there is no host h9; the hosts are h1, h2, h3/);

  const least = await lab.durable(t, one);
  const from = performance.now();
  const drained = await t.cells(["host", "drain", host, "--yes", "--timeout", "300"]);
  context.diagnostic(`${host} was drained but for one after ${Math.round(performance.now() - from)} ms`);
  assert.equal(drained.code, 4, `${drained.stdout}\n${drained.stderr}`);
  assert.match(drained.stderr, new RegExp(`${pinned}: .*x.placement.host asks for ${host}`));
  const after = await lab.untilReady(t, one, (before?.incarnation ?? 0) + 1);
  assert.notEqual(after?.host, host);
  assert.deepEqual([after?.uid, after?.incarnation], [before?.uid, (before?.incarnation ?? 0) + 1]);
  await lab.writesOn(t, one, least);
  assert.equal(await machinesAt(t, host), 1, "the one that cannot leave runs on");
  assert.match((await lab.stateOf(t, pinned))?.reason ?? "", new RegExp(`it is to leave ${host}, and runs on there`));

  await lab.applyLab(t, pinnedTo(null));
  await lab.cells(t, "host", "drain", host, "--yes", "--timeout", "300");
  assert.equal(await machinesAt(t, host), 0);
  await lab.cells(t, "host", "resume", host);
  const lines = await lab.durable(t, one);
  const moved = await lab.cells(t, "move", one, "--to", host);
  assert.match(moved, new RegExp(`${one} runs at ${host}`));
  await lab.writesOn(t, one, lines);
};
