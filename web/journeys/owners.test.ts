import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { bundleMediaType, type InstallationStatus } from "../../model/api.ts";
import { groupOf } from "../../model/cell/tenants/dedication/dedication.ts";
import { dedicationElement } from "../../model/cell/tenants/dedication/written.ts";
import type { ModelSource } from "../../model/contract/versions.ts";
import { eventually } from "../../runtime/installation.testing.ts";
import { beginJourneys, dragUntil, type Journeys, likeGolden, makeCell, type Person } from "./browser.testing.ts";

let journeys: Journeys;
before(async () => {
  journeys = await beginJourneys({ hosts: 6, machines: 3 });
});
after(() => journeys?.end());
const enter = async (): Promise<Person> => {
  const person = await journeys.person();
  await person.signIn();
  await person.expect(/401/);
  return person;
};
const password = "a long enough password";
const enterAs = async (user: string): Promise<Person> => {
  const person = await journeys.person();
  const { page } = person;
  await page.goto(`${journeys.served.url}/ui/`);
  await page.getByRole("textbox", { name: "User" }).fill(user);
  await page.getByRole("textbox", { name: "Password" }).fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await person.expect(/401/);
  return person;
};
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const say = async (method: string, path: string, body: object): Promise<void> => {
  const { url, credential } = journeys.served;
  const headers = { authorization: `Bearer ${credential}`, "content-type": "application/json" };
  const answer = await fetch(`${url}${path}`, { method, headers, body: JSON.stringify(body) });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await answer.text()}`);
};

test("a domain, an account and its first user are made, and he signs in", async () => {
  const { page, end } = await enter();
  await page.keyboard.press("u");
  await page.getByRole("textbox", { name: "A new domain" }).fill("ROOT/acme");
  await button(page, "Make the domain").click();
  await page.getByRole("listitem").filter({ hasText: "ROOT/acme" }).first().waitFor();
  await page.getByRole("textbox", { name: "A new account" }).fill("ROOT/acme/dev");
  await button(page, "Make the account").click();
  await page.getByText("Add a user to ROOT/acme/dev").click();
  const own = page.getByRole("listitem").filter({ hasText: "Add a user to ROOT/acme/dev" });
  await own.getByRole("textbox", { name: "Name" }).fill("ann");
  await own.getByRole("combobox", { name: "Role" }).selectOption("account-admin");
  await own.getByRole("textbox", { name: "Password" }).fill(password);
  await own.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByText("ann@ROOT/acme", { exact: true }).waitFor();
  await end();
  const ann = await enterAs("ann@ROOT/acme");
  assert.equal(await ann.page.getByRole("link", { name: "Availability" }).count(), 0, "hosts are the operator's");
  await ann.end();
});

test("a tenant has whole hosts by his own names, and no real name of a host is in any answer", async () => {
  await makeCell(journeys.served, "den", "ROOT/acme/dev");
  const { page, end } = await enterAs("ann@ROOT/acme");
  const heard: string[] = [];
  page.on("response", (response) => {
    if (new URL(response.url()).pathname.startsWith("/pools"))
      void response.text().then(
        (text) => heard.push(text),
        () => undefined,
      );
  });
  await page.keyboard.press("p");
  await page.getByRole("combobox", { name: "In the cell" }).selectOption("den");
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("racks");
  await button(page, "Make it").click();
  await page.getByText("Add a host to den/racks").click();
  const pool = page.getByRole("listitem").filter({ hasText: "Add a host to den/racks" });
  await pool.getByRole("textbox", { name: "Its name here" }).fill("rack1");
  await pool.getByRole("combobox", { name: "Flavour" }).selectOption("large");
  await pool.getByRole("button", { name: "Add", exact: true }).click();
  await button(page, "Enable rack1").click();
  await button(page, "Disable rack1").waitFor();
  await page.getByText("the pool racks has hosts: rack1; take them out of it first").waitFor();
  await page.getByText("rack1 is enabled: disable it first").waitFor();
  assert.doesNotMatch((await page.locator("body").textContent()) ?? "", /\bh[1-6]\b/);
  await eventually("what was answered is here", () => heard.length > 2);
  for (const text of heard) assert.doesNotMatch(text, /\bh[1-6]\b/);
  await likeGolden(page, "pool-of-a-tenant");
  await button(page, "Disable rack1").click();
  await button(page, "Remove rack1").click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove", exact: true }).click();
  await page.getByText("It has no hosts.").waitFor();
  await button(page, "Delete den/racks").click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("There is no pool yet.").waitFor();
  await end();
});

test("a pool is used otherwise once the plan was seen: in the text that it stands in, comments and all, or beside it", async () => {
  const { url, credential } = journeys.served;
  const headers = { authorization: `Bearer ${credential}` };
  const text = '// Whole hosts.\nden extends Cell {\n  racks extends Pool { x.fill "pack"; } // ours\n}\n';
  const body = JSON.stringify({ main: "den.sf", files: { "den.sf": text } });
  const sent = { method: "PUT", headers: { ...headers, "content-type": bundleMediaType }, body };
  assert.ok((await fetch(`${url}/cells/den/model`, sent)).ok);
  const source = async (): Promise<string> =>
    ((await (await fetch(`${url}/cells/den/source`, { headers })).json()) as ModelSource).files["den.sf"] ?? "";
  const { page, expect, end } = await enterAs("ann@ROOT/acme");
  await page.keyboard.press("p");
  const asked = page.getByRole("group", { name: "Change den/racks?" });
  const form = page.getByRole("form", { name: "Use of den/racks" });
  const begin = () => page.getByText("How den/racks is used").click();
  await begin();
  assert.equal(await form.getByRole("button", { name: "Plan" }).isDisabled(), true, "nothing is another yet");
  await form.getByRole("combobox", { name: "Whose machines" }).selectOption("named");
  const accounts = form.getByRole("textbox", { name: "Accounts, by their paths" });
  await accounts.fill("ROOT//dev");
  await form.getByRole("button", { name: "Plan" }).click();
  await asked.getByText("It is refused: see beside the fields.").waitFor();
  await form.getByRole("alert").waitFor();
  assert.equal(await accounts.getAttribute("aria-invalid"), "true");
  await expect(/400/);
  await accounts.fill("ROOT/acme/dev");
  await form.getByRole("spinbutton", { name: "Virtual processors for each one" }).fill("4");
  await form.getByRole("button", { name: "Plan" }).click();
  await asked.getByText("It is written into den.sf, whose comments and everything else stay.").waitFor();
  await likeGolden(page, "use-of-a-pool");
  assert.equal(await source(), text, "nothing is written before");
  await asked.getByRole("button", { name: "Apply" }).click();
  await page
    .getByText("4 virtual processors for each one; fills one host before the next; for ROOT/acme/dev")
    .waitFor();
  assert.equal(await source(), text.replace('"pack"; }', '"pack"; x.cpuRatio 4; x.authorised ["ROOT/acme/dev"]; }'));
  // Somebody changes it beside the text, which would take that back: so the next change goes beside it as well.
  const ratio = { method: "PUT", headers: { ...headers, "content-type": "application/json" }, body: "50" };
  assert.ok((await fetch(`${url}/cells/den/model/den/racks/x.memoryPercent`, ratio)).ok);
  await page.getByText("50 % of the memory").waitFor();
  await begin();
  await form.getByRole("spinbutton", { name: "Virtual processors for each one" }).fill("");
  await form.getByRole("button", { name: "Plan" }).click();
  await asked.getByText("It changes the model beside the text: its text is of before").waitFor();
  await asked.getByRole("button", { name: "Apply" }).click();
  await page.getByText(/^50 % of the memory; fills one host/).waitFor();
  await end();
  await fetch(`${url}/cells/den/model/den/racks`, { method: "DELETE", headers });
});

test("the operator makes a flavour, changes it and takes it back, each once the plan was seen", async () => {
  const { page, letPass, end } = await enter();
  // No text of the root cell is kept here.
  letPass(/404/);
  await page.keyboard.press("p");
  const fresh = page.getByRole("form", { name: "A new flavour" });
  await page.getByText("A new flavour").click();
  await fresh.getByRole("textbox", { name: "Name" }).fill("large");
  await fresh.getByText("There is a flavour large already.").waitFor();
  assert.equal(await fresh.getByRole("button", { name: "Plan" }).isDisabled(), true);
  await fresh.getByRole("textbox", { name: "Name" }).fill("small");
  await fresh.getByRole("spinbutton", { name: "Units that it counts" }).fill("2");
  await fresh.getByRole("button", { name: "Plan" }).click();
  const apply = (of: string) => page.getByRole("group", { name: `${of}?` }).getByRole("button", { name: "Apply" });
  await page.getByRole("group", { name: "A new flavour?" }).getByText("root/flavors/small").waitFor();
  await apply("A new flavour").click();
  const small = page.getByRole("listitem").filter({ hasText: "Change small" });
  await small.getByText("2 units, 0 free").waitFor();
  await page.getByText("Change small", { exact: true }).click();
  await small.getByRole("spinbutton", { name: "Units that it counts" }).fill("3");
  await small.getByRole("button", { name: "Plan" }).click();
  await apply("Change small").click();
  await small.getByText("3 units, 0 free").waitFor();
  await page.getByText("Change small", { exact: true }).click();
  await small.getByRole("button", { name: "Take small back" }).click();
  await page.getByRole("group", { name: "Change small?" }).getByText("1 taken away").waitFor();
  await apply("Change small").click();
  await small.waitFor({ state: "detached" });
  await end();
});

test("what an account may have is limited once it was said what comes of it", async () => {
  const { page, end } = await enter();
  await page.keyboard.press("u");
  const form = page.getByRole("form", { name: "Limits of ROOT/acme/dev" });
  const asked = page.getByRole("group", { name: "Limit ROOT/acme/dev?" });
  const look = async (machines: string): Promise<void> => {
    await page.getByText("What ROOT/acme/dev may have").click();
    await form.getByRole("spinbutton", { name: "Most machines" }).fill(machines);
    await form.getByRole("button", { name: "What would come of it?" }).click();
  };
  await look("7");
  await asked.getByText("machines: 7 at most (not limited until now)").waitFor();
  await asked.getByText("cells quota set ROOT/acme/dev vms=7").waitFor();
  await asked.getByRole("button", { name: "Limit it so" }).click();
  await asked.waitFor({ state: "detached" });
  // What is so by now was asked anew, and the part that was open is another one.
  await page.locator('details[open] form[aria-label="Limits of ROOT/acme/dev"]').waitFor({ state: "detached" });
  await look("");
  await asked.getByText(/^machines: not limited any more \(7 until now\)/).waitFor();
  await asked.getByRole("button", { name: "Limit it so" }).click();
  await asked.waitFor({ state: "detached" });
  await end();
});

test("hosts are dedicated, what stands against it is said before, and what goes into it by itself", async () => {
  const { page, end } = await enter();
  await page.keyboard.press("d");
  const to = async (place: string, owner: string): Promise<void> => {
    await button(page, `Dedicate ${place}`).first().click();
    const group = page.getByRole("group", { name: `Dedicate ${place}`, exact: true });
    await group.getByRole("combobox", { name: "To", exact: true }).selectOption(owner);
  };
  const send = async (place: string): Promise<void> => {
    const group = page.getByRole("group", { name: `Dedicate ${place}`, exact: true });
    await group.getByRole("button", { name: `Dedicate ${place}`, exact: true }).click();
  };
  // The second zone has the last host, which nobody uses.
  await to("h6", "domain ROOT/acme");
  await page.getByText('x.placement.groups "DedicatedGrp-domain-acme"').waitFor();
  await likeGolden(page, "dedication");
  await send("h6");
  await button(page, "Release h6").waitFor();
  await to("south", "account ROOT/acme/dev");
  await page.getByText("h6 in south is dedicated to the domain ROOT/acme. Release h6 first.").waitFor();
  await button(page, "Leave it as it is").first().click();
  await to("south", "domain ROOT/acme");
  await page.getByText("Goes into it by itself: h6.").waitFor();
  await send("south");
  await button(page, "Release south").click();
  await page.getByRole("dialog").getByRole("button", { name: "Release", exact: true }).click();
  await page.getByText("Nothing is dedicated: every host is everybody's.").waitFor();
  await end();
});

test("a machine goes to another host, dragged there and by keys, and each alert is said before", async () => {
  const { page, end } = await enter();
  const { url, credential } = journeys.served;
  const read = async (path: string): Promise<string> =>
    (await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${credential}` } })).text();
  const hostOf = (vm: string): Promise<string> =>
    eventually(`${vm} runs`, async () => {
      const state = await read(`/cells/den/model/den/${vm}?state=true`);
      return /"phase":"ready"/.test(state) && (/"host":"(h\d)"/.exec(state)?.[1] ?? false);
    });
  const dev = { kind: "account", path: "ROOT/acme/dev" } as const;
  const place = (host: string) =>
    say("PUT", `/cells/root/model/root/dedications/${host}`, dedicationElement(host, dev));
  const free = [1, 2, 3, 4].map((at) => `h${at}`);
  await say("PUT", "/cells/den/model", { den: { "x.type": "Cell", a: { "x.type": "VM", "x.memory": 64 } } });
  const first = await hostOf("a");
  await place(first);
  const [second = "", third = ""] = free.filter((each) => each !== first);
  await page.keyboard.press("l");
  const card = (host: string) => page.getByRole("region", { name: host, exact: true });
  const machine = (vm: string) => page.getByRole("button", { name: new RegExp(`^den/${vm} `) });
  await eventually("it leaves a dedicated host", async () => /E1/.test(await read("/placement/try?vm=den/a")));
  const dialog = page.getByRole("dialog", { name: "Move den/a?" });
  const drag = () => dragUntil(dialog, machine("a"), card(second));
  await drag();
  await dialog.getByText("Alert E1: it leaves a host that is dedicated for one that is everybody's.").waitFor();
  await dialog.getByText(`den/a is stopped in order at ${first}, and starts at ${second} with its data.`).waitFor();
  await dialog.getByRole("button", { name: "Leave it as it is" }).click();
  assert.equal(await hostOf("a"), first, "nothing was done");
  await drag();
  await dialog.getByRole("button", { name: "Move", exact: true }).click();
  await page.getByText(`den/a runs at ${second}.`).waitFor();

  // By keys: a machine that asked for what was dedicated, and is not any more.
  await say("PUT", "/cells/den/model/den/b", {
    "x.type": "VM",
    "x.memory": 64,
    "x.placement.groups": groupOf(dev),
  });
  assert.equal(await hostOf("b"), first);
  // Others leave the host that is to be dedicated.
  const { hosts } = JSON.parse(await read("/status")) as InstallationStatus;
  for (const { cell, path } of hosts.find(({ host }) => host === third)?.machines ?? [])
    await say("POST", `/cells/${cell}/moves`, { vm: path, to: second });
  await place(third);
  const headers = { authorization: `Bearer ${credential}` };
  await fetch(`${url}/cells/root/model/root/dedications/${first}`, { method: "DELETE", headers });
  await eventually("another host is dedicated", async () => /E2/.test(await read("/placement/try?vm=den/b")));
  await machine("b").focus();
  await page.keyboard.press("Enter");
  await card(second)
    .getByText(/It would run on where it is/)
    .waitFor();
  await card(third).getByText("Alert E2: it goes to a host that is dedicated.").waitFor();
  await button(page, `Move den/b to ${third}`).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Move", exact: true }).focus();
  await page.keyboard.press("Enter");
  await page.getByText(`den/b runs at ${third}.`).waitFor();
  await fetch(`${url}/cells/root/model/root/dedications/${third}`, { method: "DELETE", headers });
  await end();
});

test("who is invited makes himself an account, is given another's cell, which is taken back, and has a key of his own", async () => {
  const { page, end } = await enter();
  await page.keyboard.press("u");
  await page.getByRole("textbox", { name: "A new domain" }).fill("ROOT/acme/sub");
  await button(page, "Make the domain").click();
  await page.getByRole("combobox", { name: "Invite to" }).selectOption("ROOT/acme/sub");
  await button(page, "Make a link").click();
  const link = (await page.getByText("/ui/#invitation=").textContent()) ?? "";
  const pat = await journeys.person();
  await pat.page.goto(link);
  await pat.page.getByRole("textbox", { name: "Name of your account" }).fill("pat");
  await pat.page.getByLabel("A password").fill(password);
  await button(pat.page, "Make my account").click();
  await pat.page.getByRole("heading", { name: "Overview" }).waitFor();
  await pat.expect(/401/);
  assert.ok(!pat.page.url().includes("invitation"), "it does not stay in the address");
  await pat.page.keyboard.press("c");
  await pat.page.getByText("0 cells.").waitFor();
  const late = await journeys.person();
  await late.page.goto(link);
  await late.page.getByRole("textbox", { name: "Name of your account" }).fill("eve");
  await late.page.getByLabel("A password").fill(password);
  await button(late.page, "Make my account").click();
  await late.page.getByRole("alert").waitFor();
  for (const _ of [1, 2]) await late.expect(/401/);
  await late.end();

  await page.reload();
  await page.getByRole("combobox", { name: "Cells of" }).selectOption("ROOT/acme/dev");
  await page.getByRole("combobox", { name: "Which" }).selectOption("den");
  await page.getByRole("textbox", { name: "To", exact: true }).fill("ROOT/acme/sub/pat");
  await page.getByText("cells delegation add ROOT/acme/dev --to ROOT/acme/sub/pat --role reader --cell den").waitFor();
  await button(page, "Give it").click();
  await pat.page.getByText("1 cell.").waitFor();
  await button(page, "Take back from ROOT/acme/sub/pat").click();
  await pat.page.getByText("0 cells.").waitFor();
  await end();

  await pat.page.keyboard.press("u");
  await pat.page.getByRole("textbox", { name: "What a new one is for" }).fill("backups");
  await button(pat.page, "Make a key").click();
  await pat.page.getByText("is shown here and nowhere else").waitFor();
  await pat.page.getByRole("button", { name: /^Disable the key/ }).click();
  await pat.page.getByRole("button", { name: /^Delete the key/ }).click();
  await pat.page.getByText("There is none.").waitFor();
  await pat.end();
});

test("a user is disabled and deleted, and a domain or an account only once all that goes with it is named", async () => {
  const { page, end } = await enter();
  await page.keyboard.press("u");
  await page.getByRole("textbox", { name: "A new account" }).fill("ROOT/acme/test");
  await button(page, "Make the account").click();
  await button(page, "Delete ROOT/acme/test").click();
  const asked = page.getByRole("group", { name: "Delete ROOT/acme/test?" });
  await asked.getByRole("button", { name: "Delete ROOT/acme/test", exact: true }).click();
  await button(page, "Delete ROOT/acme/test").first().waitFor({ state: "detached" });

  const word = (name: string) => page.getByRole("dialog").getByRole("button", { name, exact: true });
  await button(page, "Disable pat@ROOT/acme/sub").click();
  await word("Disable").click();
  await button(page, "Enable pat@ROOT/acme/sub").click();
  await button(page, "Disable pat@ROOT/acme/sub").waitFor();
  await button(page, "Delete pat@ROOT/acme/sub").click();
  await word("Delete").click();
  await button(page, "Delete pat@ROOT/acme/sub").waitFor({ state: "detached" });
  // A domain, with the account that is in it.
  await button(page, "Delete ROOT/acme/sub").click();
  const whole = page.getByRole("group", { name: "Delete ROOT/acme/sub?" });
  await whole
    .getByText(/ROOT\/acme\/sub\/pat/)
    .first()
    .waitFor();
  await whole.getByRole("button", { name: "Leave it as it is" }).click();
  await button(page, "Delete ROOT/acme/sub").click();
  await whole.getByRole("button", { name: /^Delete ROOT\/acme\/sub/ }).click();
  await button(page, "Delete ROOT/acme/sub").waitFor({ state: "detached" });
  await page.getByText("ROOT/acme/sub/pat", { exact: true }).first().waitFor({ state: "detached" });
  await end();
});
