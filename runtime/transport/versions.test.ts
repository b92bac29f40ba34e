import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { protocolVersion } from "../../core/distribution/node/frames.ts";
import type { Json } from "../../model/json/json.ts";
import { type EchoRequest, type EchoView, echoClient, echoServer } from "../http/echo.testing.ts";
import { createTestInstallation, eventually } from "../installation.testing.ts";

/**
 * An upgrade goes service by service, and back: a process of this source beside one of a copy of it that speaks another
 * version of the protocol. What the next version will add is not known, so the copy says only that it is that one.
 */
const root = join(import.meta.dirname, "../..");
const directory = await mkdtemp(join(tmpdir(), `cells-versions-${process.pid}-`));
const children = new Set<ChildProcess>();
after(async () => {
  for (const child of children) child.kill("SIGKILL");
  await rm(directory, { recursive: true, force: true });
});

/** A copy of what a service is made of, with another version. Returns the file to run. */
const copyWith = async (version: number): Promise<string> => {
  const copy = join(directory, `v${version}`);
  await mkdir(copy, { recursive: true });
  for (const folder of ["model", "core", "runtime"])
    await cp(join(root, folder), join(copy, folder), { recursive: true });
  await cp(join(root, "package.json"), join(copy, "package.json"));
  await symlink(join(root, "node_modules"), join(copy, "node_modules"));
  const file = join(copy, "core/distribution/node/frames.ts");
  const text = await readFile(file, "utf8");
  const own = `export const protocolVersion = ${protocolVersion};`;
  assert.equal(text.split(own).length, 2, "the version is named once");
  await writeFile(file, text.replace(own, `export const protocolVersion = ${version};`));
  return join(copy, "runtime/http/echo.testing.ts");
};

interface Party {
  ask<T extends Json>(request: EchoRequest): Promise<T>;
  logged(text: string): boolean;
  end(): Promise<void>;
}
const start = async (program: string, configurationFile: string): Promise<Party> => {
  const child = fork(program, [configurationFile], { stdio: ["ignore", "pipe", "inherit", "ipc"], execArgv: [] });
  children.add(child);
  let log = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    log += chunk.toString();
  });
  await once(child, "message");
  let id = 0;
  return {
    logged: (text) => log.includes(text),
    ask: async (request) => {
      id += 1;
      child.send({ id, request });
      const [answer] = (await once(child, "message")) as [{ readonly response: Json }];
      return answer.response as never;
    },
    end: async () => {
      const exit = once(child, "exit");
      child.kill("SIGTERM");
      await exit;
      children.delete(child);
    },
  };
};

/** Runs a client and a server of such sources, and looks whether what one desires comes back from the other. */
const exchange = async (clientProgram: string, serverProgram: string, together: boolean): Promise<void> => {
  const installation = await createTestInstallation("versions");
  const [server, client] = [await installation.configure(echoServer), await installation.configure(echoClient)];
  const [serving, asking] = [await start(serverProgram, server.file), await start(clientProgram, client.file)];
  const seen = (party: Party): Promise<EchoView> => party.ask<EchoView>({ ask: "view" });
  await asking.ask({ ask: "desire", key: "number/1", value: 7 });
  if (together) {
    await eventually("desired state flows down", async () => (await seen(serving)).desired["number/1"] === 7);
    await eventually("actual state flows up", async () => (await seen(asking)).actual["number/1"] === 7);
    await asking.ask({ ask: "desire", key: "number/1", value: null });
    await eventually("and is taken back", async () => (await seen(asking)).actual["number/1"] === undefined);
    assert.deepEqual([(await seen(serving)).violations, (await seen(asking)).violations], [[], []]);
  } else {
    await eventually("the server refuses it", () => serving.logged('"reason":"unsupported version"'));
    assert.deepEqual([(await seen(serving)).desired, (await seen(asking)).reachable], [{}, false]);
  }
  await asking.end();
  await serving.end();
  await installation.remove();
};

const own = join(import.meta.dirname, "../http/echo.testing.ts");

for (const [name, version] of [
  ["previous", protocolVersion - 1],
  ["next", protocolVersion + 1],
] as const)
  test(`a process of the ${name} version exchanges state with one of this, as client and as server`, async () => {
    const other = await copyWith(version);
    await exchange(other, own, true);
    await exchange(own, other, true);
  });

test("one of the version after the next exchanges nothing", async () => {
  const other = await copyWith(protocolVersion + 2);
  await exchange(other, own, false);
  await exchange(own, other, false);
});
