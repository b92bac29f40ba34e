import assert from "node:assert/strict";
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { ElementState, ServiceEvent } from "../../model/api.ts";
import { runCommand } from "../command.ts";
import { onceSoon, type Testbed } from "../harness.ts";
import { execIn, stateOf as stateOrNull } from "./questions.testing.ts";

/** Parts of `daily-life.test.ts`: the cell `day`, with `day/web/vm` and all that belongs to it in one group. */
const cli = fileURLToPath(new URL("../../cli/main.ts", import.meta.url));

export const cells = async (t: Testbed, ...args: readonly string[]): Promise<string> => {
  const { code, stdout, stderr } = await t.cells(args);
  assert.equal(code, 0, `cells ${args.join(" ")}\n${stdout}\n${stderr}`);
  return stdout;
};
/** In a guest, at once: a VM that is ready has an agent that answers. */
export const inGuest = async (t: Testbed, vm: string, command: string): Promise<string> => {
  const { code, stdout, stderr } = await execIn(t, vm, ["sh", "-c", command]);
  assert.equal(code, 0, `${vm}: ${command}\n${stdout}\n${stderr}`);
  return stdout.trim();
};
const environmentOf = (t: Testbed): Readonly<Record<string, string>> => ({
  CELLS_HOME: t.at.directory,
  CELLS_CONFIG: t.configFile,
  NO_COLOR: "1",
});
const stateOf = async (t: Testbed, path: string): Promise<ElementState> =>
  (await stateOrNull(t, path)) ?? assert.fail(`${path} has no $state`);

const settled = async (t: Testbed, path: string, holds: (state: ElementState) => boolean): Promise<void> => {
  for (const end = performance.now() + 120_000; ; ) {
    const state = await stateOf(t, path);
    if (holds(state)) return;
    assert.ok(performance.now() < end, JSON.stringify(state));
    await sleep(200);
  }
};

/** A command that goes on; `out` is what it has said. */
interface Live {
  readonly child: ChildProcessWithoutNullStreams;
  readonly said: { out: string; err: string };
  readonly code: Promise<number | null>;
  /** Rejects when it ends before. */
  until(holds: (out: string) => boolean): Promise<void>;
}
const live = (t: Testbed, ...args: readonly string[]): Live => {
  const child = spawn(process.execPath, [cli, ...args], { env: { ...process.env, ...environmentOf(t) } });
  const said = { out: "", err: "" };
  const code = new Promise<number | null>((resolve) => child.once("close", resolve));
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said.out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said.err += text;
  });
  const until = (holds: (out: string) => boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        if (holds(said.out)) resolve();
      };
      child.stdout.on("data", look);
      code.then(() => reject(new Error(`cells ${args.join(" ")} has ended: ${said.out}${said.err}`)));
      look();
    });
  return { child, said, code, until };
};

/** What `docs/typescript.md` shows is applied as it stands there, and comes up. */
export const tryExample = async (t: Testbed): Promise<void> => {
  const page = readFileSync(fileURLToPath(new URL("../../docs/typescript.md", import.meta.url)), "utf8");
  const blocks = [...page.matchAll(/(?:^ {4}.*\n|^\n(?= {4}))+/gm)].map(([block]) => block.replace(/^ {4}/gm, ""));
  const example = blocks.find((block) => block.includes("export default cell("));
  assert.ok(example !== undefined);
  const directory = join(dirname(t.configFile), "typescript");
  mkdirSync(directory);
  const file = join(directory, "shop.ts");
  writeFileSync(file, example);
  assert.match(await cells(t, "apply", file, "--yes"), /shop is as declared: (\d+) elements: \1 ready/);
  assert.equal(await inGuest(t, "shop/web/machine", "cat /proc/sys/kernel/ostype"), "Linux");
  await cells(t, "stop", "shop/web/machine");
};

/** What a guest that resets itself is, until it has come up again. */
export const tryReset = async (t: Testbed): Promise<void> => {
  await inGuest(t, "day/web/vm", onceSoon("reset", "reboot"));
  let state = await stateOf(t, "day/web/vm");
  for (const end = performance.now() + 120_000; state.reboots !== 1 || state.phase !== "ready"; ) {
    assert.ok(performance.now() < end, JSON.stringify(state));
    if (state.reboots === 1) assert.match(state.reason ?? "", /^its guest boots/);
    await sleep(100);
    state = await stateOf(t, "day/web/vm");
  }
  assert.ok(Number(await inGuest(t, "day/web/vm", "cut -d. -f1 /proc/uptime")) < 60);
};

/** `x.ready "started"` asks nothing of the guest. */
export const tryStarted = async (t: Testbed, file: string): Promise<void> => {
  const specification = readFileSync(file, "utf8");
  writeFileSync(file, specification.replace("x.memory 128;", 'x.memory 128; x.ready "started";'));
  assert.match(await cells(t, "apply", file, "--yes"), /x\.ready: nothing → "started"[\s\S]*day is as declared/);
  assert.match(await cells(t, "restart", "day/web/vm"), /x\.restart: nothing → 1[\s\S]*incarnation 2/);
  const events = await cells(t, "events", "day/web/vm");
  assert.doesNotMatch(events.slice(events.lastIndexOf("starts at")), /its guest boots/);
  writeFileSync(file, specification);
  assert.match(await cells(t, "apply", file, "--yes"), /day is as declared/);
  await inGuest(t, "day/web/vm", "true");
};

/** Much more than a guest's agent takes or gives at once, both ways at the same time, and what people use it for. */
export const tryStreams = async (t: Testbed): Promise<void> => {
  const directory = join(dirname(t.configFile), "streams");
  const [sent, back, tree, copied] = ["sent", "back", "tree", "copied"].map((name) => join(directory, name));
  assert.ok(sent !== undefined && back !== undefined && tree !== undefined && copied !== undefined);
  for (const path of [directory, tree, copied]) mkdirSync(path);
  const bytes = randomBytes(4_000_001);
  writeFileSync(sent, bytes);
  const piped = async (script: string, ...args: readonly string[]): Promise<void> => {
    const parts = ["-c", `set -e; cells() { "$node" "$cli" "$@"; }; ${script}`, "sh", ...args];
    const environment = { ...environmentOf(t), node: process.execPath, cli };
    const { code, stderr } = await runCommand("sh", parts, { environment });
    assert.equal(code, 0, stderr);
  };
  await piped('cells exec -i day/web/vm -- cat <"$1" >"$2"', sent, back);
  assert.ok(readFileSync(back).equals(bytes), "what goes in comes out");
  for (const name of ["one", "two"]) writeFileSync(join(tree, name), randomBytes(700_000));
  await piped('tar c -C "$1" . | cells exec -i day/web/vm -- sh -c "mkdir /tmp/tree && tar x -C /tmp/tree"', tree);
  await piped('cells exec day/web/vm -- tar c -C /tmp/tree . | tar x -C "$1"', copied);
  for (const name of ["one", "two"])
    assert.ok(readFileSync(join(copied, name)).equals(readFileSync(join(tree, name))), name);
  // It wants no more of it, and is not asked to.
  await piped('test "$(cells exec -i day/web/vm -- head -c 3 <"$1" | wc -c)" = 3', sent);
};

/** One `x.movedFrom` on a group renames it, with the guest running; events have the new path from then on. */
export const tryRename = async (t: Testbed, file: string): Promise<void> => {
  const text = readFileSync(file, "utf8");
  const before = await stateOf(t, "day/web/vm");
  await inGuest(t, "day/web/vm", "echo kept >/tmp/kept");
  const from = new Date().toISOString();
  const following = live(t, "events", "day", "--follow", "--output", "json");
  // Nothing tells that it listens but what it hears.
  let hears = false;
  const heard = following
    .until((out) => out !== "")
    .then(() => {
      hears = true;
    });
  for (let extra = true; !hears; extra = !extra) {
    writeFileSync(file, extra ? text.replace(/}\s*$/, "  extra extends Subnet { x.size 8; }\n}\n") : text);
    await Promise.race([heard, cells(t, "apply", file, "--yes")]);
  }
  await heard;
  writeFileSync(file, text.replace("web extends {", 'front extends { x.movedFrom "day/web";'));
  const applied = await cells(t, "apply", file, "--yes");
  assert.match(applied, /day\/front\/vm +VM +is renamed\n +was day\/web\/vm/);
  assert.match(applied, /day is as declared/);
  await following.until((out) =>
    /"event":"element\/moved"[^\n]*day\/front\/vm|day\/front\/vm[^\n]*"element\/moved"/.test(out),
  );
  following.child.kill("SIGTERM");
  await following.code;
  const followed = following.said.out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as ServiceEvent);
  assert.ok(
    followed.every(({ time }) => time >= from),
    "following begins with now",
  );
  assert.equal((await stateOf(t, "day/front/vm")).incarnation, before.incarnation);
  assert.equal(await inGuest(t, "day/front/vm", "cat /tmp/kept"), "kept");
  assert.match(await cells(t, "events", "day", "--since", "1h"), /model\/accepted[\s\S]*element\/moved/);
};

/** Ctrl-C leaves an accepted change to itself and says so; the change comes to its end. */
export const tryInterrupt = async (t: Testbed, file: string): Promise<void> => {
  const text = readFileSync(file, "utf8");
  const second = `  second extends {
    boot extends VolumeCopy { x.image "<ref:/day/golden>"; }
    vm extends VM { x.memory 128; disk extends VolumeConnection { x.vm "<ref:..>"; x.volume "<ref:../../boot>"; x.bootOrder 0; } }
  }
}
`;
  writeFileSync(file, text.replace(/}\s*$/, second));
  const applying = live(t, "apply", file, "--yes");
  await applying.until((out) => /^. (waiting|working|ready) /m.test(out));
  applying.child.kill("SIGINT");
  assert.equal(await applying.code, 130);
  assert.match(
    applying.said.err,
    /The change was accepted and goes on without this command: `cells watch day` shows it.*`cells apply` of the text as it was/,
  );
  assert.match(await cells(t, "apply", file, "--yes"), /day is as declared/);
  assert.equal((await stateOf(t, "day/second/vm")).incarnation, 1, "what was begun went on");
};

/** An orderly end of the whole cloud is no crash of anybody; a crash is. */
export const tryDownAndUp = async (t: Testbed, file: string): Promise<void> => {
  assert.match(await cells(t, "stop", "day/second/vm"), /power off/);
  await inGuest(t, "day/front/vm", "echo kept >/root/kept; sync");
  const before = await stateOf(t, "day/front/vm");
  const since = new Date().toISOString();
  await t.down();
  await t.up();
  await settled(t, "day/front/vm", ({ phase }) => phase === "ready");
  assert.equal(await inGuest(t, "day/front/vm", "cat /root/kept"), "kept");
  const after = await stateOf(t, "day/front/vm");
  assert.deepEqual(
    [after.power, after.incarnation, after.lastEnd?.how, after.lastEnd?.reason],
    ["on", (before.incarnation ?? 0) + 1, "stopped", "its host was switched off"],
  );
  const off = await stateOf(t, "day/second/vm");
  assert.deepEqual([off.power, off.incarnation, off.phase], ["off", 1, "ready"]);
  for (const own of [["day"], []]) {
    const lines = (await cells(t, "events", ...own, "--since", since)).split("\n");
    const about = lines.filter((line) => line.includes("day/"));
    // It was renamed before.
    assert.match(about.join("\n"), /day\/front\/vm/);
    assert.doesNotMatch(about.join("\n"), /crash|failed|day\/web\//);
  }

  const kill = `for p in /proc/[0-9]*; do if tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep -q '^[^ ]*qemu-system.*${after.uid}'; then kill -9 \${p#/proc/}; fi; done`;
  await t.exec("h1", ["sh", "-c", kill]);
  await settled(t, "day/front/vm", ({ lastEnd, phase }) => lastEnd?.how === "crashed" && phase === "failed");
  assert.match(await cells(t, "events", "day", "--since", since), /crash|QEMU process ended/);
  assert.match(await cells(t, "start", "day/front/vm"), /power on/);
  assert.equal(await inGuest(t, "day/front/vm", "cat /root/kept"), "kept");
  // What `stop` wrote is no part of the file.
  assert.match(await cells(t, "apply", file, "--yes"), /day is as declared/);
};
