import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { eventually } from "../../runtime/installation.testing.ts";
import { beginJourneys, type Journeys, type Person } from "./browser.testing.ts";

/** The machine behind every screen: a real QEMU, whose boot sector writes each key that it reads to the serial port, by itself and nowhere else. */
const echo = [0x31, 0xc0, 0xcd, 0x16, 0xba, 0xf8, 0x03, 0xee, 0xeb, 0xf6];

let journeys: Journeys;
let directory = "";
let typed = "";
let qemu: ReturnType<typeof spawn> | null = null;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "cells-screen-"));
  const sector = Buffer.alloc(1024 * 1024);
  Buffer.from(echo).copy(sector);
  sector.writeUInt16LE(0xaa55, 510);
  await writeFile(join(directory, "disk"), sector);
  const socket = join(directory, "vnc");
  qemu = spawn(
    "qemu-system-x86_64",
    [
      "-nodefaults",
      "-no-user-config",
      "-display",
      "none",
      "-m",
      "16",
      "-accel",
      "tcg",
      "-device",
      "VGA",
      "-vnc",
      `unix:${socket},share=ignore`,
      "-serial",
      "stdio",
      "-drive",
      `file=${join(directory, "disk")},format=raw,if=ide`,
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  qemu.stdout?.on("data", (bytes: Buffer) => {
    typed += bytes.toString("latin1");
  });
  await eventually("its screen is there", () => existsSync(socket));
  journeys = await beginJourneys({ hosts: 2, machines: 4, screens: () => connect(socket) });
});
after(async () => {
  await journeys?.end();
  if (qemu !== null && qemu.exitCode === null) {
    qemu.kill("SIGKILL");
    await once(qemu, "exit");
  }
  await rm(directory, { recursive: true, force: true });
});
const enter = async (): Promise<Person> => {
  const person = await journeys.person();
  await person.signIn();
  await person.expect(/401/);
  return person;
};
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const choose = async (page: Page, vm: string): Promise<void> => {
  await page.goto(`${journeys.served.url}/ui/machines?cell=${vm.split("/")[0]}`);
  await button(page, vm).click();
};
const apply = async ({ page }: Person, written: string): Promise<void> => {
  await page.goto(`${journeys.served.url}/ui/specification?cell=tea`);
  await page.getByRole("textbox", { name: "Text of the specification" }).fill(written);
  await button(page, "Plan").click();
  await button(page, "Apply").click();
  await page.getByText("All of it is ready.").waitFor();
};
const text =
  'tea extends Cell {\n  pot extends VM { x.memory 64; }\n  screen extends VM { x.memory 64; x.display "vga"; }\n}\n';

test("a console in the page: two people type and read, past output is seen, and it follows the VM to its next incarnation", async () => {
  const one = await enter();
  await apply(one, text);
  await one.expect(/404/);

  await choose(one.page, "tea/pot");
  // Who types before the connection is there has typed all the same.
  let connect = (): void => undefined;
  const typed = new Promise<void>((done) => {
    connect = done;
  });
  await one.page.route("**/cells/tea/sessions", async (route) => {
    await typed;
    await route.continue();
  });
  await button(one.page, "Console tea/pot").click();
  const screen = (page: Page) => page.getByRole("region", { name: "Console of tea/pot" });
  const reads = (page: Page, what: string | RegExp): Promise<unknown> =>
    eventually(`the console says ${what}`, async () => {
      const all = ((await screen(page).locator(".xterm-rows").textContent()) ?? "").replaceAll("\u00a0", " ");
      return typeof what === "string" ? all.includes(what) : what.test(all);
    });
  await screen(one.page).click();
  await one.page.keyboard.type("hello");
  connect();
  await one.page.keyboard.press("Enter");
  await reads(one.page, "This is a simulated guest.");
  await reads(one.page, "read: hello");

  const two = await enter();
  await choose(two.page, "tea/pot");
  await button(two.page, "Console tea/pot").click();
  await reads(two.page, "read: hello");
  await reads(one.page, "2 are at it");
  await screen(two.page).click();
  await two.page.keyboard.type("me too");
  await two.page.keyboard.press("Enter");
  await reads(one.page, "read: me too");
  const search = one.page.getByRole("searchbox", { name: "Search what it said" });
  await search.fill("READ: ");
  await search.press("Enter");
  await one.page.getByText("1 of 2 lines: read: me too").waitFor();
  await search.press("Enter");
  await one.page.getByText("2 of 2 lines: read: hello").waitFor();
  await search.fill("no such words");
  await search.press("Enter");
  await one.page.getByText("Nothing that is kept here has it.").waitFor();
  await apply(two, text.replace("pot extends VM { x.memory 64;", "pot extends VM { x.memory 64; x.restart 1;"));
  await two.end();
  await reads(one.page, /incarnation 2; nobody else is at it/);
  await screen(one.page).click();
  await one.page.keyboard.type("again");
  await one.page.keyboard.press("Enter");
  await reads(one.page, /pot:2# again.*read: again/);
  // What was said before is still there to be read, of the one that has ended and of none that never was.
  await one.page.getByText("What tea/pot said before it ended").click();
  const number = one.page.getByRole("spinbutton", { name: "Incarnation" });
  await number.fill("1");
  await button(one.page, "Read it").click();
  const former = one.page.getByRole("region", { name: "Last words of incarnation 1 of tea/pot" });
  await former.getByText(/read: hello\s[\s\S]*read: me too/).waitFor();
  await number.fill("9");
  await button(one.page, "Read it").click();
  await one.page.getByText("tea/pot has had no incarnation 9 yet: the newest is 2").waitFor();
  await one.expect(/404/);
  // While it was off it was asked for, once or a few times.
  one.letPass(/409/);
  await one.end();
});

test("a screen in the page: two viewers see and type, and neither ends the other; a VM without one says how to have it", async () => {
  const [one, two] = [await enter(), await enter()];
  for (const { page } of [one, two]) {
    await choose(page, "tea/screen");
    await button(page, "Display tea/screen").click();
    await page.getByText("Connected.").waitFor();
  }
  for (const [{ page }, key] of [
    [one, "q"],
    [two, "z"],
    [one, "x"],
  ] as const) {
    const canvas = page.getByRole("region", { name: "Display of tea/screen" }).locator("canvas");
    await canvas.click();
    await eventually(`the guest reads ${key}`, async () => {
      await page.keyboard.press(key);
      return typed.includes(key);
    });
  }
  const paste = one.page.getByRole("textbox", { name: "Paste here what is to be typed at tea/screen" });
  // More than QEMU keeps of keys that wait, and signs that stand above others. A key of before may come among them.
  const pasted = 'Say "<a>: 1|2 ~{b}_?!" '.repeat(9);
  await paste.fill(`${pasted}é`);
  await one.page.getByText("No key of a US keyboard types é: left out.").waitFor();
  await button(one.page, "Type it").click();
  await eventually("the guest reads what was pasted", () => typed.replace(/[qzx]/g, "").includes(pasted));
  await eventually("nothing is left of it", async () => (await paste.inputValue()) === "");
  // Nobody waits for what he does not want typed any more.
  await paste.fill("<b>\u001b[2J".repeat(1200));
  await button(one.page, "Type it").click();
  await one.page.getByText(/^\d+ characters are left\./).waitFor();
  await button(one.page, "Stop").click();
  assert.ok(await paste.isEditable());
  assert.equal(await one.page.locator("b").count(), 0, "markup is text");
  await choose(one.page, "tea/pot");
  await button(one.page, "Display tea/pot").click();
  await one.page.getByText('tea/pot has no display: `x.display "vga"` in it gives it one').waitFor();
  await one.expect(/409/);
  one.letPass(/409/);
  await button(one.page, "Leave it").click();
  await one.end();
  await two.end();
});
