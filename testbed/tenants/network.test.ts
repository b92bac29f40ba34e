import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { ConnectionAnswer } from "../../model/api.ts";
import { type Testbed, withTestbed } from "../harness.ts";
import { cells, stateOf, until } from "../lab.testing.ts";
import { outAndIn } from "./out-and-in.testing.ts";
import { carryOut } from "./pages.testing.ts";
import { execIn } from "./questions.testing.ts";

/**
 * One testbed for all that leaves a cell, gets in, and goes to many, with real guests: the pages about it are carried out as their reader
 * would, a server is reached from outside, a small VM leads others there, and guests join groups as their kernels do (IGMP).
 */
const outAndInPage = "docs/network/out-and-in.md";
const toManyPage = "docs/network/to-many.md";
const example = readFileSync(new URL("../../examples/to-many.sf", import.meta.url), "utf8");
const group = "239.192.0.7:5353";
const skip = process.getuid?.() === 0 ? false : "needs root, for namespaces";

type Singer = "left" | "right";
const inSinger = async (t: Testbed, singer: Singer | "lead", script: string): Promise<string> =>
  (await execIn(t, `choir/${singer}/vm`, ["sh", "-c", script])).stdout;
const sing = (t: Testbed, word: string): Promise<string> =>
  inSinger(t, "lead", `echo ${word} | socat -u - UDP4-DATAGRAM:${group}`);
const heard = (t: Testbed, singer: Singer, file = "heard"): Promise<string> => inSinger(t, singer, `cat /tmp/${file}`);
const listen = (t: Testbed, singer: Singer, file: string): Promise<string> => {
  const from = "UDP4-RECV:5353,reuseaddr,ip-add-membership=239.192.0.7:eth0";
  // Who listens there without having joined has the port.
  return inSinger(
    t,
    singer,
    `killall socat; socat -u ${from} OPEN:/tmp/${file},creat,append >/dev/null 2>&1 </dev/null &`,
  );
};
/** What the tables of the sender's host say; empty while nobody answers. */
const who = async (t: Testbed): Promise<string> => {
  const { stdout } = await t.cells(["why", `choir/lead/vm -> ${group}/udp`, "--output", "json"]);
  const checks = stdout === "" ? [] : ((JSON.parse(stdout) as Partial<ConnectionAnswer>).checks ?? []);
  return checks.map(({ detail }) => detail).join("\n");
};
/** Sings until the word has come: who has just joined is not known everywhere yet. */
const untilHeard = (t: Testbed, singer: Singer, file: string, word: string): Promise<string> =>
  until(
    `${singer} hears ${word}`,
    async () => {
      await sing(t, word);
      await pause(200);
      return heard(t, singer, file);
    },
    (text) => text.includes(word),
  );
/** `left` and nobody else may be sent to. */
const closeRight = async (t: Testbed): Promise<void> => {
  const file = join(dirname(t.configFile), "choir.sf");
  writeFileSync(file, example.replace('x.address2 "<ref:/choir/net>"', 'x.address2 "<ref:/choir/left/card>"'));
  await cells(t, "apply", file, "--yes");
};

/** Where the page of groups has been: `left` has joined. */
async function choirIsJoined(t: Testbed): Promise<void> {
  await listen(t, "right", "joined");
  await untilHeard(t, "right", "joined", "fa");
  assert.match(await heard(t, "left"), /fa/, "both are members");

  await closeRight(t);
  await sing(t, "so");
  await until(
    "left hears what right may not",
    () => heard(t, "left"),
    (text) => text.includes("so"),
  );
  assert.doesNotMatch(await heard(t, "right", "joined"), /so/, "who has joined and has no rule gets nothing");

  for (const host of ["h1", "h2"]) await t.kill(host);
  // A membership outlives the process that asks for it; by whom the guest is told to sing has to come back.
  await untilHeard(t, "left", "heard", "la");
  const addressOf = async (singer: Singer): Promise<string> =>
    (await stateOf(t, `choir/${singer}/card`))?.address ?? assert.fail(`${singer} has no address`);
  const [left, right] = [await addressOf("left"), await addressOf("right")];
  await until(
    "who gets a copy is told, and who does not",
    () => who(t),
    (text) => text.includes(`a copy goes to ${left} `) && text.includes(`no rule lets it reach ${right}`),
  );
  await inSinger(t, "left", "killall socat");
  await until(
    "who has left the group is no member",
    () => who(t),
    (text) => text.includes("nobody gets a copy") && text.includes(`no rule lets it reach ${right}`),
  );
}

test("out, in and to many: real guests, packets from outside, and groups that guests join", { skip }, () =>
  withTestbed({ hosts: 2, servers: 1 }, async (t) => {
    await carryOut(t, outAndInPage, ["web", "team"], 7);
    await outAndIn(t);
    await carryOut(t, toManyPage, ["choir"], 7);
    await choirIsJoined(t);
  }),
);
