import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { eventually } from "../../runtime/installation.testing.ts";
import { beginJourneys, type Journeys, type Person } from "./browser.testing.ts";

let journeys: Journeys;
before(async () => {
  journeys = await beginJourneys({ hosts: 3, machines: 4 });
});
after(() => journeys?.end());
const enter = async (): Promise<Person> => {
  const person = await journeys.person();
  await person.signIn();
  await person.expect(/401/);
  return person;
};
const button = (page: Page, name: string | RegExp) =>
  page.getByRole("button", { name, exact: typeof name === "string" });

/** The first cell of the simulation has a rule of its own, from web1 to port 8080 of app1. */
test("an edge of the graph counts packets that pass, and is gone with its rule, which `why` says", async () => {
  const { page, end } = await enter();
  const { url, credential } = journeys.served;
  const headers = { authorization: `Bearer ${credential}` };
  const read = async (path: string) => (await fetch(`${url}${path}`, { headers })).json();
  const address = await eventually("app1 has an address", async () => {
    const card = await read("/cells/shop/model/shop/app1Card?state=true");
    return /"address":"([\d.]+)"/.exec(JSON.stringify(card))?.[1] ?? false;
  });
  await page.goto(`${url}/ui/network?cell=shop`);
  const edge = page.getByRole("button", { name: /^Rule shop\/.*from shop\/web1 to shop\/app1/ });
  await edge.waitFor();
  const packets = async (): Promise<number> =>
    Number(/(\d+) packets/.exec((await edge.getAttribute("aria-label")) ?? "")?.[1] ?? 0);
  const before = await packets();
  await edge.focus();
  await page.keyboard.press("Enter");
  const shown = page.getByRole("region", { name: /^Rule shop\// });
  await shown.waitFor();

  const other = await enter();
  await other.page.goto(`${url}/ui/machines?cell=shop`);
  await button(other.page, "shop/web1").click();
  await button(other.page, "Console shop/web1").click();
  const screen = other.page.getByRole("region", { name: "Console of shop/web1" });
  const send = async (port: number, says: string): Promise<void> => {
    await screen.click();
    await other.page.keyboard.type(`send ${address} ${port}`);
    await other.page.keyboard.press("Enter");
    await eventually(`its guest says ${says}`, async () =>
      ((await screen.locator(".xterm-rows").textContent()) ?? "").replaceAll("\u00a0", " ").includes(says),
    );
  };
  await send(8080, `it has arrived at ${address}`);
  await send(8080, `it has arrived at ${address}`);
  await send(81, `nothing has arrived at ${address}`);
  await eventually("the edge counts both ends of two packets", async () => (await packets()) >= before + 4);
  await shown.getByText(/web1Card has dropped: \d+ no-rule/).waitFor();
  await other.end();

  /** Where a machine stands in the drawing. */
  const within = async () => {
    const frame = button(page, "Machine shop/app1").locator("..");
    return [await frame.getAttribute("x"), await frame.getAttribute("y")];
  };
  // Two machines of the graph are the two ends of the question.
  await button(page, "Machine shop/web1").click();
  await button(page, "Machine shop/app1").click();
  await page.getByRole("spinbutton", { name: "Port" }).fill("8080");
  await button(page, "Ask").click();
  await page.getByText("from shop/web1 to shop/app1 passes.").waitFor();
  const place = await within();
  const rule = (await edge.getAttribute("aria-label"))?.match(/^Rule (\S+):/)?.[1] ?? "";
  const gone = await fetch(`${url}/cells/shop/model/${rule}`, { method: "DELETE", headers });
  assert.equal(gone.status, 200);
  await edge.waitFor({ state: "detached" });
  assert.deepEqual(await within(), place, "nothing else moves");
  await eventually("nothing passes any more", async () => {
    await button(page, "Ask").click();
    return page.getByText("from shop/web1 to shop/app1 does not pass.").isVisible();
  });

  // By now the gateway has looked once.
  await page.goto(`${url}/ui/machines?cell=shop`);
  await button(page, "shop/web1").click();
  await page.getByText("The last hour of shop/web1").click();
  await page
    .getByRole("listitem")
    .filter({ hasText: /Processors: .* now; from [\d.]+ to [\d.]+ in the last hour/ })
    .waitFor();
  await page.goto(`${url}/ui/`);
  await page.getByText("Running machines of each cell").click();
  await page
    .getByRole("listitem")
    .filter({ hasText: /shop: \d+ now; from \d+ to \d+ in the last hour/ })
    .waitFor();
  await end();
});
