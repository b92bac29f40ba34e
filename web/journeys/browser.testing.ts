import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Locator, type Page } from "playwright-core";
import { eventually } from "../../runtime/installation.testing.ts";
import { type Served, type ServedOptions, serveSimulation } from "../../simulator/serve/served.ts";
import { buildPage } from "../build.ts";

/**
 * A person's way through the page, in Debian's Chromium without a screen, over a served simulation. What a person would not see fails it as
 * well: an error in the console, a violation of the content security policy, a request that leaves the origin.
 */
const executablePath = "/usr/bin/chromium-headless-shell";

export interface Journeys {
  readonly served: Served;
  readonly browser: Browser;
  /** A browser that nobody has used yet. */
  person(options?: Parameters<Browser["newContext"]>[0]): Promise<Person>;
  end(): Promise<void>;
}
export interface Person {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What went wrong that nobody sees; it is empty at the end of a journey. */
  readonly faults: readonly string[];
  /** These are expected in what comes: each is taken out once. */
  expect(fault: RegExp): Promise<void>;
  /** What is tried again by itself may be refused once, a few times or never: these are let pass. */
  letPass(fault: RegExp): void;
  signIn(): Promise<void>;
  end(): Promise<void>;
}

export async function beginJourneys(
  size: Pick<ServedOptions, "hosts" | "machines" | "screens" | "volumes"> & { readonly seed?: number },
): Promise<Journeys> {
  assert.ok(existsSync(executablePath), "the browser is not there: run `./cells setup`");
  const page = await mkdtemp(join(tmpdir(), "cells-journeys-"));
  await buildPage(page);
  const served = await serveSimulation({ seed: 1, ...size, port: 0, page });
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  return {
    served,
    browser,
    person: (options) => personWith(browser, served, options),
    end: async () => {
      await browser.close();
      await served.stop();
      await rm(page, { recursive: true, force: true });
    },
  };
}

async function personWith(
  browser: Browser,
  served: Served,
  options: Parameters<Browser["newContext"]>[0] = {},
): Promise<Person> {
  const context = await browser.newContext({
    reducedMotion: "reduce",
    viewport: { width: 1280, height: 900 },
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const faults: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") faults.push(message.text());
  });
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("request", (request) => {
    const { hostname } = new URL(request.url());
    if (hostname !== "127.0.0.1" && !hostname.endsWith(".localhost")) faults.push(`a request to ${request.url()}`);
  });
  const passing: RegExp[] = [];
  const expect = async (expected: RegExp): Promise<void> => {
    // What a console says comes on its own way.
    const at = await eventually(`a fault like ${expected}`, () => {
      const found = faults.findIndex((fault) => expected.test(fault));
      return found < 0 ? false : { found };
    });
    faults.splice(at.found, 1);
  };
  return {
    page,
    context,
    faults,
    expect,
    letPass: (fault) => {
      passing.push(fault);
    },
    signIn: async () => {
      await page.goto(`${served.url}/ui/#code=${await served.code()}`);
      await page.getByRole("button", { name: "Sign in as the operator" }).click();
      await page.getByRole("heading", { name: "Overview" }).waitFor();
    },
    end: async () => {
      await context.close();
      const left = faults.filter((fault) => !passing.some((expected) => expected.test(fault)));
      assert.deepEqual(left, []);
    },
  };
}

/** A cell of an account, which takes a model by now: asked sooner, the gateway would make another cell of that name. */
export async function makeCell({ url, credential }: Served, cell: string, account: string): Promise<void> {
  const headers = { authorization: `Bearer ${credential}`, "content-type": "application/json" };
  const body = JSON.stringify({ "x.type": "CellController", "x.account": account, "x.cell": { "x.type": "Cell" } });
  const wanted = await fetch(`${url}/cells/root/model/root/cells/${cell}`, { method: "PUT", headers, body });
  assert.ok(wanted.ok, `${cell}: ${wanted.status} ${await wanted.text()}`);
  await eventually(
    `the cell ${cell} is there`,
    async () => (await fetch(`${url}/cells/${cell}/model`, { headers })).ok,
  );
}

/** A browser that has much to do may lose a drag, as a person would see: it is tried again until the dialogue about it is there, which then covers all else. */
export const dragUntil = (dialog: Locator, what: Locator, to: Locator): Promise<unknown> =>
  eventually("it is dropped", async () => {
    if (await dialog.isVisible()) return true;
    await what.dragTo(to, { timeout: 3000 }).catch(() => undefined);
    return await dialog.waitFor({ timeout: 1000 }).then(
      () => true,
      () => false,
    );
  });

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** Whom the page would keep out, as far as a program finds it. */
export async function nobodyIsKeptOut(page: Page, where: string): Promise<void> {
  await page.evaluate(axe);
  const found = await page.evaluate(
    "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' ')))",
  );
  assert.deepEqual(found, [], where);
}

/**
 * What a screen reader would be told is as `golden/NAME.txt` has it; with `CELLS_GOLDEN=write` that file is written anew. What differs from run to run
 * (times, which host has how much, UIDs, and at which host a machine stands) is `‹…›`.
 */
export async function likeGolden(page: Page, name: string): Promise<void> {
  const file = join(import.meta.dirname, "golden", `${name}.txt`);
  const text = `${await page.locator("body").ariaSnapshot()}\n`
    .replace(/\b\d+ (?:s|min|h|d)\b/g, "‹time›")
    .replace(/[\d.]+ of ([\d.]+ [GM]iB)/g, "‹used› of $1")
    .replace(/paragraph: \d+ machines?/g, "paragraph: ‹count› machines")
    .replace(/\bpv-[0-9a-f-]{36}\b/g, "‹volume›")
    .replace(/\bhost h\d+ \((sender|receiver)\)/g, "host ‹host› ($1)");
  if (process.env.CELLS_GOLDEN === "write") await writeFile(file, text);
  assert.equal(text, await readFile(file, "utf8").catch(() => ""), `${name}: CELLS_GOLDEN=write writes it anew`);
}
