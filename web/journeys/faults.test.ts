import assert from "node:assert/strict";
import { after, before, test } from "node:test";
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
  const need = page.getByRole("listitem").filter({ hasText: `Host ${host} is lost` });
  await need.waitFor();
  assert.match((await need.textContent()) ?? "", /have declared it dead; .+cells status/);
  await page.getByRole("region", { name: "Being done" }).getByText(`which ran on ${host}`).first().waitFor();
  await page.getByRole("region", { name: "Being done" }).waitFor({ state: "detached", timeout: 60_000 });
  assert.ok(!served.busyHosts().includes(host), "its machines run elsewhere");
  await page.getByText("All is well.").waitFor({ timeout: 60_000 });
  await end();
});
