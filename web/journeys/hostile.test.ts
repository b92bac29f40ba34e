import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { eventually } from "../../runtime/installation.testing.ts";
import { pages } from "../state/place.ts";
import { beginJourneys, type Journeys, makeCell } from "./browser.testing.ts";

let journeys: Journeys;
let elsewhere: Server;
before(async () => {
  journeys = await beginJourneys({ hosts: 3, machines: 2, volumes: true });
  elsewhere = createServer((_incoming, response) => {
    response.setHeader("content-type", "text/html");
    response.end("<title>elsewhere</title><p>a page of another origin</p>");
  });
  elsewhere.listen(0, "127.0.0.1");
  await once(elsewhere, "listening");
});
after(async () => {
  elsewhere?.closeAllConnections();
  elsewhere?.close();
  await journeys?.end();
});

/** Markup, a bell, a sequence that clears a terminal, and what turns the writing round. */
const bad = "<img src=x onerror=alert(1)>\u0007\u001b[2J\u202e";
const tooLong = bad.repeat(400).slice(0, 10_000);

/** What it asks for is there, and for half a second no field and no part that opens has come or gone. */
async function atRest(page: Page, where: string): Promise<void> {
  let [seen, since] = ["", performance.now()];
  await eventually(`${where} has what it asks for`, async () => {
    const asked = await page.getByText(/is asked …$/).count();
    const now = `${asked} ${await page.locator("input, textarea").count()} ${await page.locator("details").count()}`;
    if (now !== seen) [seen, since] = [now, performance.now()];
    return asked === 0 && performance.now() - since > 500;
  });
}

/** Nothing of it is more than text, and the page is as wide as it was. */
async function isSound(page: Page, where: string): Promise<void> {
  assert.equal(await page.locator("img").count(), 0, `${where}: markup became an image`);
  assert.equal(await page.locator("h1").count(), 1, `${where}: the page is there`);
  const over = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
  assert.ok(Number(over) <= 0, `${where} is ${over} pixels too wide`);
}

/** What the gateway could not answer, and what a script asked. */
function brokenAt(page: Page): readonly string[] {
  const broken: string[] = [];
  page.on("response", (answer) => {
    if (answer.status() >= 500) broken.push(`${answer.status()} of ${answer.request().method()} ${answer.url()}`);
  });
  page.on("dialog", (dialog) => broken.push(dialog.message()));
  return broken;
}
/** As they are in a browser, whose types nobody has here. */
interface Field {
  readonly labels: readonly { readonly textContent: string }[] | null;
  readonly ariaLabel: string | null;
}
interface Form {
  noValidate: boolean;
  requestSubmit(): void;
}
interface Bounded {
  removeAttribute(name: string): void;
}
const fieldsOf = (page: Page) =>
  page.locator("input:not([type=checkbox]):not([type=radio]):not([type=file]), textarea");
/** What stands in parts that open is there, too. */
async function openParts(page: Page, where: string): Promise<void> {
  await atRest(page, where);
  await page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true");
  await atRest(page, where);
}
/** Each of them that somebody can write into, and more than the page would take: whoever wants to sends it. @returns what they are called */
async function fillAll(fields: ReturnType<typeof fieldsOf>): Promise<readonly string[]> {
  const names: string[] = [];
  for (let at = 0; at < (await fields.count()); at += 1) {
    const field = fields.nth(at);
    if (!(await field.isVisible()) || !(await field.isEnabled())) continue;
    await field.evaluate((own) => (own as unknown as Bounded).removeAttribute("maxlength"));
    const isNumber = (await field.getAttribute("type")) === "number";
    await field.fill(isNumber ? "9".repeat(300) : tooLong);
    const name = await field.evaluate((own) => {
      const { labels, ariaLabel } = own as unknown as Field;
      return labels?.[0]?.textContent ?? ariaLabel ?? "";
    });
    names.push(name.trim());
  }
  return names;
}
async function sendAll(page: Page, where: string): Promise<void> {
  const forms = page.locator("form");
  for (let at = 0; at < (await forms.count()); at += 1)
    await forms.nth(at).evaluate((own) => {
      const form = own as unknown as Form;
      form.noValidate = true;
      form.requestSubmit();
    });
  await eventually(`${where} waits for nothing`, async () => (await page.getByText(/ …$/).count()) === 0);
}

test("10,000 characters of markup and escapes in each field of each form are refused, and are text where they are shown", async () => {
  const { page, signIn, expect, letPass, end } = await journeys.person();
  const broken = brokenAt(page);
  await signIn();
  await expect(/401/);
  // What is refused with 4xx stands in a browser's console.
  letPass(/status of 4\d\d/);
  let filled = 0;
  for (const name of pages) {
    await page.goto(`${journeys.served.url}/ui/${name === "overview" ? "" : name}?cell=shop`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await openParts(page, name);
    filled += (await fillAll(fieldsOf(page))).length;
    await sendAll(page, name);
    await isSound(page, name);
  }
  assert.ok(filled >= 20, `${filled} fields`);
  assert.deepEqual(broken, []);
  await end();
});

interface Behind {
  readonly path: string;
  /** What somebody does before they are there. */
  readonly open: (page: Page) => Promise<unknown>;
  /** As they are called. */
  readonly fields: readonly string[];
  /** Buttons that send what is in no form. */
  readonly press?: readonly string[];
}
const origin = (page: Page, from: string) => page.getByRole("combobox", { name: "Comes from" }).selectOption(from);
const behind: readonly Behind[] = [
  {
    path: "machines?cell=den",
    open: async (page) => {
      await page.getByRole("button", { name: "den/web", exact: true }).click();
      await page.getByRole("button", { name: "Console den/web" }).click();
      await page.getByRole("region", { name: "Console of den/web" }).waitFor();
    },
    fields: ["Incarnation", "Search what it said"],
  },
  {
    path: "storage",
    open: async (page) => {
      await page.getByText("Versions, shares and changes of data").click();
      await page.getByRole("textbox", { name: "The clone is called" }).waitFor();
    },
    fields: ["Path", "It grows to, in MiB", "The clone is called"],
    press: ["Share data", "Change data", "Clone data"],
  },
  { path: "storage", open: (page) => origin(page, "an image of the installation"), fields: ["Image"] },
  {
    path: "storage",
    open: async (page) => {
      await origin(page, "a file of this machine");
      const file = { name: `${bad}.img`.replaceAll("/", " "), mimeType: "", buffer: Buffer.from("no disk") };
      await page.getByLabel("File", { exact: true }).setInputFiles(file);
      await page.getByText(/has 0\.0 MiB/).waitFor();
    },
    fields: ["What it is for"],
  },
  {
    path: "pools",
    open: (page) => page.getByText("Add a host to den/racks").waitFor(),
    fields: ["Its name here"],
  },
  {
    path: "people",
    open: (page) => page.getByText("Add a user to ROOT/acme/dev").waitFor(),
    fields: ["Name", "Password", "To", "What a new one is for"],
    press: ["Make a key"],
  },
];
test("so are those that stand behind a choice, a row or a console, for whoever is no operator", async () => {
  const { url, credential } = journeys.served;
  const say = async (method: string, path: string, body: object): Promise<void> => {
    const headers = { authorization: `Bearer ${credential}`, "content-type": "application/json" };
    const answer = await fetch(`${url}${path}`, { method, headers, body: JSON.stringify(body) });
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await answer.text()}`);
  };
  const password = "a long enough password";
  await say("POST", "/domains", { path: "ROOT/acme" });
  await say("POST", "/accounts", { path: "ROOT/acme/dev" });
  await say("POST", "/users", { account: "ROOT/acme/dev", name: "ann", role: "account-admin", password });
  await makeCell(journeys.served, "den", "ROOT/acme/dev");
  await say("PUT", "/cells/den/model", { den: { "x.type": "Cell", web: { "x.type": "VM", "x.memory": 64 } } });
  await say("POST", "/pools", { cell: "den", name: "racks" });
  await say("POST", "/volumes", { name: "data", sizeMiB: 64, account: "ROOT/acme/dev" });

  const { page, expect, letPass, end } = await journeys.person();
  const broken = brokenAt(page);
  await page.goto(`${url}/ui/`);
  await page.getByRole("textbox", { name: "User" }).fill("ann@ROOT/acme");
  await page.getByRole("textbox", { name: "Password" }).fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await expect(/401/);
  letPass(/status of 4\d\d/);
  for (const { path, open, fields, press = [] } of behind) {
    await page.goto(`${url}/ui/${path}`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await open(page);
    await openParts(page, path);
    // What a search finds nothing for would go, with its fields.
    const names = await fillAll(fieldsOf(page).and(page.locator(":not(#search)")));
    for (const field of fields)
      assert.ok(
        names.some((name) => name.startsWith(field)),
        `${path}: no ${field} among ${names.join(", ")}`,
      );
    for (const name of press) await page.getByRole("button", { name, exact: true }).click();
    await sendAll(page, path);
    await isSound(page, path);
  }
  assert.deepEqual(broken, []);
  await end();
});

test("a page of another origin changes nothing, frames nothing and opens no session, where the gateway's own page does", async () => {
  const { page, context, signIn, expect, end } = await journeys.person();
  const { url, credential } = journeys.served;
  await signIn();
  await expect(/401/);
  const stranger = await context.newPage();
  // The same site by its address, so the browser sends the cookie along.
  await stranger.goto(`http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/`);
  const post = (path: string, headers: object) =>
    `fetch(${JSON.stringify(`${url}/domains`)}, { method: "POST", credentials: "include", body: JSON.stringify({ path: ${JSON.stringify(path)} }),
       headers: ${JSON.stringify(headers)} }).then((answer) => answer.status, () => "refused by the browser")`;
  const asForm = `fetch(${JSON.stringify(`${url}/domains`)}, { method: "POST", mode: "no-cors", credentials: "include", body: JSON.stringify({ path: "ROOT/form" }) }).then(() => 0)`;
  assert.equal(await stranger.evaluate(post("ROOT/foreign", { "cells-page": "1" })), "refused by the browser");
  await stranger.evaluate(asForm);
  assert.equal(await page.evaluate(post("ROOT/own", { "cells-page": "1", "content-type": "application/json" })), 200);
  const domains = await (await fetch(`${url}/domains`, { headers: { authorization: `Bearer ${credential}` } })).text();
  assert.match(domains, /ROOT\/own/, "the same request of the own page");
  assert.doesNotMatch(domains, /ROOT\/(?:foreign|form)/);

  const framed = async (address: string): Promise<string> => {
    const frame = `new Promise((done) => {
      const frame = document.createElement("iframe");
      frame.onload = () => done();
      frame.src = ${JSON.stringify(address)};
      document.body.append(frame);
    })`;
    await stranger.evaluate(frame);
    return stranger.frames().at(-1)?.url() ?? "";
  };
  assert.match(await framed(`${url}/ui/`), /^chrome-error:/);
  assert.match(await framed(`${stranger.url()}again`), /\/again$/, "a page that may be framed is");

  const socket = `new Promise((done) => {
    const socket = new WebSocket(${JSON.stringify(`${url.replace("http", "ws")}/cells/shop/sessions`)}, "cells.session.v1");
    socket.onopen = () => done("open");
    socket.onclose = () => done("closed");
  })`;
  assert.equal(await stranger.evaluate(socket), "closed");
  await page.goto(`${url}/ui/machines?cell=shop`);
  await page.getByRole("button", { name: "shop/web1", exact: true }).click();
  await page.getByRole("button", { name: "Console shop/web1" }).click();
  const screen = page.getByRole("region", { name: "Console of shop/web1" });
  await screen.click();
  const title = await page.title();
  await page.keyboard.type("\u001b]0;taken\u0007<img src=x onerror=alert(1)>");
  await page.keyboard.press("Enter");
  await eventually("its guest has read it", async () =>
    ((await screen.locator(".xterm-rows").textContent()) ?? "").includes("onerror"),
  );
  assert.equal(await page.title(), title, "a terminal's title is not the page's");
  await isSound(page, "a console");

  const granted = `fetch("/cells/shop/sessions", { method: "POST", headers: { "cells-page": "1", "content-type": "application/json" },
    body: JSON.stringify({ vm: "shop/web1", verb: "console" }) }).then((answer) => answer.json()).then(({ session }) => session)`;
  const session = String(await page.evaluate(granted));
  const opens = (capability: string): Promise<unknown> =>
    page.evaluate(`new Promise((done) => {
      const address = new URL("/cells/shop/sessions", location.href.replace("http", "ws"));
      const socket = new WebSocket(address, ["cells.session.v1", "cells.capability.${capability}"]);
      socket.onopen = () => { done("open"); socket.close(); };
      socket.onerror = () => done("closed");
    })`);
  assert.deepEqual([await opens(session), await opens(session)], ["open", "closed"], "a capability opens once");
  await expect(/403/);

  const under = async (host: string): Promise<number> => {
    const { port } = new URL(url);
    const asked = request({ host: "127.0.0.1", port, path: "/ui/", headers: { host } }).end();
    const [answer] = await once(asked, "response");
    answer.resume();
    return answer.statusCode;
  };
  assert.deepEqual([await under("rebound.example"), await under(new URL(url).host)], [403, 200]);
  await stranger.close();
  await end();
});

test("so are those of the sign-in form, which says of each why nobody is in", async () => {
  const { page, letPass, end } = await journeys.person();
  const broken = brokenAt(page);
  letPass(/status of 4\d\d/);
  for (const [way, fields] of [
    ["password", ["User", "Password"]],
    ["credential", ["Credential"]],
    ["invitation", ["Invitation", "Name of your account, and of you", "A password"]],
  ] as const) {
    await page.goto(`${journeys.served.url}/ui/`);
    await page.getByRole("radio", { name: way }).check();
    assert.deepEqual(await fillAll(fieldsOf(page)), fields);
    await sendAll(page, way);
    await page.getByRole("alert").waitFor();
    await isSound(page, `to sign in with ${way}`);
  }
  assert.deepEqual(broken, []);
  await end();
});
