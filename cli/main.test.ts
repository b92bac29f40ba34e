import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import type { CellEvent } from "../model/api.ts";
import { readEventStream } from "../runtime/http/event-stream.ts";
import { readClientConfiguration, writeClientConfiguration } from "./connection/client-config.ts";
import { createProgram } from "./program/program.ts";

/** The command line as a user runs it, against a gateway that answers what the test says. */
const main = fileURLToPath(new URL("main.ts", import.meta.url));

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}
const cells = (
  args: readonly string[],
  configFile: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<Ended> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [main, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...process.env,
        CELLS_CONFIG: configFile,
        CELLS_HOME: join(configFile, "..", "testbed"),
        ...environment,
      },
    });
    const output = { stdout: "", stderr: "" };
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output.stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      output.stderr += text;
    });
    child.once("close", (code) => resolve({ code, ...output }));
  });

const withGateway = async (
  answers: Readonly<Record<string, { readonly status: number; readonly body: unknown }>>,
  work: (configFile: string, asked: readonly string[]) => Promise<void>,
): Promise<void> => {
  const directory = mkdtempSync(join(tmpdir(), "cells-cli-"));
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const question = `${request.method} ${request.url}`;
    asked.push(`${question} ${request.headers.authorization}`);
    const answer = answers[question] ?? { status: 404, body: { error: { code: "path", message: `no ${question}` } } };
    response.writeHead(answer.status, { "content-type": "application/json" }).end(JSON.stringify(answer.body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const configFile = join(directory, "config.json");
  const { port } = server.address() as AddressInfo;
  writeClientConfiguration({ url: `http://127.0.0.1:${port}`, credential: "secret" }, configFile);
  try {
    await work(configFile, asked);
  } finally {
    server.closeAllConnections();
    server.close();
    rmSync(directory, { recursive: true, force: true });
  }
};

test("a refusal is exit code 1, wrong usage 2, no gateway 3", async () => {
  await withGateway({}, async (config) => {
    const refused = await cells(["get", "shop"], config);
    assert.deepEqual([refused.code, refused.stderr], [1, "no GET /cells/shop/model\n"]);
    assert.equal((await cells(["nope"], config)).code, 2);
    assert.equal((await cells(["why", "a", "->", "b:http"], config)).code, 2);
    assert.equal((await cells(["get", "--output", "xml"], config)).code, 2);
    assert.equal((await cells(["up", "--hosts", "many"], config)).code, 2);
    writeClientConfiguration({ url: "http://127.0.0.1:1", credential: "x" }, config);
    const unreachable = await cells(["get", "shop"], config);
    assert.equal(unreachable.code, 3);
    assert.match(unreachable.stderr, /does not answer.*cells up/);
  });
});

test("status tells which cloud was asked; what names one that is not there is no way to another", async () => {
  const nothing = { hosts: [], servers: [], services: [] };
  const answers = { "GET /status": { status: 200, body: nothing }, "GET /cells": { status: 200, body: [] } };
  await withGateway(answers, async (config, asked) => {
    const home = join(config, "..", "home");
    const known = readClientConfiguration(config);
    assert.ok(known !== undefined);
    // What is written for the user is there, and not what the environment names.
    writeClientConfiguration(known, join(config, "..", "user", "cells", "config.json"));
    const environment = { CELLS_CONFIG: "", CELLS_HOME: home, XDG_CONFIG_HOME: join(config, "..", "user") };
    const lost = await cells(["status"], config, environment);
    assert.equal(lost.code, 3);
    assert.match(lost.stderr, /^no cloud: .*home\/client\.json \(CELLS_HOME=.*home\) is not there\. `cells up` makes/m);
    assert.deepEqual(asked, []);
    writeClientConfiguration(known, join(home, "client.json"));
    const { code, stdout, stderr } = await cells(["status"], config, environment);
    assert.deepEqual([code, stdout.split("\n")[0]], [0, `Cloud  ${known.url}, by CELLS_HOME=${home}`], stderr);
  });
});

test("a model is shown as YAML where one asks for it, and nothing else is", async () => {
  const body = { shop: { "x.type": "Cell", vm: { "x.type": "VM", "x.memory": 128, note: "yes: no" } } };
  await withGateway({ "GET /cells/shop/model": { status: 200, body } }, async (config) => {
    const shown = await cells(["get", "shop", "--output", "yaml"], config);
    const text = 'shop:\n  x.type: Cell\n  vm:\n    x.type: VM\n    x.memory: 128\n    note: "yes: no"\n';
    assert.deepEqual([shown.code, shown.stdout], [0, text]);
    for (const args of [
      ["status", "-o", "yaml"],
      ["-o", "yaml", "explain"],
    ]) {
      const refused = await cells(args, config);
      assert.deepEqual([refused.code, refused.stdout], [2, ""]);
      assert.match(refused.stderr, /only `cells get` prints YAML/);
    }
  });
});

test("a list has the elements of all cells, and says whose are missing", async () => {
  const state = { phase: "ready", reason: null, since: "2026-01-01T00:00:00Z", uid: "1", host: "h1" };
  const model = { shop: { "x.type": "Cell", web: { vm: { "x.type": "VM", $state: state } } } };
  const cell = (name: string) => ({ cell: name, version: 1, elements: 1, phases: {} });
  const answers = {
    "GET /cells": { status: 200, body: [cell("shop"), cell("away"), cell("ended")] },
    "GET /cells/shop/model?state=true": { status: 200, body: model },
    "GET /cells/away/model?state=true": { status: 503, body: { error: { code: "away", message: "not now" } } },
  };
  await withGateway(answers, async (config) => {
    const shown = await cells(["list", "VM", "--columns", "path,host"], config);
    assert.deepEqual([shown.code, shown.stdout], [0, "PATH         HOST\nshop/web/vm  h1\n"], shown.stderr);
    assert.match(shown.stderr, /^the controller of away, which does not answer now: .*\n$/);
    const csv = await cells(["list", "--columns", "path,phase", "-o", "csv"], config);
    assert.equal(csv.stdout, "path,phase\r\nshop/web/vm,ready\n");
    const wrong = await cells(["list", "--sort", "colour"], config);
    assert.deepEqual([wrong.code, /there is no column `colour`/.test(wrong.stderr)], [2, true]);
    assert.match((await cells(["get", "-o", "csv"], config)).stderr, /only `cells list` prints CSV/);
  });
});

test("what not every service has heard is not said to be so everywhere", async () => {
  const missing = [{ service: "placer", why: "it does not answer" }];
  const answers = {
    "POST /orphans/controller.root": { status: 200, body: { services: [], missing } },
    "POST /orphans/controller.shop": { status: 200, body: { services: [], missing: [] } },
  };
  await withGateway(answers, async (config) => {
    const some = await cells(["orphans", "release", "controller.root"], config);
    assert.equal(some.code, 4);
    assert.match(
      some.stderr,
      /not told: placer\. Say it once more when they answer: `cells orphans release controller\.root`/,
    );
    assert.equal((await cells(["orphans", "release", "controller.root", "-o", "json"], config)).code, 4);
    assert.equal((await cells(["orphans", "release", "controller.shop"], config)).code, 0);
  });
});

test("a request is sent as it is written, and nowhere but to the gateway", async () => {
  const answers = { "GET /status?x=1": { status: 200, body: { so: "it is" } } };
  await withGateway(answers, async (config, asked) => {
    const shown = await cells(["api", "GET", "/status?x=1"], config);
    assert.deepEqual([shown.code, shown.stdout], [0, '{"so":"it is"}'], shown.stderr);
    const refused = await cells(["api", "DELETE", "/cells/shop"], config);
    assert.deepEqual([refused.code, refused.stderr], [1, "no DELETE /cells/shop\n"]);
    const before = asked.length;
    for (const path of ["//other.example/x", "http://other.example/", "status"]) {
      const { code, stderr } = await cells(["api", "GET", path], config);
      assert.deepEqual([code, /is no path of the REST interface/.test(stderr)], [2, true], path);
    }
    assert.equal((await cells(["api", "get", "/status"], config)).code, 2);
    assert.equal(asked.length, before);
    assert.match((await cells(["api", "reference"], config)).stdout, /^# /, "what describes it is still there");
  });
});

test("what others have written moves no terminal", async () => {
  const evil = "\u001b]0;owned\u0007\u001b[2J";
  const note = [{ id: "01234567", created: "2026-01-01T00:00:00Z", note: `x${evil}` }];
  const answers = {
    "GET /cells/shop/credentials": { status: 200, body: note },
    "GET /cells/shop/model": { status: 400, body: { error: { code: "x", message: `one${evil}\ntwo` } } },
  };
  await withGateway(answers, async (config) => {
    const listed = await cells(["credential", "list", "shop"], config);
    assert.match(listed.stdout, /^01234567 .* x\ufffd\]0;owned\ufffd\ufffd\[2J\n$/);
    const refused = await cells(["get", "shop"], config);
    assert.equal(refused.stderr, "one\ufffd]0;owned\ufffd\ufffd[2J\ntwo\n");
  });
});

test("every command has help with an example and the exit codes, those of the script too", async () => {
  const commands = (parent: Command): readonly Command[] =>
    parent.commands.flatMap((each) => (each.commands.length > 0 ? commands(each) : [each]));
  const all = commands(createProgram()).filter((command) => command.name() !== "help");
  for (const name of ["up", "apply", "start", "exec", "setup", "test", "bench"])
    assert.ok(all.some((command) => command.name() === name));
  for (const command of all) {
    let help = "";
    const writeOut = (text: string): void => {
      help += text;
    };
    command.configureOutput({ writeOut }).outputHelp();
    assert.match(help, /Examples?:\n {2}\$ \S*(CELLS_CONFIG=|(sudo )?(\.\/)?cells)/, command.name());
    assert.match(help, /Exit codes: 0 done/, command.name());
  }
  const script = spawnSync("bash", [fileURLToPath(new URL("../cells", import.meta.url)), "test", "--help"]);
  assert.deepEqual([script.status, String(script.stderr)], [0, ""]);
  assert.match(String(script.stdout), /^Usage: cells test .*\n\nrun every test/);
  assert.match(String(script.stdout), /--all +what is slow/);
});

test("no command takes a secret as an argument, and whoever writes one is told the right form and does not read it again", async () => {
  const commands = (parent: Command): readonly Command[] => [parent, ...parent.commands.flatMap(commands)];
  const all = commands(createProgram());
  let files = 0;
  for (const { options, name } of all.map((each) => ({ options: each.options, name: each.name() })))
    for (const { long, required, optional } of options) {
      if (!/password|secret|code/.test(long ?? "") || !(required || optional)) continue;
      assert.match(long ?? "", /-(file|code)$/, `${name} ${long}`);
      if (long?.endsWith("-file")) files += 1;
    }
  assert.ok(files > 8, `${files} options name a file`);
  await withGateway({}, async (config) => {
    for (const [args, expected] of [
      [["login", "ann@acme", "--password", "horse-of-ann"], /a password is no argument.*say --password-file FILE/],
      [["password", "--new-password=horse-of-ann"], /a new password is no argument.*say --new-password-file FILE/],
      [["provider", "add", "x.json", "--secret=horse-of-ann"], /a secret is no argument.*say --secret-file FILE/],
    ] as const) {
      const { code, stdout, stderr } = await cells(args, config);
      assert.equal(code, 2, args.join(" "));
      assert.match(stderr, expected);
      assert.ok(!`${stdout}${stderr}`.includes("horse-of-ann"), stderr);
    }
    assert.match((await cells(["login", "--pass"], config)).stderr, /unknown option '--pass'/);
  });
});

test("the version is that of the package; plan's detailed code 2 is no wrong usage", async () => {
  await withGateway({}, async (config) => {
    const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
      readonly version: string;
    };
    assert.deepEqual(await cells(["--version"], config), { code: 0, stdout: `cells ${version}\n`, stderr: "" });
    assert.equal((await cells(["plan", "--detailed-exitcode"], config)).code, 1);
  });
});

test("--output json is JSON and nothing else, before or behind the command", async () => {
  const list = [{ cell: "shop", version: 2, phases: {}, elements: 0 }];
  await withGateway({ "GET /cells": { status: 200, body: list } }, async (config) => {
    for (const args of [
      ["get", "--output", "json"],
      ["--output", "json", "get"],
    ]) {
      const { code, stdout, stderr } = await cells(args, config);
      assert.deepEqual([code, JSON.parse(stdout), stderr], [0, list, ""]);
    }
  });
});

test("why ends with 1 for a blocked connection", async () => {
  const answer = {
    from: "shop/a",
    to: "shop/b",
    protocol: "tcp",
    port: 80,
    allowed: false,
    checks: [],
    verdict: "No rule.",
  };
  const question = "GET /cells/shop/why?from=shop%2Fa&to=shop%2Fb&protocol=tcp&port=80";
  await withGateway({ [question]: { status: 200, body: answer } }, async (config) => {
    const { code, stdout } = await cells(["why", "shop/a -> shop/b:80"], config);
    assert.deepEqual([code, stdout], [1, "shop/a -> shop/b:80 (tcp): is blocked\nNo rule.\n"]);
  });
});

test("why of a VM says on demand of each host whether it takes it", async () => {
  const answer = { path: "shop/web", type: "VM", phase: "waiting", reason: null, checks: [], verdict: "It waits." };
  const refusal = { kind: "memory", why: "needs 512 MiB, 64 MiB free", lifts: "ask for at most 64 MiB" };
  const hosts = [
    { host: "h1", refusal, alerts: [] },
    { host: "h2", alerts: [] },
  ];
  const answers = {
    "GET /cells/shop/why?element=shop%2Fweb": { status: 200, body: answer },
    "GET /placement/try?vm=shop%2Fweb": { status: 200, body: { vm: "shop/web", from: null, hosts } },
  };
  await withGateway(answers, async (config) => {
    const { stdout } = await cells(["why", "shop/web", "--hosts"], config);
    assert.match(
      stdout,
      / {2}h1: needs 512 MiB, 64 MiB free; to lift that: ask for at most 64 MiB\n {2}h2: takes it\n$/,
    );
    const { hosts: told } = JSON.parse((await cells(["why", "shop/web", "--hosts", "-o", "json"], config)).stdout);
    assert.deepEqual(told, hosts);
    assert.doesNotMatch((await cells(["why", "shop/web"], config)).stdout, /h1/);
    assert.equal((await cells(["why", "shop/a", "shop/b", "--hosts"], config)).code, 2);
  });
});

test("why of a VM with --hosts says to who is not the operator what it says without", async () => {
  const answer = { path: "shop/web", type: "VM", phase: "waiting", reason: null, checks: [], verdict: "It waits." };
  const refusing = (status: number) => ({
    "GET /cells/shop/why?element=shop%2Fweb": { status: 200, body: answer },
    "GET /placement/try?vm=shop%2Fweb": { status, body: { error: { code: "forbidden", message: "not for you" } } },
  });
  await withGateway(refusing(403), async (config) => {
    const plain = await cells(["why", "shop/web"], config);
    const { code, stdout, stderr } = await cells(["why", "shop/web", "--hosts"], config);
    assert.deepEqual([code, stdout], [plain.code, plain.stdout]);
    assert.match(stderr, /what each host says of it is for the operator's credential/);
    const { stdout: json } = await cells(["why", "shop/web", "--hosts", "-o", "json"], config);
    assert.deepEqual(JSON.parse(json), answer);
  });
  await withGateway(refusing(409), async (config) => {
    assert.match((await cells(["why", "shop/web", "--hosts"], config)).stderr, /not for you/);
  });
});

test("events are read from a stream however it is cut", async () => {
  const bytes = new TextEncoder().encode('id: 1\ndata: {"id":1,"reason":"ä"}\n\n: beat\n\ndata: {"id":2}\r\n\r\n');
  const pieces = async function* (): AsyncGenerator<Uint8Array> {
    for (const byte of bytes) yield new Uint8Array([byte]);
  };
  const read: CellEvent[] = [];
  for await (const event of readEventStream<CellEvent>(pieces())) read.push(event);
  assert.deepEqual(read, [{ id: 1, reason: "ä" }, { id: 2 }]);
});

/** Modules that a run of the command line loads, as paths from the checkout. */
const loadedBy = (args: readonly string[]): readonly string[] => {
  const hook = [
    'import { registerHooks } from "node:module"; import { writeSync } from "node:fs";',
    'registerHooks({ load(url, context, next) { writeSync(2, "loads " + url + "\\n"); return next(url, context); } });',
  ].join("\n");
  const { stderr } = spawnSync(
    process.execPath,
    ["--import", `data:text/javascript,${encodeURIComponent(hook)}`, main, ...args],
    { encoding: "utf8", env: { ...process.env, CELLS_HOME: join(tmpdir(), "none") } },
  );
  const root = new URL("../", import.meta.url).href;
  return [...stderr.matchAll(/^loads (.*)$/gm)].map(([, url = ""]) => url.replace(root, ""));
};

test("a command loads what it needs, and not what others do", () => {
  const services = /^(?:core|gateway|host|testbed)\/|^simulator\/(?!histories\/fault-kinds)|tsyringe|@peculiar/;
  const languages = /^model\/(?:check\/(?!check-limits)|smartfrog\/|specification\/)/;
  assert.deepEqual(
    loadedBy(["--version"]).filter((path) => services.test(path) || languages.test(path) || /cli\/commands/.test(path)),
    ["cli/commands/explain.ts"],
  );
  assert.deepEqual(
    loadedBy(["exec", "shop/web/vm", "--", "true"]).filter((path) => services.test(path) || languages.test(path)),
    [],
  );
  assert.deepEqual(
    loadedBy(["spec", "check", fileURLToPath(new URL("../examples/shop/shop.sf", import.meta.url))]).filter((path) =>
      services.test(path),
    ),
    [],
  );
});
