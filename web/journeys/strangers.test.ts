import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { parametersIn, publishedPath } from "../../model/contract/route.ts";
import { routes } from "../../model/contract/routes.ts";
import { eventually } from "../../runtime/installation.testing.ts";
import { beginJourneys, type Journeys, makeCell, type Person } from "./browser.testing.ts";

/** Two tenants who have nothing to do with one another: ann's cell is `den`, bob's is `vault`. */
let journeys: Journeys;
const password = "a long enough password";
const secret = "treasurechest";
before(async () => {
  journeys = await beginJourneys({ hosts: 4, machines: 3 });
  await say("POST", "/domains", { path: "ROOT/acme" });
  for (const [account, user, cell] of [
    ["ROOT/acme/dev", "ann", "den"],
    ["ROOT/acme/gold", "bob", "vault"],
  ] as const) {
    await say("POST", "/accounts", { path: account });
    await say("POST", "/users", { account, name: user, role: "account-admin", password });
    await makeCell(journeys.served, cell, account);
  }
});
after(() => journeys?.end());
const say = async (method: string, path: string, body: object): Promise<void> => {
  const { url, credential } = journeys.served;
  const headers = { authorization: `Bearer ${credential}`, "content-type": "application/json" };
  const answer = await fetch(`${url}${path}`, { method, headers, body: JSON.stringify(body) });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await answer.text()}`);
};
const go = (page: Page, path: string) => page.goto(`${journeys.served.url}/ui/${path}`);
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const write = async (page: Page, user: string, shown: string): Promise<void> => {
  await page.getByRole("textbox", { name: "User" }).fill(user);
  await page.getByRole("textbox", { name: "Password" }).fill(shown);
  await button(page, "Sign in").click();
};
const enterAs = async (user: string): Promise<Person> => {
  const person = await journeys.person();
  await go(person.page, "");
  await write(person.page, `${user}@ROOT/acme`, password);
  await person.page.getByRole("heading", { name: "Overview" }).waitFor();
  await person.expect(/401/);
  return person;
};
const apply = async (page: Page, cell: string, vm: string): Promise<void> => {
  await go(page, `specification?cell=${cell}`);
  await page
    .getByRole("textbox", { name: "Text of the specification" })
    .fill(`${cell} extends Cell {\n  ${vm} extends VM { x.memory 64; }\n}\n`);
  await button(page, "Plan").click();
  await button(page, "Apply").click();
  await page.getByText("All of it is ready.").waitFor();
};

test("a tenant guesses the addresses of another: 403 or 404, and nothing of it in what is answered", async () => {
  const [ann, bob] = [await enterAs("ann"), await enterAs("bob")];
  await apply(bob.page, "vault", secret);
  await go(bob.page, "machines?cell=vault");
  await button(bob.page, `vault/${secret}`).waitFor();
  const { page } = ann;
  await apply(page, "den", "pot");
  const told: string[] = [];
  page.on("response", (response) => {
    void response.text().then(
      (text) => told.push(text),
      () => undefined,
    );
  });
  for (const each of ["machines", "specification", "versions", "network", "cells", "dedication", "pools", "people"]) {
    await go(page, `${each}?cell=vault`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await eventually("nothing is waited for", async () => (await page.locator(".waiting").count()) === 0);
    assert.doesNotMatch((await page.locator("body").textContent()) ?? "", new RegExp(`${secret}|bob|gold`), each);
  }

  // Every route of the contract, with what a guess could name of his.
  const own: Readonly<Record<string, string>> = { cell: "vault", path: `vault/${secret}`, vm: secret };
  const guesses = Object.entries(routes).flatMap(([name, route]) => {
    if (["capability", "anyone"].includes(route.who) || route.at === "caas") return [];
    const path = parametersIn(publishedPath(route)).reduce(
      (made, { name: parameter, several }) =>
        made.replace(`{${parameter}${several ? "*" : ""}}`, own[parameter] ?? "vault"),
      publishedPath(route),
    );
    const query = name === "readMachineHistory" ? `?vm=${encodeURIComponent(`vault/${secret}`)}` : "";
    return [{ name, method: route.method, path: `${path}${query}`, isOfCell: path.startsWith("/cells/vault") }];
  });
  assert.ok(guesses.filter(({ isOfCell }) => isOfCell).length > 20);
  for (const { name, method, path, isOfCell } of guesses) {
    if (["signOut", "endSession", "logOut"].includes(name)) continue;
    const { status, text } = (await page.evaluate(
      `(async () => {
        const body = ${method === "GET" ? "undefined" : '"{}"'};
        const headers = { "cells-page": "1", ...(body === undefined ? {} : { "content-type": "application/json" }) };
        const left = new AbortController();
        const answer = await fetch(${JSON.stringify(path)}, { method: ${JSON.stringify(method)}, headers, body, signal: left.signal });
        // A stream has no end; who is refused has been told so by now, however long that took.
        setTimeout(() => left.abort(), 3000);
        return { status: answer.status, text: await answer.text().catch(() => "") };
      })()`,
    )) as { readonly status: number; readonly text: string };
    // Names of cells are of all: that one is taken is all that is said of it.
    const expected = name === "putModel" ? [409] : [403, 404];
    if (isOfCell) assert.ok(expected.includes(status), `${name}: ${method} ${path} is answered with ${status} ${text}`);
    told.push(text.replaceAll(path, ""));
  }
  assert.ok(told.length > 60);
  // What is followed is as much each person's own: of a topic of others, or of the operator, no row comes.
  const followed = (topic: string): Promise<number> =>
    page.evaluate(
      `(async () => {
        const left = new AbortController();
        const answer = await fetch("/follow?topic=${topic}", { headers: { "cells-page": "1" }, signal: left.signal });
        left.abort();
        return answer.status;
      })()`,
    );
  for (const topic of ["status", "ha", "cell:vault", "counters:vault"])
    assert.ok([403, 404].includes(await followed(topic)), `the topic ${topic}`);
  assert.equal(await followed("cell:den"), 200, "a topic of his own");
  for (const text of told) assert.doesNotMatch(text, new RegExp(`${secret}|\\bbob\\b|ROOT/acme/gold`));
  await ann.context.close();
  assert.match(
    await bob.page.evaluate("fetch('/cells/vault/model').then((answer) => answer.text())"),
    new RegExp(secret),
  );
  await bob.end();
});

test("who signs out in one tab is out in all of them, and what another tab has written waits there for the next sign-in", async () => {
  const { page, context, end } = await enterAs("ann");
  const other = await context.newPage();
  await go(other, "specification?cell=den");
  const editor = other.getByRole("textbox", { name: "Text of the specification" });
  await editor.fill("den extends Cell { not finished");
  await button(page, "Sign out").click();
  await other.getByRole("alert").getByText("the sign-in is over").waitFor();
  assert.equal(await editor.count(), 0);
  await write(other, "ann@ROOT/acme", password);
  await editor.waitFor();
  assert.equal(await editor.inputValue(), "den extends Cell { not finished");
  await end();
});

test("whose account is disabled is out at once: of the page, and of a console that is open", async () => {
  const bob = await enterAs("bob");
  const { page } = bob;
  await go(page, "machines?cell=vault");
  await button(page, `vault/${secret}`).click();
  await button(page, `Console vault/${secret}`).click();
  const console = page.getByRole("region", { name: `Console of vault/${secret}` });
  await eventually("the console is there", async () =>
    ((await console.locator(".xterm-rows").textContent()) ?? "").includes("simulated"),
  );
  const operator = await journeys.person();
  await operator.signIn();
  await operator.page.keyboard.press("u");
  await button(operator.page, "Disable ROOT/acme/gold").click();
  await operator.page.getByRole("dialog").getByRole("button", { name: "Disable", exact: true }).click();
  await page.getByRole("alert").getByText("the sign-in is over").waitFor();
  assert.equal(await console.count(), 0);
  await operator.expect(/401/);
  await operator.end();
  await write(page, "bob@ROOT/acme", password);
  await page
    .getByRole("alert")
    .getByText(/disabled|opens nothing|wrong/)
    .waitFor();
  await bob.context.close();
});

// The last one: nobody signs in from this address for a minute after it.
test("a wrong password and a wrong credential say the same of everybody, and who is wrong too often waits", async () => {
  const { page, context } = await journeys.person();
  await go(page, "");
  const said = page.getByRole("alert");
  const sentences = new Set<string>();
  for (const [user, shown] of [
    ["ann@ROOT/acme", "wrong"],
    ["nobody@ROOT/acme", "wrong"],
    ["ann@ROOT/nowhere", "wrong"],
  ] as const) {
    await write(page, user, shown);
    await eventually("it is said", async () => (await button(page, "Sign in").count()) > 0 && (await said.count()) > 0);
    sentences.add((await said.textContent()) ?? "");
  }
  assert.equal(sentences.size, 1, [...sentences].join("; "));
  await page.getByRole("radio", { name: "credential" }).check();
  await page.getByLabel("Credential", { exact: true }).fill("x".repeat(512));
  await button(page, "Sign in").click();
  await said.getByText(/this opens nothing/).waitFor();
  await page.getByRole("radio", { name: "password" }).check();
  await eventually("it waits", async () => {
    await write(page, "ann@ROOT/acme", "wrong");
    return (await said.getByText("too many sign-ins from this address have failed").count()) > 0;
  });
  await write(page, "ann@ROOT/acme", password);
  await said.getByText("too many sign-ins from this address have failed").waitFor();
  assert.deepEqual(
    (await context.cookies()).map(({ name }) => name),
    [],
  );
  await context.close();
});
