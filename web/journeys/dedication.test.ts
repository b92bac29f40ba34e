import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { type Owner, ownerIn } from "../../model/cell/tenants/dedication/dedication.ts";
import { dedicationElement } from "../../model/cell/tenants/dedication/written.ts";
import { eventually } from "../../runtime/installation.testing.ts";
import { beginJourneys, dragUntil, type Journeys, makeCell, type Person } from "./browser.testing.ts";

/** Five hosts in the zone north, three in the zone south, and nobody's machines but those of `den`, which is `ROOT/acme/dev`'s. */
let journeys: Journeys;
const password = "a long enough password";
const dev = ownerIn("ROOT/acme", "dev");
const acme = ownerIn("ROOT/acme", undefined);
before(async () => {
  journeys = await beginJourneys({ hosts: 8, machines: 0 });
  await say("POST", "/domains", { path: "ROOT/acme" });
  for (const account of ["ROOT/acme/dev", "ROOT/acme/gold"]) await say("POST", "/accounts", { path: account });
  await say("POST", "/users", { account: "ROOT/acme/dev", name: "ann", role: "account-admin", password });
  await eventually("the places are there", async () => (await ask("GET", "/cells/root/model")).includes('"south"'));
  await makeCell(journeys.served, "den", "ROOT/acme/dev");
});
after(() => journeys?.end());
async function ask(method: string, path: string, body?: object): Promise<string> {
  const { url, credential } = journeys.served;
  const headers = { authorization: `Bearer ${credential}`, "content-type": "application/json" };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  return (await fetch(`${url}${path}`, { method, headers, ...sent })).text();
}
async function say(method: string, path: string, body?: object): Promise<void> {
  const answer = await ask(method, path, body);
  assert.doesNotMatch(answer, /^\{"(?:code|error)"/, `${method} ${path}: ${answer}`);
}
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const enter = async (): Promise<Person> => {
  const person = await journeys.person();
  await person.signIn();
  await person.expect(/401/);
  return person;
};
const enterAs = async (user: string): Promise<Person> => {
  const person = await journeys.person();
  const { page } = person;
  await page.goto(`${journeys.served.url}/ui/`);
  await page.getByRole("textbox", { name: "User" }).fill(user);
  await page.getByRole("textbox", { name: "Password" }).fill(password);
  await button(page, "Sign in").click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await person.expect(/401/);
  return person;
};
const stateOf = (vm: string): Promise<string> => ask("GET", `/cells/den/model/den/${vm}?state=true`);
const hostOf = (vm: string): Promise<string> =>
  eventually(`${vm} runs`, async () => {
    const state = await stateOf(vm);
    return /"phase":"ready"/.test(state) && (/"host":"(h\d)"/.exec(state)?.[1] ?? false);
  });

test("a zone goes over three dedicated hosts once nothing stands against it, and its machines have a group that nobody changes", async () => {
  const { page, end } = await enter();
  await page.keyboard.press("d");
  const group = (place: string) => page.getByRole("group", { name: `Dedicate ${place}`, exact: true });
  const to = async (place: string, owner: string): Promise<void> => {
    await button(page, `Dedicate ${place}`).first().click();
    await group(place).getByRole("combobox", { name: "To", exact: true }).selectOption(owner);
  };
  const send = (place: string): Promise<void> => button(page, `Dedicate ${place}`).last().click();
  const release = async (place: string): Promise<void> => {
    await button(page, `Release ${place}`).click();
    await page.getByRole("dialog").getByRole("button", { name: "Release", exact: true }).click();
  };
  for (const [place, owner] of [
    ["h6", "domain ROOT/acme"],
    ["h7", "domain ROOT/acme"],
    ["h8", "account ROOT/acme/gold"],
  ] as const) {
    await to(place, owner);
    await send(place);
    await button(page, `Release ${place}`).waitFor();
  }
  await page.getByText("3 places are dedicated.").waitFor();
  // An account's goes over nobody else's.
  await to("south", "account ROOT/acme/gold");
  await group("south").getByText("h6 in south is dedicated to the domain ROOT/acme. Release h6 first.").waitFor();
  assert.ok(await button(page, "Dedicate south").last().isDisabled());
  // A domain's goes over what is within it, and what was its own goes into it.
  await group("south").getByRole("combobox", { name: "To", exact: true }).selectOption("domain ROOT/acme");
  await group("south").getByText("Goes into it by itself: h6, h7.").waitFor();
  await send("south");
  await button(page, "Release south").waitFor();
  await page.getByText("2 places are dedicated.").waitFor();
  await button(page, "Release h8").waitFor();

  // A zone of another account's is offered to no machine of this one's, whoever writes it.
  await to("north", "account ROOT/acme/gold");
  await send("north");
  await button(page, "Release north").waitFor();
  const open = async (at: Page) => {
    await at.goto(`${journeys.served.url}/ui/specification?cell=den`);
    await at.getByText("Add a machine").click();
    const form = at.getByRole("form", { name: "A machine" });
    const zones = form.getByRole("combobox", { name: "In the zone" }).getByRole("option");
    await zones.first().waitFor({ state: "attached" });
    assert.deepEqual(await zones.allTextContents(), ["any", "south"]);
    return form;
  };
  await open(page);
  await page.goto(`${journeys.served.url}/ui/dedication`);

  const ann = await enterAs("ann@ROOT/acme");
  const form = await open(ann.page);
  const asked = form.getByRole("textbox", { name: "Affinity group" });
  await form.getByRole("textbox", { name: "Name" }).fill("inside");
  await asked.fill("replicas");
  await form.getByRole("combobox", { name: "In the zone" }).selectOption("south");
  assert.equal(await asked.inputValue(), "DedicatedGrp-domain-acme");
  assert.ok(!(await asked.isEditable()), "nobody changes it");
  await form.getByText("south is dedicated to the domain ROOT/acme").waitFor();
  await form.getByRole("combobox", { name: "In the zone" }).selectOption("");
  assert.equal(await asked.inputValue(), "replicas", "what was written before is there again");
  await form.getByRole("combobox", { name: "In the zone" }).selectOption("south");
  await form.getByRole("button", { name: "Write it into the text" }).click();
  const text = ann.page.getByRole("textbox", { name: "Text of the specification" });
  assert.match(await text.inputValue(), /x\.placement\.zone"?:? "south"[\s\S]*DedicatedGrp-domain-acme/);
  await button(ann.page, "Plan").click();
  await button(ann.page, "Apply").click();
  await ann.page.getByText("All of it is ready.").waitFor();
  assert.equal(await hostOf("inside"), "h6", "the other two are of other kinds");
  await ann.end();

  for (const place of ["north", "south", "h8"]) await release(place);
  await page.getByText("Nothing is dedicated: every host is everybody's.").waitFor();
  await end();
  await say("DELETE", "/cells/den/model/den/inside");
});

test("an offering is made by a form whose planner comes from a list, strict and preferred as a choice", async () => {
  const { page, letPass, end } = await enter();
  // No text of the root cell is kept here.
  letPass(/404/);
  await page.keyboard.press("d");
  await page.getByText("Nothing is offered by a name").waitFor();
  await page.getByText("A new offering").click();
  const form = page.getByRole("form", { name: "An offering" });
  await form.getByRole("textbox", { name: "Name" }).fill("quiet");
  assert.equal(await form.getByRole("combobox", { name: "Mode" }).count(), 0, "the first planner has none");
  await form.getByRole("combobox", { name: "Planner" }).selectOption("ImplicitDedicationPlanner");
  await form.getByRole("combobox", { name: "Mode" }).selectOption("Preferred");
  await form.getByRole("button", { name: "Offer it" }).click();
  const offered = page.getByRole("listitem").filter({ hasText: 'x.placement.offering "quiet"' });
  await offered.getByText("256 MiB, 1 processor; there as long as there is such a host").waitFor();
  assert.match(await ask("GET", "/cells/root/model/root/offerings/quiet"), /"x.mode":"Preferred"/);
  const asked = page.getByRole("group", { name: "Take quiet back?" });
  await button(page, "Take quiet back").click();
  await asked.getByText("root/offerings/quiet").first().waitFor();
  await asked.getByText("1 taken away").waitFor();
  await asked.getByRole("button", { name: "Leave it as it is" }).click();
  await button(page, "Take quiet back").click();
  await asked.getByRole("button", { name: "Apply" }).click();
  await page.getByText("Nothing is offered by a name").waitFor();
  await end();
});

test("of each alert that is left a machine's migration says so before, dragged there and by keys", async () => {
  const dedicate = (host: string, owner: Owner) =>
    say("PUT", `/cells/root/model/root/dedications/${host}`, dedicationElement(host, owner));
  const release = (host: string) => say("DELETE", `/cells/root/model/root/dedications/${host}`);
  const vm = async (name: string, more: object): Promise<string> => {
    await say("PUT", `/cells/den/model/den/${name}`, { "x.type": "VM", "x.memory": 64, ...more });
    return hostOf(name);
  };
  // `a` asks for its domain's hosts, and runs at one that has become its account's alone.
  await dedicate("h1", acme);
  const own = await vm("a", { "x.placement.groups": "DedicatedGrp-domain-acme" });
  assert.equal(own, "h1");
  await release("h1");
  await dedicate("h1", dev);
  await dedicate("h2", acme);
  // `s` alone, `p` rather so, `q` anyhow: each at a host of its own.
  const alone = await vm("s", { "x.placement.dedication": "strict" });
  const plain = await vm("q", {});
  assert.notEqual(plain, alone);
  await vm("p", { "x.placement.dedication": "preferred" });
  const third = ["h3", "h4", "h5", "h6"].find((each) => each !== alone && each !== plain) ?? assert.fail();
  if ((await hostOf("p")) !== third) await say("POST", "/cells/den/moves", { vm: "den/p", to: third });
  await eventually("p is at a third one", async () => (await hostOf("p")) === third);

  const { page, end } = await enter();
  await page.keyboard.press("l");
  const card = (host: string) => page.getByRole("region", { name: host, exact: true });
  const machine = (name: string) => page.getByRole("button", { name: new RegExp(`^den/${name} `) });
  const said = {
    E3: "Alert E3: it goes from one owner's host to another owner's.",
    I1: "Alert I1: it asks to be alone with its account's strict machines, and others are there.",
    I2: "Alert I2: it would rather be among its account's machines that ask for the same, and others are there.",
    I3: "Alert I3: machines that ask to be among themselves are where it leaves or where it goes.",
  } as const;
  const goes = async (name: string, to: string, alert: keyof typeof said): Promise<void> => {
    await eventually(`${alert} is foretold`, async () => {
      const { hosts } = JSON.parse(await ask("GET", `/placement/try?vm=den/${name}`)) as {
        readonly hosts: readonly { readonly host: string; readonly alerts: readonly { readonly kind: string }[] }[];
      };
      return (
        hosts
          .find(({ host }) => host === to)
          ?.alerts.map(({ kind }) => kind)
          .join(" ") === alert
      );
    });
    const dialog = page.getByRole("dialog", { name: `Move den/${name}?` });
    const before = await hostOf(name);
    await dragUntil(dialog, machine(name), card(to));
    await dialog.getByText(said[alert]).waitFor();
    await dialog.getByRole("button", { name: "Leave it as it is" }).click();
    assert.equal(await hostOf(name), before, "nothing was done");
    // Chosen by the drag; whoever chooses it once more leaves it, so it is chosen anew.
    await machine(name).focus();
    if ((await machine(name).getAttribute("aria-pressed")) !== "true") await page.keyboard.press("Enter");
    await card(to).getByText(said[alert]).waitFor();
    await button(page, `Move den/${name} to ${to}`).focus();
    await page.keyboard.press("Enter");
    await dialog.getByText(said[alert]).waitFor();
    await dialog.getByRole("button", { name: "Move", exact: true }).focus();
    await page.keyboard.press("Enter");
    await page.getByText(`den/${name} runs at ${to}.`).waitFor();
    assert.equal(await hostOf(name), to);
  };
  await goes("a", "h2", "E3");
  await goes("s", third, "I1");
  await goes("p", plain, "I2");
  await goes("q", third, "I3");
  await end();
});
