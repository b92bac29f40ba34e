import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { WebSocketServer } from "ws";
import { channels, sessionProtocol } from "../../model/cell/session-messages.ts";
import { eventually } from "../../runtime/installation.testing.ts";
import { writeClientConfiguration } from "../connection/client-config.ts";
import { destinationOf, hostKeysOf } from "./ssh.ts";

const main = fileURLToPath(new URL("../main.ts", import.meta.url));
const ed25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ6vHbe2a6Ks7K5S5sWHnYUePVqQYHnVbv5aYqPW2SGQ";
const isThere = (program: string): boolean => spawnSync(program, ["-V"]).error === undefined;
/** Of Debian's openssh-server, or one that was unpacked somewhere. */
const sshd = process.env.CELLS_TEST_SSHD ?? "/usr/sbin/sshd";
const noClient = isThere("ssh") ? false : "no ssh on this machine (openssh-client)";
const noServer = noClient || (existsSync(sshd) ? false : "no sshd on this machine (openssh-server)");

test("keys are what a guest prints as such, whatever else it prints", () => {
  assert.deepEqual(hostKeysOf(`${ed25519} root@guest\nPublic key portion is:\n${ed25519}\nFingerprint: SHA256:abc\n`), [
    ed25519,
  ]);
  for (const wrong of [
    "",
    "\u001b[31mssh-ed25519 nothing",
    `@cert-authority * ${ed25519}`,
    `* ${ed25519}`,
    `ssh-rsa ${ed25519.split(" ")[1]}`,
    "ssh-ed25519 AAAA",
    `ssh-ed25519 ${"A".repeat(10_000)}`,
    `ssh-dss ${ed25519.split(" ")[1]}`,
  ])
    assert.deepEqual(hostKeysOf(wrong), [], wrong.slice(0, 40));
});

test("a destination is a VM with or without a user, and no option of ssh", () => {
  assert.deepEqual(destinationOf("shop/web/vm"), { user: null, vm: "shop/web/vm" });
  assert.deepEqual(destinationOf("root@shop//web/vm/"), { user: "root", vm: "shop/web/vm" });
  for (const wrong of ["", "shop", "-oProxyCommand=x/y", "root@-l/x", "a b/c", "a@b@c/d", "$(x)/y", "x".repeat(10_000)])
    assert.throws(() => destinationOf(wrong), /is no VM to log in to|must/, wrong.slice(0, 20));
});

interface Guest {
  /** What its agent prints of keys. */
  readonly keys: string;
  /** Of its SSH server, on loopback; null: nobody listens. */
  readonly port: number | null;
  readonly allowed?: boolean;
}
interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}
/** A gateway before one guest, and the command line with a home of its own. */
async function world(guest: Guest, work: (run: (...args: string[]) => Promise<Ran>, home: string) => Promise<void>) {
  const home = mkdtempSync(join(tmpdir(), "cells-ssh-"));
  let verb = "";
  const server = createServer(async (request, response) => {
    verb = (JSON.parse(await text(request)) as { readonly verb: string }).verb;
    const refused = verb === "forward" && guest.allowed === false;
    response.writeHead(refused ? 403 : 201, { "content-type": "application/json" });
    const grant = { session: "c".repeat(43), expires: "2030-01-01T00:00:00.000Z", vm: "shop/web", incarnation: 3 };
    response.end(
      JSON.stringify(refused ? { error: { code: "forbidden", message: "the cell lets nobody forward" } } : grant),
    );
  });
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => sessionProtocol });
  const to = (channel: number, bytes: Buffer): Buffer => Buffer.concat([Buffer.of(channel), bytes]);
  server.on("upgrade", (request, socket, head) =>
    sockets.handleUpgrade(request, socket, head, (client) => {
      const exited = (exitCode: number): void => {
        client.send(JSON.stringify({ kind: "exited", exitCode }));
        client.close(1000);
      };
      client.send(JSON.stringify({ kind: "opened", incarnation: 3, host: "", viewers: 1, pastBytes: 0 }));
      if (verb === "exec") {
        client.send(to(channels.output, Buffer.from(guest.keys)));
        exited(0);
        return;
      }
      if (guest.port === null) {
        client.send(to(channels.error, Buffer.from("connection refused")));
        exited(1);
        return;
      }
      const there = connect(guest.port, "127.0.0.1");
      there.on("data", (bytes) => client.send(to(channels.output, bytes as Buffer)));
      there.on("error", () => exited(1));
      there.on("end", () => exited(0));
      client.on("close", () => there.destroy());
      client.on("message", (data, isBinary) => {
        if (!isBinary) return;
        there.write(data as Buffer);
        client.send(JSON.stringify({ kind: "taken", bytes: (data as Buffer).length }));
      });
    }),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const file = join(home, "config.json");
  const { port } = server.address() as AddressInfo;
  writeClientConfiguration({ url: `http://127.0.0.1:${port}`, credential: "secret" }, file);
  const environment = { ...process.env, CELLS_CONFIG: file, XDG_CONFIG_HOME: home, NO_COLOR: "1", SUDO_UID: "" };
  const run = async (...args: string[]): Promise<Ran> => {
    const command = spawn(process.execPath, [main, "ssh", ...args], {
      env: environment,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [out, err, [code]] = await Promise.all([text(command.stdout), text(command.stderr), once(command, "exit")]);
    return { code: Number(code), out, err };
  };
  try {
    await work(run, home);
  } finally {
    for (const socket of sockets.clients) socket.terminate();
    server.closeAllConnections();
    server.close();
    rmSync(home, { recursive: true, force: true });
  }
}
interface Printed {
  readonly knownHosts: string;
  readonly command: readonly string[];
}

test("ssh is given the guest's keys in a file of this VM alone, and neither arguments nor another file undo that", async () => {
  await world({ keys: `${ed25519} a comment\n`, port: null }, async (run) => {
    const { out, err } = await run(
      "Root@shop/Web/vm",
      "--output",
      "json",
      "--",
      "-o",
      "StrictHostKeyChecking=no",
      "uptime",
    );
    assert.equal(err, "");
    const { knownHosts, command } = JSON.parse(out) as Printed;
    assert.equal(readFileSync(knownHosts, "utf8"), `shop/web/vm ${ed25519}\n`);
    assert.equal(statSync(knownHosts).mode & 0o777, 0o600);
    assert.deepEqual(command.slice(-4), ["Root@shop/Web/vm", "-o", "StrictHostKeyChecking=no", "uptime"]);
    const first = command.find((word) => word.startsWith("StrictHostKeyChecking="));
    assert.equal(first, "StrictHostKeyChecking=yes", "of an option, ssh takes the first value");
    assert.ok(command.includes("GlobalKnownHostsFile=/dev/null"));
    const other = JSON.parse((await run("shop/db/vm", "--output", "json")).out) as Printed;
    assert.notEqual(other.knownHosts, knownHosts);
    if (noClient !== false) return;
    const said = execFileSync("ssh", ["-G", ...command.slice(1, -1)], { encoding: "utf8" });
    for (const line of [
      "stricthostkeychecking true",
      "hostkeyalias shop/web/vm",
      `userknownhostsfile ${knownHosts}`,
      "globalknownhostsfile /dev/null",
      "checkhostip no",
      "updatehostkeys false",
      "user Root",
    ])
      assert.ok(said.includes(`\n${line}\n`) || said.startsWith(`${line}\n`), `${line} in:\n${said}`);
    assert.match(said, /^proxycommand .* forward --stdio shop\/Web\/vm 22$/m);
  });
});

test("where the cell does not allow it, or the guest has no server, nothing is started and a sentence says so", async () => {
  await world({ keys: ed25519, port: null, allowed: false }, async (run) => {
    const { code, err } = await run("shop/web/vm");
    assert.deepEqual([code, err], [1, "the cell lets nobody forward\n"]);
  });
  await world({ keys: "", port: null }, async (run) => {
    const { code, err } = await run("shop/web/vm");
    assert.equal(code, 1);
    assert.match(err, /^shop\/web\/vm has no SSH server whose key its agent could read/);
  });
  await world({ keys: ed25519, port: null }, async (run) => {
    assert.match((await run("shop")).err, /is no VM to log in to: write for example root@shop\/web\/vm/);
    assert.match((await run("shop/web/vm", "--port", "0")).err, /are no ports/);
    assert.match((await run("shop/web/vm", "--port", "1:2")).err, /--port is one port of the VM, not 1:2/);
  });
});

test("nobody listens in the guest: ssh ends, and the reason is read", { skip: noClient }, async () => {
  await world({ keys: ed25519, port: null }, async (run) => {
    const { code, err } = await run("shop/web/vm", "--", "true");
    assert.equal(code, 255);
    assert.match(err, /shop\/web\/vm port 22: connection refused/);
  });
});

test("a real sshd is logged in to, its exit code is ours; with another key it is not", { skip: noServer }, async () => {
  const directory = mkdtempSync(join(tmpdir(), "cells-sshd-"));
  const key = (name: string): string => {
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", join(directory, name)]);
    return readFileSync(join(directory, `${name}.pub`), "utf8");
  };
  const [host, other, user] = [key("host"), key("other"), key("user")];
  writeFileSync(join(directory, "authorized"), user);
  chmodSync(directory, 0o700);
  const free = createServer();
  await new Promise<void>((resolve) => free.listen(0, "127.0.0.1", resolve));
  const { port } = free.address() as AddressInfo;
  await new Promise((resolve) => free.close(resolve));
  const options = {
    HostKey: join(directory, "host"),
    AuthorizedKeysFile: join(directory, "authorized"),
    PidFile: "none",
    ListenAddress: "127.0.0.1",
    Port: port,
    StrictModes: "no",
    UsePAM: "no",
    PasswordAuthentication: "no",
  };
  const words = Object.entries(options).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  const server = spawn(sshd, ["-D", "-e", "-f", "/dev/null", ...words], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  server.stderr.on("data", (bytes) => {
    said += String(bytes);
  });
  try {
    await eventually("sshd listens", () => {
      assert.equal(server.exitCode, null, said);
      return said.includes("Server listening");
    });
    const login = [
      "--",
      "-F",
      "/dev/null",
      "-i",
      join(directory, "user"),
      "-o",
      "IdentitiesOnly=yes",
      "-o",
      "BatchMode=yes",
    ];
    const to = `${userInfo().username}@shop/web/vm`;
    await world({ keys: host, port }, async (run) => {
      const { code, out, err } = await run(to, ...login, "echo here; exit 7");
      assert.deepEqual([code, out], [7, "here\n"], `${err}\n${said}`);
    });
    await world({ keys: other, port }, async (run) => {
      const { code, out, err } = await run(to, ...login, "echo here");
      assert.deepEqual([code, out], [255, ""], said);
      assert.match(err, /Host key verification failed/);
    });
  } finally {
    server.kill("SIGTERM");
    rmSync(directory, { recursive: true, force: true });
  }
});
