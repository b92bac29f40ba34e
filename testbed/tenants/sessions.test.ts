import assert from "node:assert/strict";
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { WebSocket } from "ws";
import { Viewer } from "../../host/drivers/hypervisor/viewer.testing.ts";
import type { ElementState } from "../../model/api.ts";
import {
  capabilityPrefix,
  type SessionGrant,
  type SessionMessage,
  sessionProtocol,
} from "../../model/cell/session-messages.ts";
import { type Testbed, withTestbed } from "../harness.ts";
import { stateOf as stateOrNull } from "./questions.testing.ts";
import { tryUsers } from "./users.testing.ts";

/** Console and commands of one real guest, through gateway, controller and Host Manager. */
const specification = `one extends Cell {
  x.policy.forward true;
  net extends Subnet { x.size 8; }
  card extends VirtualInterface { x.vm "<ref:/one/vm>"; x.subnet "<ref:/one/net>"; }
  golden extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }
  disk extends VolumeCopy { x.image "<ref:/one/golden>"; }
  vm extends VM {
    x.memory 96;
    x.restartOnFailure true;
    x.display "vga";
    root extends VolumeConnection { x.vm "<ref:..>"; x.volume "<ref:/one/disk>"; x.bootOrder 0; }
  }
}
`;
const vm = "one/vm";
const cli = fileURLToPath(new URL("../../cli/main.ts", import.meta.url));

const until = async (what: string, holds: () => boolean | Promise<boolean>, seconds = 120): Promise<void> => {
  const end = performance.now() + seconds * 1000;
  while (!(await holds())) {
    assert.ok(performance.now() < end, `still not so after ${seconds} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
};

/** A command that goes on while the test looks at what it says. */
interface Live {
  readonly child: ChildProcessWithoutNullStreams;
  readonly said: { out: string; err: string };
  readonly code: Promise<number | null>;
}
const started: ChildProcessWithoutNullStreams[] = [];
const startCommand = (t: Testbed, command: string, args: readonly string[]): Live => {
  const env = { ...process.env, CELLS_HOME: t.at.directory, CELLS_CONFIG: t.configFile, NO_COLOR: "1", TERM: "vt100" };
  const child = spawn(command, args, { env });
  const said = { out: "", err: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said.out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said.err += text;
  });
  child.stdin.on("error", () => undefined);
  started.push(child);
  const code = new Promise<number | null>((resolve) => child.once("close", resolve));
  return { child, said, code };
};
const live = (t: Testbed, ...args: readonly string[]): Live => startCommand(t, process.execPath, [cli, ...args]);

const cells = async (t: Testbed, ...args: readonly string[]): Promise<string> => {
  const { code, stdout, stderr } = await t.cells(args);
  assert.equal(code, 0, `cells ${args.join(" ")}\n${stdout}\n${stderr}`);
  return stdout;
};
const stateOf = async (t: Testbed): Promise<ElementState> =>
  (await stateOrNull(t, vm)) ?? assert.fail(`${vm} has no $state`);

const ask = async (
  t: Testbed,
  credential: string,
  verb = "console",
): Promise<{ status: number; body: SessionGrant }> => {
  const answer = await fetch(`${t.client().url}/cells/one/sessions`, {
    method: "POST",
    headers: { authorization: `Bearer ${credential}` },
    body: JSON.stringify({ vm, verb }),
  });
  return { status: answer.status, body: (await answer.json()) as SessionGrant };
};
/** What opening it says first: `opened`, or the status of the refusal with its sentence. */
const openWith = async (t: Testbed, { session }: SessionGrant): Promise<string> => {
  const protocols = [sessionProtocol, `${capabilityPrefix}${session}`];
  const socket = new WebSocket(`${t.client().url.replace("http", "ws")}/cells/one/sessions`, protocols);
  const said = await new Promise<string>((resolve, reject) => {
    socket.once("message", (data) => resolve((JSON.parse(String(data)) as SessionMessage).kind));
    socket.once("unexpected-response", async (_request, response) => {
      let body = "";
      for await (const chunk of response) body += String(chunk);
      resolve(`${response.statusCode} ${JSON.parse(body).error.message}`);
    });
    socket.once("error", reject);
  });
  const closed = socket.readyState === WebSocket.OPEN ? once(socket, "close") : null;
  socket.terminate();
  await closed;
  return said;
};

const tryConsole = async (t: Testbed): Promise<void> => {
  const { child, said, code } = live(t, "console", vm);
  await until("the guest's shell asks", () => said.out.includes("vm:/# "));
  child.stdin.write("echo answer-$((6*7))\n");
  await until("it answers", () => said.out.includes("answer-42"));
  const second = live(t, "console", vm);
  await until("who comes later sees what was", () => second.said.out.includes("answer-42"));
  await until("both are told", () => said.err.includes("2 are at this console now"));
  second.child.stdin.end("echo second-$((40+2))\n");
  await until("both may type, both see it", () => said.out.includes("second-42"));
  assert.equal(await second.code, 0);
  child.stdin.end();
  assert.equal(await code, 0);
  assert.match(said.err, /left the console of one\/vm; the VM goes on/);
};

/** `script` gives the command a terminal of its own; `stty` behind it says in which state that was left. */
const tryTerminal = async (t: Testbed): Promise<void> => {
  const command = `stty -a | head -n 4; ${process.execPath} ${cli} console ${vm}; echo "exit code $?"; stty -a`;
  const { child, said, code } = startCommand(t, "script", ["-qfec", command, "/dev/null"]);
  await until("it says how to leave", () => said.out.includes("Ctrl-] leaves"));
  child.stdin.write("echo typed-$((6*7))\r");
  await until("the guest answers", () => said.out.includes("typed-42"));
  // Ctrl-C is the guest's.
  child.stdin.write("echo run''ning; sleep 1000\r");
  await until("the command runs", () => said.out.includes("running"));
  child.stdin.write("\u0003");
  child.stdin.write("echo still-$((6*7))\r");
  await until("Ctrl-C ended the guest's command", () => said.out.includes("still-42"));
  child.stdin.write("\u001d");
  await until("the terminal is described again", () => /exit code 0[\s\S]*icanon[\s\S]*echo /.test(said.out));
  assert.doesNotMatch(said.out.split("exit code 0")[1] ?? "", / -icanon| -echo |-isig/);
  child.stdin.end();
  await code;
};

const tryExec = async (t: Testbed): Promise<void> => {
  const waits = "echo first; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo second; echo complaint >&2; exit 5";
  const running = live(t, "exec", vm, "--", "sh", "-c", waits);
  await until("output comes while the command runs", () => running.said.out === "first\n");
  await cells(t, "exec", vm, "--", "touch", "/tmp/go");
  assert.equal(await running.code, 5);
  assert.deepEqual(running.said, { out: "first\nsecond\n", err: "complaint\n" });

  const copy = live(t, "exec", "-i", vm, "--", "sha256sum");
  copy.child.stdin.end("x".repeat(300_000));
  assert.equal(await copy.code, 0);
  const digest = createHash("sha256").update("x".repeat(300_000)).digest("hex");
  assert.equal(copy.said.out, `${digest}  -\n`);

  const long = live(t, "exec", vm, "--", "sh", "-c", "echo up; sleep 4321; echo not here");
  await until("it runs", () => long.said.out === "up\n");
  long.child.kill("SIGINT");
  assert.equal(await long.code, 130);
  const left = live(t, "exec", vm, "--", "sh", "-c", "echo up; sleep 4322");
  await until("it runs", () => left.said.out === "up\n");
  left.child.kill("SIGKILL");
  const remaining = async (): Promise<string> => cells(t, "exec", vm, "--", "sh", "-c", "ps; ls -A /tmp");
  await until("neither is left in the guest", async () => !/sleep 432/.test(await remaining()));
  // Of the commands that ran, and of the one that lists them, which has only just opened its own.
  await until("no file of theirs either", async () => ((await remaining()).match(/\.cells-/g) ?? []).length <= 1);
  const late = await t.cells(["exec", vm, "--timeout", "1", "--", "sleep", "4323"]);
  assert.deepEqual([late.code, late.stderr], [1, 'one/vm: "sleep" did not end within 1 s and was killed\n']);
};

/** Two servers in the guest: one at its address, one for the guest alone. No rule lets anybody in. */
const tryForward = async (t: Testbed): Promise<void> => {
  const address = (
    await cells(t, "exec", vm, "--", "sh", "-c", "ip -4 -o addr show dev eth0 | sed 's/.*inet \\([0-9.]*\\).*/\\1/'")
  ).trim();
  const serve = (at: string, port: number): string =>
    `socat TCP-LISTEN:${port},bind=${at},fork,reuseaddr EXEC:'tr a-z A-Z' >/dev/null 2>&1 &`;
  await cells(t, "exec", vm, "--", "sh", "-c", `${serve(address, 7000)} ${serve("127.0.0.1", 7001)} sleep 1`);
  const asked = async (there: number): Promise<string> => {
    const forward = live(t, "forward", vm, `0:${there}`);
    await until("it listens", () => / is port /.test(forward.said.out));
    const port = Number(/:(\d+) is port/.exec(forward.said.out)?.[1]);
    const answers = await Promise.all(
      ["one", "two"].map(async (word) => {
        const socket = connect(port, "127.0.0.1");
        socket.on("error", () => undefined).end(word);
        return await text(socket).catch(() => "");
      }),
    );
    forward.child.kill("SIGINT");
    assert.equal(await forward.code, 0);
    return `${answers.join()} ${forward.said.err}`;
  };
  assert.equal(await asked(7000), "ONE,TWO ");
  assert.match(await asked(7001), /^, .*port 7001/, "what is for the guest alone is not reached");
  const root = await t.cells(["forward", "root/anything", "80"]);
  assert.notEqual(root.code, 0);
  const zero = await t.cells(["forward", vm, "8080:0"]);
  assert.match(zero.stderr, /are no ports/);
};

/** The whole way of a screen: QEMU, host, controller, gateway, command line. */
const tryDisplay = async (t: Testbed): Promise<void> => {
  const display = live(t, "display", vm);
  await until("it listens", () => /^vnc:/.test(display.said.out));
  const port = Number(/:(\d+) is the display/.exec(display.said.out)?.[1]);
  const sockets = [1, 2].map(() => connect(port, "127.0.0.1").on("error", () => undefined));
  const viewers = sockets.map((socket) => new Viewer(socket));
  for (const viewer of viewers) {
    const { width, height, name } = await viewer.shakeHands();
    assert.ok(width >= 320 && height >= 200, `${width}×${height}`);
    assert.match(name, /QEMU/);
    assert.ok(
      (await viewer.look(width, height)).every((side) => side > 0),
      "something of the screen came",
    );
    viewer.key(0x61);
  }
  assert.deepEqual(
    viewers.map(({ isOpen }) => isOpen),
    [true, true],
    "neither ends the other",
  );
  // Of IPv4 and IPv6: what listens (state 0A) between 5900 and 5999.
  const listening = await t.exec("h1", ["sh", "-c", "cat /proc/net/tcp /proc/net/tcp6"]);
  assert.match(listening.stdout, / 0A /, "something listens, so the table is read");
  assert.doesNotMatch(listening.stdout, /:17[0-6][0-9A-F] [0-9A-F:]+ 0A /);
  for (const socket of sockets) socket.destroy();
  display.child.kill("SIGINT");
  assert.equal(await display.code, 0);
};

const tryCapabilities = async (t: Testbed): Promise<void> => {
  const file = join(dirname(t.configFile), "two.sf");
  writeFileSync(file, "two extends Cell { net extends Subnet { x.size 8; } }\n");
  await cells(t, "apply", file, "--yes");
  const credentialOf = async (cell: string): Promise<string> =>
    (JSON.parse(await cells(t, "credential", "add", cell, "--output", "json")) as { credential: string }).credential;
  assert.equal((await ask(t, await credentialOf("two"))).status, 403, "another cell's credential");
  assert.equal((await ask(t, "nonsense")).status, 401);
  const { status, body } = await ask(t, await credentialOf("one"));
  assert.equal(status, 201, "the cell's own");
  assert.equal(await openWith(t, body), "opened");
  assert.match(await openWith(t, body), /^403 this capability opens nothing: it was used before/);
  await cells(t, "delete", "two", "--yes");
};

const tryRestart = async (t: Testbed): Promise<void> => {
  const before = await stateOf(t);
  const { child, said, code } = live(t, "console", vm);
  child.stdin.write("echo kept-$((6*7))\n");
  await until("it answers", () => said.out.includes("kept-42"));
  await t.kill("h1", "SIGTERM");
  assert.equal(await code, 1);
  assert.match(said.err, /the console of one\/vm ended: the Host Manager of its host restarts; the VM goes on/);
  const again = live(t, "console", vm, "--reconnect");
  await until("the record is whole", () => again.said.out.includes("kept-42"));
  again.child.stdin.end("echo after-$((6*7))\n");
  await until("and the console works", () => again.said.out.includes("after-42"));
  assert.equal(await again.code, 0);
  assert.equal((await stateOf(t)).incarnation, before.incarnation, "the guest was not touched");
};

const tryNextIncarnation = async (t: Testbed): Promise<void> => {
  const { incarnation = 0, uid } = await stateOf(t);
  const { body } = await ask(t, t.client().credential);
  const staying = live(t, "console", vm, "--reconnect");
  const leaving = live(t, "console", vm);
  for (const { said } of [staying, leaving]) await until("it is open", () => said.err.includes("console of one/vm"));
  const kill = `for p in /proc/[0-9]*; do if tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep -q '^[^ ]*qemu-system.*${uid}'; then kill -9 \${p#/proc/}; fi; done`;
  await t.exec("h1", ["sh", "-c", kill]);
  assert.equal(await leaving.code, 1);
  assert.match(leaving.said.err, new RegExp(`incarnation ${incarnation} of this VM has ended: its QEMU process ended`));
  await until("the next incarnation runs", async () => {
    const now = await stateOf(t);
    return now.power === "on" && (now.incarnation ?? 0) > incarnation && now.phase === "ready";
  });
  assert.match(
    await openWith(t, body),
    /^409 incarnation \d+ of "[^"]+" runs here, not \d+/,
    "it was for the one before",
  );
  await until("who stayed is there", () =>
    staying.said.err.includes(`started anew: console of one/vm, incarnation ${incarnation + 1}`),
  );
  staying.child.stdin.end();
  assert.equal(await staying.code, 0);
};

test("console and exec reach a real guest, under a capability, and end with a sentence", {
  skip: process.getuid?.() === 0 ? false : "needs root",
}, async (t) => {
  // What a failed step left; `kill` does nothing to those that have ended.
  t.after(() => {
    for (const child of started) child.kill("SIGKILL");
  });
  await withTestbed({ hosts: 1, servers: 1 }, async (testbed) => {
    const file = join(dirname(testbed.configFile), "one.sf");
    writeFileSync(file, specification);
    await cells(testbed, "apply", file, "--yes");
    await t.test("a console shows a shell that answers, to everybody who is there", () => tryConsole(testbed));
    await t.test("on a terminal, Ctrl-] leaves and the terminal is as before", () => tryTerminal(testbed));
    await t.test("exec gives output as it comes, takes input, and ends with its client", () => tryExec(testbed));
    await t.test("a port of a guest is reached from here, one for the guest alone is not", () => tryForward(testbed));
    await t.test("a screen is shown by the whole way from here, to two viewers, and at no port of the host", () =>
      tryDisplay(testbed),
    );
    await t.test("a capability is for the cell's own, and opens once", () => tryCapabilities(testbed));
    await t.test(
      "a user has what is of his account, sees nothing of others', and is out of his console when disabled",
      () => tryUsers(testbed, vm),
    );
    await t.test("a restart of the Host Manager ends a session with a sentence and loses no record", () =>
      tryRestart(testbed),
    );
    await t.test("a capability and a session are one incarnation's", () => tryNextIncarnation(testbed));
  });
});
