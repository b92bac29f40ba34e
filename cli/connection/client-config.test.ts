import assert from "node:assert/strict";
import { test } from "node:test";
import { chosenCloud, clientConfigurationFile } from "./client-config.ts";

const names = ["CELLS_CONFIG", "CELLS_HOME", "XDG_CONFIG_HOME", "SUDO_UID"] as const;

test("which cloud is asked has one order: command line, CELLS_CONFIG, CELLS_HOME, what was written", (t) => {
  const before = names.map((name) => [name, process.env[name]] as const);
  t.after(() => {
    for (const [name, value] of before)
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
  });
  delete process.env.SUDO_UID;
  const chosen = (config: string, home: string, directory?: string): readonly string[] => {
    Object.assign(process.env, { CELLS_CONFIG: config, CELLS_HOME: home, XDG_CONFIG_HOME: "/user" });
    const { by, file } = chosenCloud(directory);
    return [by, file];
  };
  const written = "/user/cells/config.json";
  assert.deepEqual(chosen("", ""), [written, written]);
  assert.deepEqual(chosen("", "/home"), ["CELLS_HOME=/home", "/home/client.json"]);
  assert.deepEqual(chosen("/c.json", "/home"), ["CELLS_CONFIG=/c.json", "/c.json"]);
  assert.deepEqual(chosen("/c.json", "/home", "/given"), ["--directory /given", "/given/client.json"]);
  assert.equal(clientConfigurationFile(), "/c.json");
  process.env.CELLS_CONFIG = "";
  assert.equal(clientConfigurationFile(), written, "where whoever makes a cloud leaves its configuration");
});
