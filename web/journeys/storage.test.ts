import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { eventually } from "../../runtime/installation.testing.ts";
import { beginJourneys, type Journeys, likeGolden, type Person } from "./browser.testing.ts";

/** Two tenants beside CaaS, which is the real one: ann's cell is `den`, and what she gives him bob has in `ROOT/acme/gold`. */
let journeys: Journeys;
const password = "a long enough password";
before(async () => {
  journeys = await beginJourneys({ hosts: 3, machines: 2, volumes: true });
  await say("POST", "/domains", { path: "ROOT/acme" });
  for (const [account, user] of [
    ["ROOT/acme/dev", "ann"],
    ["ROOT/acme/gold", "bob"],
  ] as const) {
    await say("POST", "/accounts", { path: account });
    await say("POST", "/users", { account, name: user, role: "account-admin", password });
  }
  await say("PUT", "/cells/root/model/root/cells/den", {
    "x.type": "CellController",
    "x.account": "ROOT/acme/dev",
    "x.cell": { "x.type": "Cell" },
  });
  const model = {
    den: {
      "x.type": "Cell",
      web: { "x.type": "VM", "x.memory": 64 },
      db: { disk: { "x.type": "Volume", "x.size": 64 } },
      at: { "x.type": "VolumeConnection", "x.vm": "<ref:/den/web>", "x.volume": "<ref:/den/db/disk>" },
    },
  };
  // Asked sooner, the gateway would make another cell of that name.
  await eventually("the cell is there", async () => {
    const { url, credential } = journeys.served;
    return (await fetch(`${url}/cells/den/model`, { headers: { authorization: `Bearer ${credential}` } })).ok;
  });
  await say("PUT", "/cells/den/model", model);
});
after(() => journeys?.end());
const say = async (method: string, path: string, body: object): Promise<void> => {
  const { url, credential } = journeys.served;
  const headers = { authorization: `Bearer ${credential}`, "content-type": "application/json" };
  const answer = await fetch(`${url}${path}`, { method, headers, body: JSON.stringify(body) });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await answer.text()}`);
};
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const enterAs = async (user: string): Promise<Person> => {
  const person = await journeys.person();
  const { page } = person;
  await page.goto(`${journeys.served.url}/ui/`);
  await page.getByRole("textbox", { name: "User" }).fill(`${user}@ROOT/acme`);
  await page.getByRole("textbox", { name: "Password" }).fill(password);
  await button(page, "Sign in").click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await person.expect(/401/);
  return person;
};
const card = (page: Page, name: string) => page.getByRole("listitem").filter({ hasText: `and changes of ${name}` });
const open = async (page: Page, name: string) => {
  const found = card(page, name);
  await found.getByText(`Versions, shares and changes of ${name}`).click();
  return found;
};
const make = async (page: Page, name: string, size: string): Promise<void> => {
  const form = page.getByRole("region", { name: "A new persistent volume" });
  await form.getByRole("textbox", { name: "Name" }).fill(name);
  await form.getByRole("spinbutton", { name: "Size in MiB" }).fill(size);
  await form.getByRole("textbox", { name: "Tags" }).fill("db first");
  await form.getByText(`cells volume create ${name} --size ${size} --tag db --tag first`).waitFor();
  await form.getByRole("button", { name: "Make it" }).click();
};

test("a persistent volume is made, cloned, shared with another account, which copies it, and is deleted once that is said", async () => {
  const [ann, bob] = [await enterAs("ann"), await enterAs("bob")];
  const { page } = ann;
  await page.keyboard.press("t");
  await page.getByText("There is none yet that you may see.").waitFor();
  await make(page, "data", "64");
  await page.getByText("1 persistent volume.").waitFor();
  const data = await open(page, "data");
  await data.getByText("✓ ready").waitFor();
  await data.getByText("It is shared with nobody.").waitFor();
  await data.getByRole("textbox", { name: "The clone is called" }).fill("second");
  await button(page, "Clone data").click();
  await page.getByText("2 persistent volumes.").waitFor();
  await page.getByRole("searchbox").fill("second");
  await page.getByText("1 persistent volume.").waitFor();
  await page.getByRole("searchbox").fill("");
  await card(page, "data").waitFor();

  await bob.page.keyboard.press("t");
  await bob.page.getByText("There is none yet that you may see.").waitFor();
  const again = await open(page, "data");
  await again.getByRole("textbox", { name: "Path" }).fill("ROOT/acme/gold");
  await page.getByText("cells volume share data copy --account ROOT/acme/gold").waitFor();
  await button(page, "Share data").click();
  await button(page, "Share data").and(page.locator(":enabled")).waitFor();
  await again.getByRole("button", { name: "Unshare copy for the account ROOT/acme/gold" }).waitFor();
  await page.getByRole("searchbox").fill("data");
  await page.getByText("1 persistent volume.").waitFor();
  await likeGolden(page, "storage");
  await page.getByRole("searchbox").fill("");

  await bob.page.reload();
  await bob.page.getByText("1 persistent volume.").waitFor();
  const his = await open(bob.page, "data");
  await his.getByText("data is shared with you, and its owner's people alone change it").first().waitFor();
  assert.ok(await button(bob.page, "Delete data").isDisabled());
  await his.getByRole("textbox", { name: "The clone is called" }).fill("mine");
  await button(bob.page, "Clone data").click();
  await card(bob.page, "mine").waitFor();

  await again.getByRole("button", { name: "Unshare copy for the account ROOT/acme/gold" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Unshare", exact: true }).click();
  await again.getByText("It is shared with nobody.").waitFor();
  await open(page, "second");
  await button(page, "Delete second").click();
  const sure = page.getByRole("group", { name: "Delete second?" });
  await sure.getByText("Its data is lost. Copies of it stay.").waitFor();
  await sure.getByRole("button", { name: "Leave it as it is" }).click();
  await button(page, "Delete second").click();
  await button(page, "Delete second with all its data").click();
  await page.getByText("1 persistent volume.").waitFor();
  await card(page, "data").waitFor();
  await bob.page.reload();
  await bob.page.getByText("1 persistent volume.").waitFor();
  await card(bob.page, "mine").waitFor();
  await ann.end();
  await bob.end();
});

test("a cell that is to go offers to keep its volumes, and what is kept outlives it", async () => {
  const { page, end } = await enterAs("ann");
  await page.keyboard.press("c");
  await button(page, "Delete den").click();
  await button(page, "What would go?").click();
  await button(page, "Keep den/db/disk as the persistent volume den-db-disk").click();
  await page.getByText("den/db/disk goes on as the persistent volume den-db-disk").waitFor();
  await page.getByText(/elements go with den, and no data/).waitFor();
  await button(page, "Delete den").last().click();
  await page.getByText(/den is being deleted|There is no cell|0 cells/).waitFor();
  await page.keyboard.press("t");
  const kept = await open(page, "den-db-disk");
  await kept.getByText("✓ ready").waitFor();
  await eventually("the cell has gone", async () => {
    const { url, credential } = journeys.served;
    const answer = await fetch(`${url}/cells/den/model`, { headers: { authorization: `Bearer ${credential}` } });
    return answer.status === 404 || !(await answer.text()).includes("disk");
  });
  await kept.getByText("✓ ready").waitFor();
  await end();
});

test("who has no part in CaaS is told so, and images are the operator's", async () => {
  const ann = await enterAs("ann");
  await ann.page.keyboard.press("t");
  await ann.page.getByRole("heading", { name: "Persistent volumes", exact: true }).waitFor();
  assert.equal(await ann.page.getByRole("heading", { name: "Images" }).count(), 0);
  await ann.end();
  const { page, signIn, expect, end } = await journeys.person();
  await signIn();
  await expect(/401/);
  await page.keyboard.press("t");
  await page.getByText("No storage server has an image.").waitFor();
  const upload = page.getByRole("form", { name: "Upload an image" });
  await upload
    .getByLabel("A file")
    .setInputFiles({ name: "Debian 12.img", mimeType: "", buffer: Buffer.from("no disk") });
  assert.equal(await upload.getByRole("textbox", { name: "The image is called" }).inputValue(), "debian-12");
  assert.equal(await upload.getByRole("combobox", { name: "Its format" }).inputValue(), "raw");
  await upload.getByRole("button", { name: "Upload it" }).click();
  // A simulated storage server takes none.
  await expect(/50[0-9]|404/);
  await upload.getByRole("alert").waitFor();
  await end();
});
