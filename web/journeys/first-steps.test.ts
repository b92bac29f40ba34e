import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { beginJourneys, type Journeys, likeGolden } from "./browser.testing.ts";

let journeys: Journeys;
before(async () => {
  journeys = await beginJourneys({ hosts: 3, machines: 6 });
});
after(() => journeys?.end());

test("from nothing to the page: a one-time code signs in once", async () => {
  const { served } = journeys;
  const address = `${served.url}/ui/#code=${await served.code()}`;
  const first = await journeys.person();
  await first.page.goto(address);
  await first.page.getByText("All is well.").waitFor();
  assert.ok(!first.page.url().includes("code"), "the code does not stay in the address");
  first.expect(/401/);
  await likeGolden(first.page, "overview");

  const second = await journeys.person();
  await second.page.goto(address);
  await second.page.getByRole("alert").waitFor();
  await likeGolden(second.page, "code-used-before");
  for (const _ of [1, 2]) second.expect(/401/);
  await second.end();

  await first.page.reload();
  await first.page.getByText("All is well.").waitFor();
  await first.page.getByRole("button", { name: "Sign out" }).click();
  await first.page.getByRole("button", { name: "Sign in" }).waitFor();
  await first.page.reload();
  await first.page.getByRole("button", { name: "Sign in" }).waitFor();
  first.expect(/401/);
  await first.end();
});
