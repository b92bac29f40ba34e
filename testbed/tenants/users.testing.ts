import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { shownByApp } from "../../runtime/tenancy/totp/totp.testing.ts";
import type { Testbed } from "../harness.ts";

/*
 * Users on a testbed with a cell that has a guest: one of them sees and changes what is of his account, the other sees nothing of it, and who is
 * disabled is out of the console that he has open.
 */
const cli = fileURLToPath(new URL("../../cli/main.ts", import.meta.url));
const passwords = { ann: "a horse of another colour", bob: "something else entirely" };

/** @param vm of the cell that exists, whose console answers */
export const tryUsers = async (t: Testbed, vm: string): Promise<void> => {
  const at = dirname(t.configFile);
  const cell = vm.split("/")[0] ?? "";
  const done = async (args: readonly string[], as?: string): Promise<string> => {
    const { code, stdout, stderr } = await t.cells(args, as);
    assert.equal(code, 0, `cells ${args.join(" ")}\n${stdout}\n${stderr}`);
    return stdout;
  };
  const refused = async (args: readonly string[], as: string, expected: RegExp): Promise<void> => {
    const { code, stdout, stderr } = await t.cells(args, as);
    assert.equal(code, 1, `cells ${args.join(" ")}\n${stdout}`);
    assert.match(stderr, expected);
  };
  const configurationOf = (user: string): string => join(at, `${user}.json`);
  const passwordFile = (user: keyof typeof passwords): string => {
    const file = join(at, `${user}.password`);
    writeFileSync(file, `${passwords[user]}\n`, { mode: 0o600 });
    return file;
  };

  await done(["domain", "add", "acme"]);
  for (const account of ["acme/dev", "acme/ops"]) await done(["account", "add", account]);
  for (const [user, account, role] of [
    ["ann", "acme/dev", "account-admin"],
    ["bob", "acme/ops", "user"],
  ] as const) {
    const password = ["--password-file", passwordFile(user)];
    await done(["user", "add", user, "--account", account, "--role", role, ...password]);
    await done(["login", `${user}@acme`, "--out", configurationOf(user), ...password]);
  }
  const [ann, bob] = [configurationOf("ann"), configurationOf("bob")];
  assert.match(
    await done(["whoami"], ann),
    /^ann@ROOT\/acme, of the account ROOT\/acme\/dev\nrole account-admin, for its account/,
  );
  await refused(["get", cell], ann, new RegExp(`there is no cell "${cell}"`));
  await done(["account", "give", "acme/dev", cell]);
  assert.match(await done(["get", vm, "--state"], ann), /incarnation/);

  const file = join(at, "hers.sf");
  writeFileSync(file, "hers extends Cell { net extends Subnet { x.size 8; } }\n");
  await done(["apply", file, "--yes"], ann);
  assert.deepEqual(
    (JSON.parse(await done(["get", "--output", "json"], ann)) as readonly { cell: string }[]).map((each) => each.cell),
    ["hers", cell].sort(),
  );
  assert.deepEqual(JSON.parse(await done(["get", "--output", "json"], bob)), []);
  for (const args of [
    ["get", "hers"],
    ["exec", vm, "--", "true"],
    ["delete", "hers", "--yes"],
  ])
    await refused(args, bob, /there is no cell/);
  await refused(["apply", file, "--yes"], bob, /the name "hers" is taken/);
  await refused(["status"], ann, /this is for the operator/);
  assert.match(await done(["can", "bob@acme", "vm.console", vm]), /^no: /);
  assert.match(await done(["can", "ann@acme", "vm.console", vm], ann), /^yes: rule 2: allow vm\.\*/);

  const robot = await keysAndCodes(t, { at, ann, password: passwordFile("ann") });
  assert.equal((await done(["exec", vm, "--", "echo", "by-a-key"], robot)).trim(), "by-a-key");
  await refused(["exec", vm, "--", "true"], bob, /there is no cell/);
  await consoleEnds(t, ann, vm, () => done(["user", "disable", "ann@acme"]));
  await refused(["get", cell], robot, /session|disabled/);
  const opened = await done(["audit", "list", "--cell", cell, "--target", vm]);
  for (const what of ["exec", "console"])
    assert.match(opened, new RegExp(`ann@ROOT/acme .* openSession +${vm} +${what}$`, "m"));
  assert.match(await done(["audit", "verify", "--service", `controller.${cell}`]), /whole/);
  await refused(["get", cell], ann, /session|disabled/);
  await refused(["login", "ann@acme", "--out", ann, "--password-file", passwordFile("ann")], ann, /is disabled/);

  await done(["delete", "hers", "--yes"]);
  await done(["account", "give", "operator", cell]);
};

/** She makes a key, has a second factor for a while, and a program of hers gets in by the key alone. Returns its configuration. */
const keysAndCodes = async (
  t: Testbed,
  { at, ann, password }: { readonly at: string; readonly ann: string; readonly password: string },
): Promise<string> => {
  const [key, code, robot] = [join(at, "ann.key"), join(at, "ann.code"), join(at, "robot.json")];
  const done = async (args: readonly string[], as = ann): Promise<string> => {
    const { code: status, stdout, stderr } = await t.cells(args, as);
    assert.equal(status, 0, `cells ${args.join(" ")}\n${stdout}\n${stderr}`);
    return stdout;
  };
  await done(["key", "add", "--note", "scripts", "--out", key]);
  const [secret = ""] = (await done(["totp", "on", "--password-file", password])).split("\n");
  writeFileSync(code, shownByApp(secret), { mode: 0o600 });
  const [recovery = ""] = (await done(["totp", "confirm", "--code-file", code])).split("\n");
  const without = await t.cells(["login", "ann@acme", "--out", join(at, "no.json"), "--password-file", password]);
  assert.equal(without.code, 1, without.stdout);
  assert.match(without.stderr, /second factor/);
  await done(["login", "--key-file", key, "--out", robot]);
  assert.match(await done(["whoami"], robot), /^ann@ROOT\/acme, /);
  assert.match((await t.cells(["key", "add"], robot)).stderr, /begun by a key/);
  writeFileSync(code, `${recovery}\n`);
  await done(["totp", "off", "--password-file", password, "--code-file", code]);
  return robot;
};

/** A console that is open ends when its user is disabled. */
const consoleEnds = async (
  t: Testbed,
  configuration: string,
  vm: string,
  disable: () => Promise<string>,
): Promise<void> => {
  const env = { ...process.env, CELLS_HOME: t.at.directory, CELLS_CONFIG: configuration, NO_COLOR: "1" };
  const child = spawn(process.execPath, [cli, "console", vm], { env });
  let said = "";
  child.stdout.setEncoding("utf8");
  const answers = new Promise<void>((resolve, reject) => {
    child.stdout.on("data", (text: string) => {
      said += text;
      if (said.includes("hers-42")) resolve();
    });
    child.once("close", () => reject(new Error(`the console ended: ${said}`)));
  });
  child.stdin.on("error", () => undefined).write("echo hers-$((6*7))\n");
  const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
  try {
    await answers;
    await disable();
    assert.notEqual(await closed, 0, "what was open has ended");
  } finally {
    child.kill("SIGKILL");
  }
};
