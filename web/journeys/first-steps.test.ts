import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
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
  const enter = first.page.getByRole("button", { name: "Sign in as the operator" });
  await enter.waitFor();
  await likeGolden(first.page, "code-asks-first");
  const { status } = await first.page.request
    .get(`${served.url}/login`)
    .then((answer) => ({ status: answer.status() }));
  assert.equal(status, 401, "a link alone signs nobody in");
  await enter.click();
  await first.page.getByText("All is well.").waitFor();
  assert.ok(!first.page.url().includes("code"), "the code does not stay in the address");
  await first.expect(/401/);
  await likeGolden(first.page, "overview");

  const second = await journeys.person();
  await second.page.goto(address);
  await second.page.getByRole("alert").waitFor();
  await likeGolden(second.page, "code-used-before");
  for (const _ of [1, 2]) await second.expect(/401/);
  await second.end();

  await first.page.reload();
  await first.page.getByText("All is well.").waitFor();
  await first.page.getByRole("button", { name: "Sign out" }).click();
  await first.page.getByRole("button", { name: "Sign in" }).waitFor();
  await first.page.reload();
  await first.page.getByRole("button", { name: "Sign in" }).waitFor();
  await first.expect(/401/);
  await first.end();
});

test("`cells web` has the page on this machine, signed in, and changes pass through it", async () => {
  const { url, credential } = journeys.served;
  const directory = await mkdtemp(join(tmpdir(), "cells-web-"));
  const file = join(directory, "cloud.json");
  await writeFile(file, JSON.stringify({ url, credential }), { mode: 0o600 });
  const main = join(import.meta.dirname, "../../cli/main.ts");
  const command = spawn(process.execPath, [main, "web"], {
    env: { ...process.env, CELLS_CONFIG: file },
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const [address] = (await once(createInterface(command.stdout), "line")) as [string];
    assert.match(address, /^http:\/\/[0-9a-f]{32}\.localhost:\d+\/ui\/#code=/);
    assert.ok(!address.startsWith(url));
    const { page, context, expect, end } = await journeys.person();
    await page.goto(address);
    await page.getByRole("button", { name: "Sign in as the operator" }).click();
    await page.getByText("All is well.").waitFor();
    const kept = await context.cookies();
    assert.deepEqual(
      kept.map(({ domain, httpOnly, sameSite }) => [domain, httpOnly, sameSite]),
      [[new URL(address).hostname, true, "Strict"]],
      "the browser has one cookie, of that name alone",
    );
    assert.ok(!kept.some(({ name }) => name.includes("__Host")), "and none of the gateway");
    await expect(/401/);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("button", { name: "Sign in" }).waitFor();
    await end();
  } finally {
    command.kill("SIGINT");
    await once(command, "exit");
    await rm(directory, { recursive: true });
  }
});
