import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { chromium, type Page } from "playwright-core";
import type { Served } from "./served.ts";

/** As `cells setup` puts it there. */
const executablePath = "/usr/bin/chromium-headless-shell";
const patienceMs = 60_000;

interface Picture {
  readonly name: string;
  /** Below the page's address. */
  readonly path: string;
  /** It is taken once this is there. */
  readonly when: (page: Page) => Promise<void>;
}
const pictures: readonly Picture[] = [
  { name: "overview", path: "", when: (page) => page.getByText("All is well.").waitFor() },
  { name: "network", path: "network?cell=shop", when: (page) => page.locator("svg").first().waitFor() },
  {
    name: "placement",
    path: "placement",
    when: (page) =>
      page
        .getByRole("button", { name: /^shop\// })
        .first()
        .waitFor(),
  },
];

/** Takes pictures of the page for documents, each in light and in dark colours. Resolves to their files. Rejects with a sentence where there is no browser. */
export async function takePictures(
  served: Pick<Served, "url" | "code">,
  directory: string,
): Promise<readonly string[]> {
  if (!existsSync(executablePath)) throw new Error("the browser is not there: run `./cells setup`");
  await mkdir(directory, { recursive: true });
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  try {
    const context = await browser.newContext({
      viewport: { width: 1280, height: 720 },
      colorScheme: "light",
      reducedMotion: "reduce",
    });
    const page = await context.newPage();
    page.setDefaultTimeout(patienceMs);
    await page.goto(`${served.url}/ui/#code=${await served.code()}`);
    await page.getByRole("button", { name: "Sign in as the operator" }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    const files: string[] = [];
    for (const { name, path, when } of pictures) {
      await page.goto(`${served.url}/ui/${path}`);
      await when(page);
      for (const [colorScheme, suffix] of [
        ["light", ""],
        ["dark", "-dark"],
      ] as const) {
        await page.emulateMedia({ colorScheme });
        const file = join(directory, `${name}${suffix}.png`);
        await page.screenshot({ path: file });
        files.push(file);
      }
    }
    return files;
  } finally {
    await browser.close();
  }
}
