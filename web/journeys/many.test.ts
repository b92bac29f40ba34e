import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually } from "../../runtime/installation.testing.ts";
import { beginJourneys, type Journeys } from "./browser.testing.ts";

const machines = 1000;
let journeys: Journeys;
before(async () => {
  journeys = await beginJourneys({ hosts: 20, machines });
});
after(() => journeys?.end());

test("1,000 machines are filtered, sorted and scrolled to their end, with at most 80 rows in the page", async () => {
  const { page, signIn, expect, end } = await journeys.person();
  // Twenty hosts have much to do with a thousand that start.
  page.setDefaultTimeout(30_000);
  await signIn();
  await page.getByRole("link", { name: "Machines", exact: true }).click();
  await page.getByText(`${machines} machines`, { exact: true }).waitFor();
  const rows = page.locator("tbody tr:not([aria-hidden])");
  const few = async (): Promise<void> => {
    await rows.first().waitFor();
    const count = await rows.count();
    assert.ok(count > 0 && count <= 80, `${count} rows are in the page`);
  };
  await few();
  await rows.filter({ has: page.getByRole("button", { name: "atlas/app1", exact: true }) }).waitFor();

  await page.getByRole("button", { name: "Machine", exact: true }).click();
  await rows.filter({ hasText: "shop/web20" }).waitFor();
  await rows.first().hover();
  await page.mouse.wheel(0, 1_000_000);
  await rows.filter({ has: page.getByRole("button", { name: "atlas/app1", exact: true }) }).waitFor();
  await few();

  await page.keyboard.press("/");
  await page.keyboard.type("shop/web1");
  await page.getByText(`11 of ${machines} machines`).waitFor();
  await eventually("they are all there", async () => (await rows.count()) === 11);
  await page.getByRole("combobox", { name: "Cell" }).selectOption("bank");
  await page.getByText("No machine is like that.").waitFor();
  await expect(/401/);
  await end();
});
