import { after, before, test } from "node:test";
import { eventually } from "../../runtime/installation.testing.ts";
import { beginJourneys, type Journeys } from "./browser.testing.ts";

let journeys: Journeys;
before(async () => {
  journeys = await beginJourneys({ hosts: 4, machines: 9 });
});
after(() => journeys?.end());

test("a host dies: the overview names it, what is done and for whom, and all is well again", async () => {
  const { served } = journeys;
  const { page, signIn, expect, end } = await journeys.person();
  await signIn();
  await expect(/401/);
  await page.getByText("All is well.").waitFor();
  const [host = ""] = served.busyHosts();
  served.perform(`power-off ${host} for 30000`);
  // Machines that wait name it as well.
  const need = page.getByText(`Host ${host} is lost`, { exact: true }).locator("..");
  await need.filter({ hasText: /have declared it dead; .+cells status/ }).waitFor();
  // What is being done is not there before it begins, either.
  await eventually("its machines run elsewhere", () => !served.busyHosts().includes(host));
  await page.getByRole("region", { name: "Being done" }).waitFor({ state: "detached", timeout: 60_000 });
  // What is done about its machines may be over within half a second: it stands there for a while.
  const done = page.getByRole("region", { name: "Done without you" });
  await done.getByText(`which ran on ${host}`).first().waitFor();
  await page.getByText("All is well.").waitFor({ timeout: 60_000 });
  await page.keyboard.press("e");
  const found = page.getByRole("listitem").filter({ hasText: host });
  await page.getByRole("searchbox").fill(`declared ${host}`);
  const told = found.filter({ hasText: "says presence." }).first();
  await told.waitFor();
  // That moment is marked in the plots, where one is of it.
  await told.getByRole("button").click();
  await page.getByText("is marked in every plot of the last hour").waitFor();
  await page.getByRole("link", { name: "cells", exact: true }).click();
  await page.getByText("Running machines of each cell").click();
  await page
    .getByRole("listitem")
    .filter({ hasText: /(\d+|nothing was heard) at \d+:\d\d:\d\d/ })
    .first()
    .waitFor();
  await page.keyboard.press("e");
  await page.getByRole("combobox", { name: "Cell" }).selectOption({ index: 1 });
  await page.getByRole("searchbox").fill(`no ${"such".repeat(9)} words`);
  await page.getByText(/^0 events, as of/).waitFor();
  await end();
});

test("what waits for a person is named with its steps and answers, and goes on by a person's word", async () => {
  const { served } = journeys;
  const { page, signIn, expect, end } = await journeys.person();
  await signIn();
  await expect(/401/);
  await page.keyboard.press("a");
  await page.getByRole("button", { name: "Pause high availability" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
  await page.getByText("an operator has said that hosts will be switched off").waitFor();
  const [host = ""] = served.busyHosts();
  served.perform(`power-off ${host} for 120000`);
  const item = page
    .getByRole("listitem")
    .filter({ hasText: `at ${host}` })
    .first();
  await item.getByRole("list", { name: "HA: steps" }).waitFor();
  await item.getByText("It waits for a person").waitFor();
  await item.getByText("Unknown").first().waitFor();
  await page.getByRole("button", { name: "Go on with high availability" }).click();
  await page.getByText("an operator has said").first().waitFor({ state: "detached" });
  // Some of them lost a host a moment ago, too: those wait for a word about themselves.
  const release = page.locator('.need button[aria-label^="Release "]:enabled');
  await eventually("nothing waits for a person, and its machines run elsewhere", async () => {
    if ((await release.count()) > 0) {
      // It may go on by itself meanwhile, and its card with it.
      await release
        .first()
        .click({ timeout: 2000 })
        .catch(() => undefined);
      const word = page.locator("dialog[open]").getByRole("button", { name: "Release", exact: true });
      await word.click({ timeout: 2000 }).catch(() => undefined);
    }
    // Between two words about it an item waits for nobody, and has not gone on.
    return (await page.getByText("It waits for a person").count()) === 0 && !served.busyHosts().includes(host);
  });
  await end();
});
