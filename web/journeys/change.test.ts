import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { eventually } from "../../runtime/installation.testing.ts";
import { beginJourneys, type Journeys, likeGolden, nobodyIsKeptOut, type Person } from "./browser.testing.ts";

let journeys: Journeys;
before(async () => {
  journeys = await beginJourneys({ hosts: 3, machines: 3 });
});
after(() => journeys?.end());
const enter = async (options: Parameters<Journeys["person"]>[0] = {}): Promise<Person> => {
  const person = await journeys.person(options);
  await person.signIn();
  await person.expect(/401/);
  return person;
};
const editor = (page: Page) => page.getByRole("textbox", { name: "Text of the specification" });
const plan = (page: Page) => page.getByRole("button", { name: "Plan", exact: true }).click();
const apply = (page: Page) => page.getByRole("button", { name: "Apply", exact: true });
const tea = (machines: string) => `// Comments are kept.\ntea extends Cell {\n${machines}\n}\n`;

test("a cell is written, an error mended, planned, applied and followed to ready, by keyboard alone", async () => {
  const { page, expect, end } = await enter();
  await page.keyboard.press("s");
  await page.getByRole("textbox", { name: "or a new one" }).focus();
  await page.keyboard.type("tea");
  await page.keyboard.press("Enter");
  await editor(page).focus();
  await expect(/404/);
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText(tea("  pot extends VM { x.memry 64; }"));
  await page.getByRole("button", { name: "Plan", exact: true }).focus();
  await page.keyboard.press("Enter");
  await page
    .getByRole("alert")
    .getByText(/x\.memory/)
    .first()
    .waitFor();
  await expect(/400/);
  // It is written anew with what is offered: a type with what it needs, and an attribute with its values.
  await editor(page).focus();
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText("// Comments are kept.\ntea extends Cell {\n  pot extends ");
  await page.keyboard.press("Control+Space");
  const chosen = page.getByRole("listbox", { name: "What could stand here" }).getByRole("option", { selected: true });
  await chosen.waitFor();
  await nobodyIsKeptOut(page, "the list of what could stand there");
  const active = "document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))?.textContent";
  await page.keyboard.type("Vo");
  await chosen.getByText("Volume", { exact: true }).waitFor();
  await page.keyboard.press("ArrowDown");
  await eventually("the next one is chosen, and read aloud", async () =>
    /^Volume[A-Z]\w+ /.test(String(await page.evaluate(active))),
  );
  await page.keyboard.press("Escape");
  await chosen.waitFor({ state: "detached" });
  await page.keyboard.press("Backspace");
  await page.keyboard.press("Backspace");
  await page.keyboard.type("VM");
  await page.keyboard.press("Control+Space");
  await chosen.getByText("VM", { exact: true }).waitFor();
  await page.keyboard.press("Enter");
  await page.keyboard.type("64");
  await page.keyboard.press("End");
  await page.keyboard.type(" x.desi");
  await page.keyboard.press("Control+Space");
  await chosen.getByText("x.desiredState", { exact: true }).waitFor();
  await page.getByText(/could stand here\..*Default/).waitFor();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Control+End");
  await page.keyboard.type("\n}\n");
  assert.match(await editor(page).inputValue(), /pot extends VM \{\n\tx\.memory 64; x\.desiredState "on";\n\}\n\}\n$/);
  await page.keyboard.press("Tab");
  assert.notEqual(await page.evaluate("document.activeElement.tagName"), "TEXTAREA", "nobody is held in it");
  await page.getByRole("button", { name: "Plan", exact: true }).focus();
  await page.keyboard.press("Enter");
  await apply(page).waitFor();
  await likeGolden(page, "plan-of-a-new-cell");
  await apply(page).focus();
  await page.keyboard.press("Enter");
  await page.getByText("All of it is ready.").waitFor();
  await page.keyboard.press("m");
  await page.getByRole("button", { name: "tea/pot", exact: true }).waitFor();
  await end();
});

test("two people change one cell: the second hears of it, loses nothing, and goes on from the present text", async () => {
  const [ann, bob] = [await enter(), await enter()];
  for (const { page } of [ann, bob]) {
    await page.goto(`${journeys.served.url}/ui/specification?cell=tea`);
    await editor(page).waitFor();
  }
  const change = async ({ page }: Person, machines: string): Promise<void> => {
    await editor(page).fill(tea(machines));
    await plan(page);
  };
  await change(ann, "  pot extends VM { x.memory 64; }\n  cup extends VM { x.memory 64; }");
  await apply(ann.page).click();
  await ann.page.getByText("is applied").waitFor();
  await change(bob, "  pot extends VM { x.memory 128; }");
  await bob.page.getByRole("alert").waitFor();
  await bob.expect(/412/);
  assert.match(await editor(bob.page).inputValue(), /x\.memory 128/, "what he wrote is still there");
  await bob.page.getByRole("button", { name: "Load the present text" }).click();
  await eventually("the present text is there", async () => (await editor(bob.page).inputValue()).includes("cup"));
  await ann.end();
  await bob.end();
});

test("what would be open without a rule stands beside the plan, before anything is applied", async () => {
  const { page, expect, end } = await enter();
  await page.goto(`${journeys.served.url}/ui/specification?cell=pub`);
  await editor(page).waitFor();
  await expect(/404/);
  const bar = "bar extends CellController { x.cell extends Cell {} }";
  await editor(page).fill(`pub extends Cell { x.defaults.internet "out"; ${bar} }`);
  await plan(page);
  await apply(page).waitFor();
  await page.getByText("Open without a rule").waitFor();
  await page.getByText('bar.pub: x.policy.internet "none" → "out"').waitFor();
  await apply(page).click();
  await page.getByText("is applied").waitFor();
  await page.getByText("Open without a rule").waitFor();
  await editor(page).fill(`pub extends Cell { ${bar} }`);
  await plan(page);
  await apply(page).waitFor();
  assert.equal(await page.getByText("Open without a rule").count(), 0);
  await end();
});

test("what others wrote is text, and runs nowhere", async () => {
  const { page, expect, end } = await enter();
  await page.goto(`${journeys.served.url}/ui/specification?cell=${encodeURIComponent("<img src=x onerror=alert(1)>")}`);
  await page.getByRole("alert").waitFor();
  await expect(/400|404/);
  assert.equal(await page.locator("main img").count(), 0);
  await page.goto(`${journeys.served.url}/ui/specification?cell=tea`);
  await editor(page).fill(tea('  pot extends VM { x.memory "<script>alert(1)</script>"; }'));
  await plan(page);
  await page.getByRole("alert").waitFor();
  await expect(/400/);
  assert.equal(await page.locator("main script").count(), 0);
  const brought = await page.evaluate(
    "(() => { try { const made = document.createElement('script'); made.textContent = 'window.broughtIn = 1'; document.body.append(made); } catch { return 'refused'; } return String(window.broughtIn); })()",
  );
  assert.equal(brought, "refused");
  await expect(/TrustedScript/);
  await end();
});

const looks = (["light", "dark"] as const).flatMap((colorScheme) =>
  [360, 1280].map((width) => ({ colorScheme, width })),
);
// Each takes half a minute where others work: one of them each time, all with `./cells test --all`.
const isWhole = process.env.CELLS_MUTATIONS === "all";
for (const { colorScheme, width } of isWhole ? looks : [looks[randomInt(looks.length)] ?? assert.fail()])
  test(`every page, ${colorScheme} and ${width} px wide: nobody is kept out, nothing overflows`, async () => {
    const { page, end } = await enter({ colorScheme, viewport: { width, height: 800 } });
    for (const [path, name] of [
      ["", "Overview"],
      ["machines", "Machines"],
      ["specification?cell=shop", "Specification"],
      ["cells", "Cells"],
      ["versions?cell=shop", "Versions"],
      ["network?cell=shop", "Network"],
      ["availability", "Availability"],
      ["placement", "Placement"],
      ["dedication", "Dedication"],
      ["pools", "Pools"],
      ["people", "People"],
      ["storage", "Storage"],
      ["timeline", "Time line"],
    ] as const) {
      await page.goto(`${journeys.served.url}/ui/${path}`);
      await page.getByRole("heading", { name, level: 1 }).waitFor();
      if (name === "Specification") await editor(page).waitFor();
      await eventually("nothing is waited for", async () => (await page.locator(".waiting").count()) === 0);
      if (name === "Machines") await page.getByRole("button", { name: "shop/web1", exact: true }).waitFor();
      await nobodyIsKeptOut(page, name);
      assert.ok(
        Number(await page.evaluate("document.documentElement.scrollWidth")) <= width,
        `${name} is wider than the screen`,
      );
    }
    await end();
  });
