import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { bundleMediaType } from "../../model/api.ts";
import { eventually } from "../../runtime/installation.testing.ts";
import { beginJourneys, type Journeys, likeGolden, type Person } from "./browser.testing.ts";

let journeys: Journeys;
before(async () => {
  journeys = await beginJourneys({ hosts: 3, machines: 6 });
});
after(() => journeys?.end());
const enter = async (): Promise<Person> => {
  const person = await journeys.person();
  await person.signIn();
  await person.expect(/401/);
  return person;
};
const go = async (page: Page, path: string): Promise<void> => {
  await page.goto(`${journeys.served.url}/ui/${path}`);
};
const button = (page: Page, name: string | RegExp) =>
  page.getByRole("button", { name, exact: typeof name === "string" });
const apply = async (page: Page): Promise<void> => {
  await button(page, "Plan").click();
  await button(page, "Apply").click();
  await page.getByText("All of it is ready.").waitFor();
};
const editor = (page: Page) => page.getByRole("textbox", { name: "Text of the specification" });

const net = "net extends Subnet { x.size 16; }";
const machine = (name: string): string =>
  `${name} extends VM { x.memory 64; }\n  ${name}Card extends VirtualInterface { x.vm "<ref:../${name}>"; x.subnet "<ref:../net>"; }`;
const tea = `// Comments are kept.\ntea extends Cell {\n  ${net}\n  ${machine("pot")}\n  ${machine("cup")}\n}\n`;

test("would it pass? No: the rule that is offered is planned, and then it passes", async () => {
  const { page, expect, end } = await enter();
  await go(page, "specification?cell=tea");
  await editor(page).fill(tea);
  await expect(/404/);
  await apply(page);
  await go(page, "network?cell=tea");
  const question = async (): Promise<void> => {
    await page.getByRole("combobox", { name: "From", exact: true }).selectOption("tea/cup");
    await page.getByRole("combobox", { name: "To", exact: true }).selectOption("tea/pot");
    await page.getByRole("spinbutton", { name: "Port" }).fill("8080");
    await button(page, "Ask").click();
  };
  await question();
  await page.getByText("tcp to port 8080 from tea/cup to tea/pot does not pass.").waitFor();
  await likeGolden(page, "would-it-pass");
  await button(page, "Write a rule that lets it pass").click();
  await editor(page).waitFor();
  const written = await editor(page).inputValue();
  assert.ok(written.startsWith("// Comments are kept.\n"), written);
  assert.match(written, /cupToPotAt8080 extends NetworkRule/);
  await button(page, "Plan").click();
  await page.getByText("1 made").waitFor();
  await button(page, "Apply").click();
  await page.getByText("All of it is ready.").waitFor();
  await go(page, "network?cell=tea");
  await question();
  await page.getByText("from tea/cup to tea/pot passes.").waitFor();
  await end();
});

test("what was written stays over another page and a reload, until it is thrown away", async () => {
  const { page, end } = await enter();
  await go(page, "specification?cell=tea");
  await editor(page).fill("tea extends Cell { not finished");
  await page.keyboard.press("Tab");
  await page.getByRole("link", { name: "Machines", exact: true }).click();
  await page.getByRole("heading", { name: "Machines" }).waitFor();
  await go(page, "specification?cell=tea");
  await page.getByText("This is what you had written and not applied").waitFor();
  assert.equal(await editor(page).inputValue(), "tea extends Cell { not finished");
  await button(page, "Throw it away").click();
  await eventually("the present text is there", async () =>
    (await editor(page).inputValue()).includes("cupToPotAt8080"),
  );
  await end();
});

test("a page that is older than the gateway says so where a file of it is gone, and keeps what was written", async () => {
  const { page, letPass, end } = await enter();
  letPass(/404/);
  letPass(/dynamically imported module/);
  await go(page, "specification?cell=tea");
  const text = "tea extends Cell { written before the upgrade";
  await editor(page).fill(text);
  await page.keyboard.press("Tab");
  // What a gateway of the next version answers when it is asked for a file of this one.
  const old = /\/ui\/part-[^/]*\.js$/;
  await page.route(old, (route) => route.continue({ url: `${journeys.served.url}/ui/part-00000000.js` }));
  await page.getByRole("link", { name: "Pools", exact: true }).click();
  await page.getByText("This page cannot be shown").waitFor();
  await page.getByText("The cloud may have another page by now. What you have written is kept.").waitFor();
  await page.unroute(old);
  await button(page, "Load it again").click();
  await page.getByRole("heading", { name: "Pools", level: 1 }).waitFor();
  await go(page, "specification?cell=tea");
  await page.getByText("This is what you had written and not applied").waitFor();
  assert.equal(await editor(page).inputValue(), text);
  await button(page, "Throw it away").click();
  await end();
});

test("an earlier version is compared with the present one and returned to by its plan", async () => {
  const { page, end } = await enter();
  await go(page, "versions?cell=tea");
  const first = page.getByRole("listitem").filter({ hasText: "version 1" });
  await first.getByRole("button", { name: /^Compare/ }).click();
  await page
    .getByRole("region", { name: "From version 1 to 2" })
    .getByText(/\+.*cupToPotAt8080/)
    .waitFor();
  await page.getByText("version 2 is the present one").waitFor();
  await first.getByRole("button", { name: "Go back to it version 1" }).click();
  await editor(page).waitFor();
  assert.equal(await editor(page).inputValue(), tea);
  await button(page, "Plan").click();
  await page.getByText("1 taken away").waitFor();
  await button(page, "Apply").click();
  await page.getByText("Version 3 is applied.").waitFor();
  await end();
});

test("a machine is added by a form: the text is kept as it was written, and its plan is that of the command line", async () => {
  const { page, end } = await enter();
  await go(page, "specification?cell=tea");
  await editor(page).waitFor();
  const before = await editor(page).inputValue();
  await page.getByText("Add a machine").click();
  const field = (name: string) => page.getByRole("textbox", { name, exact: true });
  const number = (name: string) => page.getByRole("spinbutton", { name, exact: true });
  await field("Name").fill("pot");
  await button(page, "Write it into the text").click();
  await page.getByText("pot stands in the text already: give the machine another name").waitFor();
  assert.equal(await editor(page).inputValue(), before);
  await field("Name").fill("jug");
  await number("Memory in MiB").fill("96");
  await page.getByRole("combobox", { name: "In the subnet" }).selectOption("tea/net");
  await button(page, "Write it into the text").click();
  await eventually("it is written", async () => (await editor(page).inputValue()) !== before);
  const written = await editor(page).inputValue();
  assert.equal(
    written
      .split("\n")
      .filter((line) => !line.includes("jug"))
      .join("\n"),
    before,
    "all else is as it was, with its comments",
  );
  const planned = page.waitForResponse((response) => response.url().includes("dryRun=true"));
  await button(page, "Plan").click();
  const shown = await (await planned).text();
  await page.getByText("2 made").waitFor();
  const { url, credential } = journeys.served;
  const sent = await fetch(`${url}/cells/tea/model?dryRun=true`, {
    method: "PUT",
    headers: { authorization: `Bearer ${credential}`, "content-type": bundleMediaType },
    body: JSON.stringify({ main: "tea.sf", files: { "tea.sf": written } }),
  });
  assert.equal(shown, await sent.text(), "as the command line is told it");
  await button(page, "Apply").click();
  await page.getByText("All of it is ready.").waitFor();
  await go(page, "machines?cell=tea");
  await button(page, "tea/jug").waitFor();
  await end();
});

test("a volume and a subnet are written into the text by forms, planned and made", async () => {
  const { page, end } = await enter();
  await go(page, "specification?cell=tea");
  await editor(page).waitFor();
  const before = await editor(page).inputValue();
  const form = (what: string) => page.getByRole("form", { name: `A ${what}` });
  const write = (what: string) => form(what).getByRole("button", { name: "Write it into the text" }).click();
  await page.getByText("Add a volume").click();
  await form("volume").getByRole("textbox", { name: "Name" }).fill("net");
  await write("volume");
  await form("volume").getByText("net stands in the text already: give the volume another name").waitFor();
  await form("volume").getByRole("textbox", { name: "Name" }).fill("leaves");
  await form("volume").getByRole("spinbutton", { name: "Size in MiB" }).fill("32");
  await form("volume").getByRole("combobox", { name: "Disk of" }).selectOption("tea/jug");
  await write("volume");
  await page.getByText("Add a subnet").click();
  await form("subnet").getByRole("textbox", { name: "Name" }).fill("back");
  await write("subnet");
  await eventually("both are written", async () => /back extends Subnet/.test(await editor(page).inputValue()));
  const others = (await editor(page).inputValue()).split("\n").filter((line) => !/leaves|back/.test(line));
  assert.equal(others.join("\n"), before, "all else is as it was, with its comments");
  await button(page, "Plan").click();
  await page.getByText("3 made").waitFor();
  await button(page, "Apply").click();
  await page.getByText("All of it is ready.").waitFor();
  // The volume goes, with its data, only once somebody has said so.
  const all = (await editor(page).inputValue()).split("\n");
  await editor(page).fill(all.filter((line) => !line.includes("leaves")).join("\n"));
  await button(page, "Plan").click();
  await page.getByText("2 taken away").waitFor();
  await page.getByText("Say first that the data may be lost.").waitFor();
  assert.equal(await button(page, "Apply").isDisabled(), true);
  await page.getByRole("checkbox", { name: "All data of tea/leaves is lost" }).check();
  await button(page, "Apply").click();
  await page.getByText("All of it is ready.").waitFor();
  await end();
});

test("another cell that is named is a ghost with whose consent is missing, until both agree", async () => {
  const { page, end } = await enter();
  const { url, credential } = journeys.served;
  const put = async (path: string, element: object | boolean | string): Promise<void> => {
    const headers = { authorization: `Bearer ${credential}`, "content-type": "application/json" };
    const sent = await fetch(`${url}/cells/${path}`, { method: "PUT", headers, body: JSON.stringify(element) });
    assert.ok(sent.ok, await sent.text());
  };
  const rule = (from: string, to: string) => ({
    "x.type": "NetworkRule",
    "x.address1": `<ref:${from}>`,
    "x.address2": `<ref:${to}>`,
    "x.protocol": "tcp",
    "x.port2": 8080,
    "x.direction": "1to2",
  });
  await go(page, "specification?cell=tea");
  await editor(page).waitFor();
  const beyond = [
    "chest extends Volume { x.size 64; }",
    'chestDisk extends VolumeConnection { x.vm "<ref:../jug>"; x.volume "<ref:../chest>"; }',
    'lend extends VolumeGrant { x.volume "<ref:../chest>"; x.cell "<ref://bank.cells.internal/>"; x.grant "copy"; }',
    'far extends NetworkRule { x.address1 "<ref:../cup>"; x.address2 "<ref://bank.cells.internal/bank/web1>"; x.protocol "tcp"; x.port2 8080; x.direction "1to2"; }',
  ];
  const now = await editor(page).inputValue();
  await editor(page).fill(`${now.trimEnd().slice(0, -1)}  ${beyond.join("\n  ")}\n}\n`);
  await button(page, "Plan").click();
  await button(page, "Apply").click();
  await page.getByText("Version", { exact: false }).getByText("is applied").waitFor();
  await go(page, "network?cell=tea");
  const ghost = page.getByRole("region", { name: "Other cells" }).getByRole("listitem");
  await ghost.getByText("bank.cells.internal: its consent is missing").waitFor();
  await page.getByText("What would do: in the cell bank.cells.internal, let there be an element bank/web1").waitFor();
  await button(page, /^Grant tea\/lend: may copy, from tea\/chest to bank\.cells\.internal$/).click();
  await page.getByRole("region", { name: "Grant tea/lend" }).waitFor();
  await page.getByRole("region", { name: "Links" }).getByText("tea/chestDisk ✓ ready").waitFor();
  const placeOf = () => button(page, "Machine tea/jug").boundingBox();
  const before = await placeOf();
  await likeGolden(page, "ghosts");
  await page.getByRole("checkbox", { name: "with volumes" }).uncheck();
  await button(page, /^Grant/).waitFor({ state: "detached" });
  assert.deepEqual(await placeOf(), before, "nothing else moves");
  await page.getByRole("checkbox", { name: "with volumes" }).check();
  // What is said in both cells is seen without a click.
  await put("bank/model/bank/web1/x.public", true);
  await ghost.getByText("bank.cells.internal: its consent and ours are missing").waitFor();
  await put("tea/model/tea/cup/x.public", true);
  await ghost.getByText("bank.cells.internal: its consent is missing").waitFor();
  await put("bank/model/bank/near", rule("//tea.cells.internal/tea/cup", "/bank/web1"));
  await ghost.getByText("bank.cells.internal: both cells agree").waitFor();
  // Which cell a domain is of, the name of a card says.
  await put("tea/model/tea/jugCard/x.vifName", "jug");
  await ghost.getByRole("link", { name: "its network" }).click();
  await ghost.getByText("tea.cells.internal: both cells agree").waitFor();
  await end();
});

test("a machine says why it is so and what it is made of, and is stopped and started once the plan was seen", async () => {
  const { page, end } = await enter();
  await go(page, "machines?cell=tea");
  await button(page, "tea/pot").click();
  const pot = page.getByRole("region", { name: "tea/pot", exact: true });
  const card = pot.getByRole("list", { name: "Cards" }).getByRole("listitem");
  await card.filter({ hasText: /^tea\/potCard of tea\/net 10\.[\d.]+/ }).waitFor();
  await pot.getByText("It has no disk.").waitFor();
  await pot.getByText("What tea/pot rests on").click();
  await pot.getByRole("listitem").filter({ hasText: "✓" }).first().waitFor();
  const group = (name: string) => page.getByRole("group", { name: `${name} tea/pot?` });
  const order = async (name: string): Promise<void> => {
    await button(page, `${name} tea/pot`).click();
    await group(name).getByText(`cells ${name.toLowerCase()} tea/pot`).waitFor();
    await group(name)
      .getByText(/^x\.desiredState: /)
      .waitFor();
  };
  await order("Stop");
  await group("Stop").getByRole("button", { name: "Leave it as it is" }).click();
  await pot.getByText("tea/pot is to run already").waitFor();
  await order("Stop");
  await group("Stop").getByRole("button", { name: "Stop it" }).click();
  await pot.getByText("tea/pot is to be off already").waitFor();
  await order("Start");
  await group("Start").getByRole("button", { name: "Start it" }).click();
  await pot.getByText("tea/pot is to run already").waitFor();
  await pot.getByText(/Incarnation 2, at h\d/).waitFor();
  await end();
});

test("a cell is deleted only once what goes with it is named", async () => {
  const { page, end } = await enter();
  await go(page, "cells");
  const shop = page.getByRole("listitem").filter({ has: button(page, "Delete shop") });
  await button(page, "Delete root").waitFor();
  assert.equal(await button(page, "Delete root").isDisabled(), true);
  await page.getByText("the root cell is the cloud itself, and is not deleted").waitFor();
  await shop.waitFor();
  await button(page, "Delete shop").click();
  await button(page, "What would go?").click();
  const asked = page.getByRole("group", { name: "Delete shop?" });
  const last = asked.getByRole("button", { name: "Delete shop", exact: true });
  await last.waitFor();
  assert.equal(await last.isDisabled(), true, "data is lost, and nobody has said that it may be");
  const lost = asked.getByRole("checkbox");
  assert.ok((await lost.count()) > 0);
  for (const each of await lost.all()) await each.check();
  await last.click();
  await page.getByText("shop is being deleted").waitFor();
  await button(page, "Delete shop").waitFor({ state: "detached" });
  await end();
});
