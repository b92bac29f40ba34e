import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { complete } from "../commands/completion.ts";
import type { Client } from "../connection/client.ts";
import { createProgram } from "../program/program.ts";
import { namesInTime } from "./names.ts";
import { scripts } from "./scripts.ts";

const vm = (phase: string) => ({ "x.type": "VM", $state: { phase, power: "on", host: "h1" } });
const model = {
  shop: {
    "x.type": "Cell",
    web: { vm: vm("ready"), interface: { "x.type": "VirtualInterface", $state: { phase: "ready" } } },
    db: { vm: vm("waiting") },
  },
};
const cloud = {
  cells: async () => [{ cell: "shop" }, { cell: "stage" }],
  model: async (cell: string) => (cell === "shop" ? model : {}),
  status: async () => ({ hosts: [{ host: "h1" }, { host: "h2" }, { host: "other" }] }),
  images: async () => [{ name: "debian" }],
} as unknown as Client;
const program = createProgram();

/** What a shell is offered for words, of which the last is being typed; null: files. */
const offered = async (
  words: readonly string[],
  client: () => Client = () => cloud,
): Promise<readonly string[] | null> => {
  const printed: string[] = [];
  const terminal = { print: (text: string) => printed.push(text) };
  await complete({ terminal: terminal as never }, program, words, client);
  if (printed[0] === ":files") return null;
  return printed.flatMap((text) => text.split("\n")).map((line) => line.split("\t")[0] ?? "");
};

test("commands, those below them, options and their choices are offered", async () => {
  assert.deepEqual(await offered(["ap"]), ["apply", "api"]);
  assert.deepEqual(await offered(["host", "dr"]), ["drain"]);
  assert.deepEqual(await offered(["apply", "--allow"]), ["--allow-destroy"]);
  assert.deepEqual(await offered(["up", "--profile", "l"]), ["large"]);
  assert.deepEqual(await offered(["up", "--profile=l"]), ["--profile=large"]);
  assert.deepEqual(await offered(["up", "--profile", "=", "l"]), ["large"], "as bash takes it apart");
  assert.deepEqual(await offered(["completion", ""]), ["bash", "zsh", "fish"]);
  assert.equal((await offered([""]))?.includes("complete"), false, "what is asked by shells alone is not offered");
  assert.equal((await offered([""]))?.includes("completion"), true);
});

test("names of the cloud are offered where an argument is one", async () => {
  assert.deepEqual(await offered(["exec", ""]), ["shop/web/vm", "shop/db/vm"]);
  assert.deepEqual(await offered(["exec", "shop/w"]), ["shop/web/vm"]);
  assert.deepEqual(await offered(["get", "sh"]), ["shop", "shop/web/vm", "shop/web/interface", "shop/db/vm"]);
  assert.deepEqual(await offered(["host", "drain", "h"]), ["h1", "h2"]);
  assert.deepEqual(await offered(["watch", "st"]), ["stage"]);
  assert.deepEqual(await offered(["image", "delete", ""]), ["debian"]);
  assert.deepEqual(await offered(["move", "shop/web/vm", "--to", "o"]), ["other"]);
  assert.deepEqual(await offered(["exec", "shop/web/vm", "--", "--ti"]), [], "behind -- is the guest's command");
});

test("columns, filters and their values are offered, one after the other", async () => {
  const list = (...words: readonly string[]) => offered(["list", ...words]);
  assert.deepEqual(await list("--columns", "p"), ["path", "phase", "power", "public"]);
  assert.deepEqual(await list("--columns", "path,p"), ["path,phase", "path,power", "path,public"], "each once");
  assert.deepEqual(await list("--columns=ui"), ["--columns=uid"]);
  assert.deepEqual(await list("--sort", "type,-si"), ["type,-since", "type,-size"].toReversed());
  assert.deepEqual(await list("--sort", "-type,ty"), []);
  assert.deepEqual(await list("--filter", "ph"), ["phase="]);
  assert.deepEqual(await list("--filter", "phase=wa"), ["phase=waiting"]);
  assert.deepEqual(await list("--filter", "phase!=waiting,w"), ["phase!=waiting,working"]);
  assert.deepEqual(await list("--filter=type=Vol"), [
    "--filter=type=Volume",
    "--filter=type=VolumeCopy",
    "--filter=type=VolumeConnection",
    "--filter=type=VolumeGrant",
  ]);
  assert.deepEqual(await list("--filter", "host=h1,h"), ["host=h1,h1", "host=h1,h2"]);
  assert.deepEqual(await list("--filter", "cell", "=", "st"), ["stage"], "as bash takes it apart");
  assert.deepEqual(await list("--filter", "phase", "="), ["waiting", "working", "ready", "failed", "deleting"]);
});

test("paths of the interface are offered part by part, with names of the cloud, and what their query may have", async () => {
  const api = (...words: readonly string[]) => offered(["api", ...words]);
  assert.deepEqual(await api("P"), ["PUT", "PATCH", "POST"]);
  assert.deepEqual(await api("GET", "/ce"), ["/cells", "/cells/"]);
  assert.deepEqual(await api("GET", "/cells/st"), ["/cells/stage", "/cells/stage/"]);
  assert.deepEqual(await api("GET", "/cells/shop/v"), ["/cells/shop/versions"]);
  assert.deepEqual(await api("PATCH", "/cells/shop/"), ["/cells/shop/model"]);
  assert.deepEqual(await api("GET", "/cells/shop/model/shop/w"), [
    "/cells/shop/model/shop/web/vm",
    "/cells/shop/model/shop/web/interface",
  ]);
  assert.deepEqual(await api("DELETE", "/images/d"), ["/images/debian"]);
  assert.deepEqual(await api("GET", "/cells/shop/model?st"), ["/cells/shop/model?state="]);
  assert.deepEqual(await api("GET", "/cells/shop/model?state=true&s"), [], "each once");
  assert.deepEqual(await api("GET", "/cells/shop/model?state=true&until=r"), [
    "/cells/shop/model?state=true&until=ready",
  ]);
  assert.deepEqual(await api("GET", "/cells/shop/model?state", "=", "t"), ["true"], "as bash takes it apart");
  assert.deepEqual(await api("GET", "cells"), []);
  assert.deepEqual(await api("GET", "/nothing/"), []);
});

test("files are offered where an argument is one", async () => {
  assert.equal(await offered(["apply", ""]), null);
  assert.equal(await offered(["spec", "fmt", "one.sf", ""]), null);
  assert.equal(await offered(["status", "--directory", ""]), null);
});

test("a cloud that is away, refuses or does not answer has no names, and the rest is offered", async () => {
  const none = (): Client => {
    throw new Error("no cloud");
  };
  assert.deepEqual(await offered(["exec", ""], none), []);
  assert.deepEqual(await offered(["up", "--profile", "l"], none), ["large"]);
  const silent = { cells: () => new Promise(() => undefined) } as unknown as Client;
  assert.deepEqual(await namesInTime(() => silent, "vm", "", 20), []);
});

test("a name that is none, and text that would move a terminal, reach no shell", async () => {
  const hostile = {
    ...cloud,
    cells: async () => [{ cell: "sh op" }, { cell: "evil\u001b[2J" }, { cell: "shop" }],
  } as unknown as Client;
  assert.deepEqual(await offered(["watch", ""], () => hostile), ["shop"]);
});

/* The script itself, in the shells that are here; bash always is. */
const directory = mkdtempSync(join(tmpdir(), "cells-completion-"));
after(() => rmSync(directory, { recursive: true, force: true }));
const main = fileURLToPath(new URL("../main.ts", import.meta.url));
const stub = join(directory, "cells");
writeFileSync(stub, `#!/bin/sh\nexec '${process.execPath}' --disable-warning=ExperimentalWarning '${main}' "$@"\n`);
chmodSync(stub, 0o755);
const environment = { ...process.env, PATH: `${directory}:${process.env.PATH}`, CELLS_HOME: join(directory, "none") };

const inBash = (words: readonly string[]): readonly string[] => {
  writeFileSync(join(directory, "script.bash"), scripts.bash);
  const text = `. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { echo "compopt $*"; }; _cells; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const run = spawnSync("bash", ["-c", text, "bash", join(directory, "script.bash"), "cells", ...words], {
    encoding: "utf8",
    env: environment,
  });
  assert.equal(run.stderr, "");
  return run.stdout.trim().split("\n");
};

test("bash completes by the script, and runs nothing of what is typed", () => {
  assert.deepEqual(inBash(["host", "dr"]), ["drain"]);
  assert.deepEqual(inBash(["up", "--profile", "=", "s"]), ["small"]);
  assert.deepEqual(inBash(["apply", ""]), ["compopt -o default"]);
  assert.deepEqual(inBash(["list", "--filter", "phase", "=", "wai"]), ["waiting"]);
  assert.deepEqual(inBash(["list", "--filter", "pha"]), ["compopt -o nospace", "phase="]);
  assert.deepEqual(inBash(["api", "GET", "/metr"]), ["/metrics"]);
  const mark = join(directory, "ran");
  inBash(["exec", `$(touch ${mark})`]);
  inBash(["exec", `\`touch ${mark}\``]);
  assert.equal(existsSync(mark), false);
});
