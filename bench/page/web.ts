import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, type BrowserContext, chromium } from "playwright-core";
import { type Served, serveSimulation } from "../../simulator/serve/served.ts";
import { buildPage } from "../../web/build.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";

const executablePath = "/usr/bin/chromium-headless-shell";
const patienceMs = 180_000;

interface Painted {
  readonly pageMs: readonly number[];
  readonly bareMs: readonly number[];
}
const median = (all: readonly number[]): number => all.toSorted((one, other) => one - other)[all.length >> 1] ?? 0;

/** A page without anything: the same models, fetched and read, and 40 rows. Milliseconds since it was asked for. */
const bare = `<!doctype html><table id="rows"></table><script>(async () => {
  const cells = await (await fetch("/cells")).json();
  const models = await Promise.all(cells.map(async ({ cell }) => (await fetch("/cells/" + cell + "/model?state=true")).json()));
  const found = [];
  const look = (value, path) => { for (const [name, each] of Object.entries(value)) if (each && typeof each === "object" && !name.startsWith("$")) {
    if (each["x.type"] === "VM") found.push([path + name, each.$state.phase, each.$state.host]); else look(each, path + name + "/"); } };
  for (const model of models) look(model, "");
  document.getElementById("rows").innerHTML = found.slice(0, 40).map((row) => "<tr><td>" + row.join("</td><td>") + "</td></tr>").join("");
})()</script>`;
/** When the page has machines in its list, and they were painted. */
const paintedWhen = (isThere: string): string => `new Promise((resolve) => {
  const look = () => requestAnimationFrame(() => (${isThere}) ? requestAnimationFrame(() => resolve(performance.now())) : look());
  look();
})`;
const rowsAre = (least: number): string =>
  paintedWhen(`document.querySelectorAll("tbody tr[aria-rowindex]").length >= ${least}`);

async function paintedWith(machines: number, tries: number, page: string): Promise<Painted> {
  const served = await serveSimulation({ hosts: machines > 100 ? 20 : 3, machines, seed: 1, port: 0, page });
  let browser: Browser | null = null;
  try {
    browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    await signIn(context, served);
    const tab = await context.newPage();
    tab.setDefaultTimeout(patienceMs);
    await tab.goto(`${served.url}/ui/machines`);
    await tab.getByText(`${machines} machines`, { exact: true }).waitFor();
    await context.route(`${served.url}/bare`, (route) => route.fulfill({ contentType: "text/html", body: bare }));
    const [pageMs, bareMs]: [number[], number[]] = [[], []];
    for (let at = 0; at < tries; at += 1) {
      await tab.goto(`${served.url}/ui/machines`, { waitUntil: "commit" });
      pageMs.push(Number(await tab.evaluate(rowsAre(Math.min(10, machines)))));
      await tab.goto(`${served.url}/bare`, { waitUntil: "commit" });
      bareMs.push(Number(await tab.evaluate(paintedWhen('document.querySelectorAll("tr").length > 0'))));
    }
    return { pageMs, bareMs };
  } finally {
    await browser?.close();
    await served.stop();
  }
}
/** The cookie, as the page gets it. */
async function signIn(context: BrowserContext, { url, credential }: Pick<Served, "url" | "credential">) {
  const headers = { origin: url, "cells-page": "1", "sec-fetch-site": "same-origin" };
  const answer = await context.request.post(`${url}/login`, { headers, data: { credential } });
  if (!answer.ok()) throw new Error(`nobody was signed in: ${answer.status()} ${await answer.text()}`);
}

async function run({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const directory = await mkdtemp(join(tmpdir(), "cells-bench-page-"));
  try {
    const { sizes } = await buildPage(directory);
    const all = [...sizes].reduce((sum, [, size]) => sum + size, 0);
    const main = [...sizes].filter(([name]) => /^main-/.test(name)).reduce((sum, [, size]) => sum + size, 0);
    const [few, many, tries] = quick ? [10, 100, 3] : [10, 1000, 15];
    say(`${few} machines`);
    const small = await paintedWith(few, tries, directory);
    say(`${many} machines`);
    const large = await paintedWith(many, tries, directory);
    const range = (values: readonly number[]): [number, number] => [Math.min(...values), Math.max(...values)];
    const figure = (what: string, unit: Figure["unit"], value: number, atMost: number | null): Figure => ({
      what,
      unit,
      value,
      range: null,
      atMost,
    });
    const painted = (what: string, values: readonly number[]): Figure => ({
      what,
      unit: "ms",
      value: median(values),
      range: range(values),
      atMost: null,
    });
    return [
      figure("first load, compressed", "KB", main / 1000, 200),
      figure("all pages together, compressed", "KB", all / 1000, null),
      figure(`${many} machines painted, against a bare page`, "×", median(large.pageMs) / median(large.bareMs), 2),
      {
        ...figure(`painted, ${many} machines against ${few}`, "×", median(large.pageMs) / median(small.pageMs), 1.3),
        note: "with the transfer, which the goal leaves out",
      },
      painted(`the page, ${many} machines`, large.pageMs),
      painted(`a bare page, ${many} machines`, large.bareMs),
      painted(`the page, ${few} machines`, small.pageMs),
    ];
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

export const web: Bench = {
  title: "The page",
  method:
    "Chromium without a screen over a served simulation. The list of machines is loaded again and again, until its rows are painted; beside it a bare page fetches and reads the same models and writes 40 rows. Medians.",
  run,
};
