import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  chosenCloud,
  clientConfigurationFile,
  readClientConfiguration,
  writeClientConfiguration,
} from "./client-config.ts";
import { addContext, contexts, deleteContext, useContext } from "./contexts.ts";

const names = ["CELLS_CONFIG", "CELLS_HOME", "CELLS_CONTEXT", "XDG_CONFIG_HOME", "SUDO_UID"] as const;

test("one of several configurations is in use until another one is, and what is said for one command comes before it", (t) => {
  const before = names.map((name) => [name, process.env[name]] as const);
  const home = mkdtempSync(join(tmpdir(), `cells-contexts-${process.pid}-`));
  t.after(() => {
    rmSync(home, { recursive: true });
    for (const [name, value] of before)
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
  });
  for (const name of names) delete process.env[name];
  process.env.XDG_CONFIG_HOME = home;
  const from = (name: string, credential: string): string => {
    const file = join(home, `${name}.json`);
    writeFileSync(file, JSON.stringify({ url: `https://${name}.example`, credential }));
    return file;
  };
  assert.deepEqual(contexts(), []);
  addContext("work", from("work", "session.x"));
  addContext("lab", from("lab", "open-sesame"));
  assert.equal(chosenCloud().file, join(home, "cells/config.json"), "none is in use yet");
  useContext("work");
  assert.deepEqual(
    contexts().map(({ name, as, inUse }) => [name, as, inUse]),
    [
      ["lab", "credential", false],
      ["work", "session", true],
    ],
  );
  assert.deepEqual([chosenCloud().by, readClientConfiguration()?.url], ["the context work", "https://work.example"]);
  assert.equal(statSync(chosenCloud().file).mode & 0o077, 0);
  process.env.CELLS_CONTEXT = "lab";
  assert.equal(chosenCloud().by, "CELLS_CONTEXT=lab");
  assert.equal(readClientConfiguration()?.url, "https://lab.example");
  process.env.CELLS_CONFIG = from("other", "c");
  assert.equal(readClientConfiguration()?.url, "https://other.example");
  delete process.env.CELLS_CONFIG;
  delete process.env.CELLS_CONTEXT;

  for (const [wrong, expected] of [
    [() => useContext("nobody"), /there is no context nobody: there are lab, work/],
    [() => addContext("work", from("work", "y")), /there is a context work already/],
    [() => addContext("../etc", from("work", "y")), /cannot name a context/],
    [() => addContext("new", join(home, "missing.json")), /is no configuration/],
    [() => deleteContext("nobody"), /there is no context nobody/],
  ] as const)
    assert.throws(wrong, expected);

  deleteContext("work");
  assert.equal(chosenCloud().file, join(home, "cells/config.json"), "what is deleted is not in use");
  useContext("lab");
  writeClientConfiguration({ url: "https://mine.example", credential: "c" }, clientConfigurationFile());
  assert.equal(readClientConfiguration()?.url, "https://mine.example", "whoever makes a cloud asks it from then on");
  useContext("lab");
  useContext(null);
  assert.equal(readClientConfiguration()?.url, "https://mine.example");
});
