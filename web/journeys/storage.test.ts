import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { appendFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { eventually } from "../../runtime/installation.testing.ts";
import { beginJourneys, type Journeys, likeGolden, makeCell, nobodyIsKeptOut, type Person } from "./browser.testing.ts";

const MiB = 2 ** 20;
/** A way to the gateway on which files that are brought stand still after a while, until somebody cuts them off or lets them go on. */
class Way {
  /** Octets of each request that brings some; null: it is not held. */
  holdsAt: number | null = null;
  /** A browser sends by itself what broke on a connection that it had used before: whether that breaks too, and the page alone can go on. */
  breaksResent = false;
  readonly #server: Server;
  readonly #ends = new Set<Socket>();
  readonly #held = new Set<() => void>();
  constructor(port: number) {
    this.#server = createServer((near) => {
      const far = connect(port, "127.0.0.1");
      let [came, isUpload] = [0, false];
      const end = (): void => {
        for (const each of [near, far]) {
          each.destroy();
          this.#ends.delete(each);
        }
      };
      for (const each of [near, far]) {
        this.#ends.add(each);
        each.on("error", () => undefined).on("close", end);
      }
      far.pipe(near);
      near.on("data", (chunk: Buffer) => {
        if (chunk.includes("PUT /uploads/")) {
          [came, isUpload] = [0, true];
          if (this.breaksResent && !/\r\ncontent-range:/i.test(chunk.toString("latin1"))) {
            end();
            return;
          }
        }
        came += chunk.length;
        const isHeld = isUpload && this.holdsAt !== null && came >= this.holdsAt;
        if (isHeld) this.#held.add(end);
        if (far.write(chunk) && !isHeld) return;
        near.pause();
        if (!isHeld) far.once("drain", () => near.resume());
      });
    });
  }
  async open(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }
  get holds(): number {
    return this.#held.size;
  }
  /** @param next where the next ones stand still */
  cut(next: number | null): void {
    this.holdsAt = next;
    for (const end of this.#held) end();
    this.#held.clear();
  }
  close(): void {
    this.#server.close();
    for (const end of this.#ends) end.destroy();
  }
}

/** Two tenants beside CaaS, which is the real one: ann's cell is `den`, and what she gives him bob has in `ROOT/acme/gold`. */
let journeys: Journeys;
let [directory, way] = ["", null as Way | null];
const password = "a long enough password";
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "cells-brought-"));
  journeys = await beginJourneys({ hosts: 3, machines: 2, volumes: true });
  await say("POST", "/domains", { path: "ROOT/acme" });
  for (const [account, user] of [
    ["ROOT/acme/dev", "ann"],
    ["ROOT/acme/gold", "bob"],
  ] as const) {
    await say("POST", "/accounts", { path: account });
    await say("POST", "/users", { account, name: user, role: "account-admin", password });
  }
  await makeCell(journeys.served, "den", "ROOT/acme/dev");
  const model = {
    den: {
      "x.type": "Cell",
      web: { "x.type": "VM", "x.memory": 64 },
      db: { disk: { "x.type": "Volume", "x.size": 64 } },
      at: { "x.type": "VolumeConnection", "x.vm": "<ref:/den/web>", "x.volume": "<ref:/den/db/disk>" },
    },
  };
  await say("PUT", "/cells/den/model", model);
});
after(async () => {
  way?.close();
  await journeys?.end();
  await rm(directory, { recursive: true, force: true });
});
const say = async (method: string, path: string, body: object): Promise<void> => {
  const { url, credential } = journeys.served;
  const headers = { authorization: `Bearer ${credential}`, "content-type": "application/json" };
  const answer = await fetch(`${url}${path}`, { method, headers, body: JSON.stringify(body) });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await answer.text()}`);
};
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const enterAs = async (user: string, url = journeys.served.url): Promise<Person> => {
  const person = await journeys.person();
  const { page } = person;
  await page.goto(`${url}/ui/`);
  await page.getByRole("textbox", { name: "User" }).fill(`${user}@ROOT/acme`);
  await page.getByRole("textbox", { name: "Password" }).fill(password);
  await button(page, "Sign in").click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await person.expect(/401/);
  return person;
};
const card = (page: Page, name: string) => page.getByRole("listitem").filter({ hasText: `and changes of ${name}` });
const open = async (page: Page, name: string) => {
  const found = card(page, name);
  await found.getByText(`Versions, shares and changes of ${name}`).click();
  return found;
};
const make = async (page: Page, name: string, size: string): Promise<void> => {
  const form = page.getByRole("region", { name: "A new persistent volume" });
  await form.getByRole("textbox", { name: "Name" }).fill(name);
  await form.getByRole("spinbutton", { name: "Size in MiB" }).fill(size);
  await form.getByRole("textbox", { name: "Tags" }).fill("db first");
  await form.getByText(`cells volume create ${name} --size ${size} --tag db --tag first`).waitFor();
  await form.getByRole("button", { name: "Make it" }).click();
};

test("a persistent volume is made, cloned, shared with another account, which copies it, and is deleted once that is said", async () => {
  const [ann, bob] = [await enterAs("ann"), await enterAs("bob")];
  const { page } = ann;
  await page.keyboard.press("t");
  await page.getByText("There is none yet that you may see.").waitFor();
  await make(page, "data", "64");
  await page.getByText("1 persistent volume.").waitFor();
  const data = await open(page, "data");
  await data.getByText("✓ ready").waitFor();
  await data.getByText("It is shared with nobody.").waitFor();
  await data.getByRole("textbox", { name: "The clone is called" }).fill("second");
  await button(page, "Clone data").click();
  await page.getByText("2 persistent volumes.").waitFor();
  await page.getByRole("searchbox").fill("second");
  await page.getByText("1 persistent volume.").waitFor();
  await page.getByRole("searchbox").fill("");
  await card(page, "data").waitFor();

  await bob.page.keyboard.press("t");
  await bob.page.getByText("There is none yet that you may see.").waitFor();
  const again = await open(page, "data");
  await again.getByRole("textbox", { name: "Path" }).fill("ROOT/acme/gold");
  await page.getByText("cells volume share data copy --account ROOT/acme/gold").waitFor();
  await button(page, "Share data").click();
  await button(page, "Share data").and(page.locator(":enabled")).waitFor();
  await again.getByRole("button", { name: "Unshare copy for the account ROOT/acme/gold" }).waitFor();
  await page.getByRole("searchbox").fill("data");
  await page.getByText("1 persistent volume.").waitFor();
  await likeGolden(page, "storage");
  await page.getByRole("searchbox").fill("");

  await bob.page.reload();
  await bob.page.getByText("1 persistent volume.").waitFor();
  const his = await open(bob.page, "data");
  await his.getByText("data is shared with you, and its owner's people alone change it").first().waitFor();
  assert.ok(await button(bob.page, "Delete data").isDisabled());
  await his.getByRole("textbox", { name: "The clone is called" }).fill("mine");
  await button(bob.page, "Clone data").click();
  await card(bob.page, "mine").waitFor();

  await again.getByRole("button", { name: "Unshare copy for the account ROOT/acme/gold" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Unshare", exact: true }).click();
  await again.getByText("It is shared with nobody.").waitFor();
  await open(page, "second");
  await button(page, "Delete second").click();
  const sure = page.getByRole("group", { name: "Delete second?" });
  await sure.getByText("Its data is lost. Copies of it stay.").waitFor();
  await sure.getByRole("button", { name: "Leave it as it is" }).click();
  await button(page, "Delete second").click();
  await button(page, "Delete second with all its data").click();
  await page.getByText("1 persistent volume.").waitFor();
  await card(page, "data").waitFor();
  await bob.page.reload();
  await bob.page.getByText("1 persistent volume.").waitFor();
  await card(bob.page, "mine").waitFor();
  await ann.end();
  await bob.end();
});

const newVolume = (page: Page) => page.getByRole("region", { name: "A new persistent volume" });
const chooseFile = async (page: Page, file: Parameters<ReturnType<Page["locator"]>["setInputFiles"]>[0]) => {
  const form = newVolume(page);
  await form.getByRole("combobox", { name: "Comes from" }).selectOption("a file of this machine");
  await form.getByLabel("File", { exact: true }).setInputFiles(file);
  return form;
};
/** It has begun, and is not at its end. */
const isOnItsWay = async (page: Page, held: Way): Promise<void> => {
  await page.getByText(/\d+ of 24 MiB sent/).waitFor();
  await eventually("it stands still", () => held.holds > 0);
  const bar = page.getByRole("progressbar", { name: "Sent" });
  await eventually("it has come so far", async () => Number(await bar.getAttribute("value")) > 0);
  assert.ok(Number(await bar.getAttribute("value")) < 24 * MiB, "it says what is sent, and not what is to be");
};

test("a file of one's own becomes a volume: what is sent is said, and it goes on where its connection broke", async () => {
  const held = new Way(Number(new URL(journeys.served.url).port));
  way = held;
  const { page, letPass, end } = await enterAs("ann", await held.open());
  // A connection that breaks, and a gateway that does not know it yet, stand in a browser's console.
  letPass(/net::ERR_|status of (?:404|409)/);
  const brings: string[] = [];
  page.on("request", (request) => {
    if (request.method() === "PUT" && request.url().includes("/uploads/"))
      brings.push(request.headers()["content-range"] ?? "all");
  });
  const bytes = randomBytes(24 * MiB);
  const file = join(directory, "My disk.img");
  await writeFile(file, bytes);
  await page.keyboard.press("t");
  await card(page, "data").waitFor();
  const form = await chooseFile(page, file);
  const name = form.getByRole("textbox", { name: "Name" });
  assert.equal(await name.inputValue(), "My-disk");
  assert.equal(await form.getByRole("combobox", { name: "Its format" }).inputValue(), "raw");
  await form.getByText("My disk.img has 24.0 MiB. Stay on this page until it is sent.").waitFor();
  await form.getByText("cells volume create My-disk --upload 'My disk.img' --format raw").waitFor();
  await likeGolden(page, "storage-file");
  await nobodyIsKeptOut(page, "the form with a file");
  await name.fill("data");
  held.holdsAt = 6 * MiB;
  await form.getByRole("button", { name: "Make it" }).click();
  await isOnItsWay(page, held);
  held.breaksResent = true;
  held.cut(null);
  await page.getByText(/^The connection broke off: it went on at [1-9]\d*\.\d MiB\.$/).waitFor();
  await page.getByRole("alert").filter({ hasText: "the account has a persistent volume data already" }).waitFor();
  assert.deepEqual([brings.length, brings[0]], [2, "all"]);
  assert.match(brings[1] ?? "", /^bytes [1-9]\d*-25165823\/25165824$/);
  const uploads = `fetch("/uploads", { headers: { "cells-page": "1" } }).then((answer) => answer.json())`;
  const there = (await page.evaluate(uploads)) as readonly { readonly sha256: string }[];
  assert.deepEqual(
    there.map(({ sha256 }) => sha256),
    [createHash("sha256").update(bytes).digest("hex")],
  );
  await page.getByText("24 MiB were brought, and are of no volume yet").waitFor();

  await name.fill("brought");
  await form.getByRole("button", { name: "Make it" }).click();
  const brought = await open(page, "brought");
  await brought.getByText("✓ ready").waitFor();
  assert.equal(brings.length, 2, "what is there is not sent again");
  await end();
});

test("a file that somebody leaves, that changes on its way, or that names another file becomes nothing, and it is said why", async () => {
  const held = new Way(Number(new URL(journeys.served.url).port));
  way?.close();
  way = held;
  const { page, letPass, expect, end } = await enterAs("ann", await held.open());
  letPass(/net::ERR_|status of (?:404|409)/);
  let at = "";
  page.on("request", (request) => {
    if (request.method() === "PUT") at = new URL(request.url()).pathname;
  });
  const gone = (): Promise<unknown> =>
    eventually("nothing of it is kept", async () => {
      const there = `fetch(${JSON.stringify(at)}, { headers: { "cells-page": "1" } }).then(({ status }) => status)`;
      return (await page.evaluate(there)) === 404;
    });
  const file = join(directory, "left.img");
  await writeFile(file, randomBytes(24 * MiB));
  await page.keyboard.press("t");
  await card(page, "data").waitFor();
  const form = await chooseFile(page, file);
  held.holdsAt = 6 * MiB;
  await form.getByRole("button", { name: "Make it" }).click();
  await isOnItsWay(page, held);
  await button(page, "Leave it").click();
  held.cut(6 * MiB);
  await page.getByText("the upload was left: nothing of it is kept").waitFor();
  await gone();

  await form.getByRole("button", { name: "Make it" }).click();
  await isOnItsWay(page, held);
  await appendFile(file, "more");
  held.cut(null);
  await page.getByText("left.img has changed since it was chosen, or can be read no longer: choose it again").waitFor();

  const hostile = Buffer.alloc(MiB);
  hostile.write("QFI\xfb", 0, "latin1");
  hostile.writeUInt32BE(3, 4);
  hostile.writeBigUInt64BE(4096n, 8);
  hostile.writeUInt32BE(11, 16);
  await chooseFile(page, { name: "hostile.qcow2", mimeType: "", buffer: hostile });
  assert.equal(await form.getByRole("combobox", { name: "Its format" }).inputValue(), "qcow2");
  await form.getByRole("button", { name: "Make it" }).click();
  const sentence =
    "the upload is refused: it names a backing file, another file that it would read; write it anew with";
  await page.getByRole("alert").filter({ hasText: sentence }).waitFor();
  await expect(/400/);
  await gone();
  assert.equal(await card(page, "hostile").count(), 0);
  assert.equal(await card(page, "left").count(), 0);
  await end();
});

test("a cell that is to go offers to keep its volumes, and what is kept outlives it", async () => {
  const { page, end } = await enterAs("ann");
  await page.keyboard.press("c");
  await button(page, "Delete den").click();
  await button(page, "What would go?").click();
  await button(page, "Keep den/db/disk as the persistent volume den-db-disk").click();
  await page.getByText("den/db/disk goes on as the persistent volume den-db-disk").waitFor();
  await page.getByText(/elements go with den, and no data/).waitFor();
  await button(page, "Delete den").last().click();
  await page.getByText(/den is being deleted|There is no cell|0 cells/).waitFor();
  await page.keyboard.press("t");
  const kept = await open(page, "den-db-disk");
  await kept.getByText("✓ ready").waitFor();
  await eventually("the cell has gone", async () => {
    const { url, credential } = journeys.served;
    const answer = await fetch(`${url}/cells/den/model`, { headers: { authorization: `Bearer ${credential}` } });
    return answer.status === 404 || !(await answer.text()).includes("disk");
  });
  await kept.getByText("✓ ready").waitFor();
  await end();
});

test("who has no part in CaaS is told so, and images are the operator's", async () => {
  const ann = await enterAs("ann");
  await ann.page.keyboard.press("t");
  await ann.page.getByRole("heading", { name: "Persistent volumes", exact: true }).waitFor();
  assert.equal(await ann.page.getByRole("heading", { name: "Images" }).count(), 0);
  await ann.end();
  const { page, signIn, expect, end } = await journeys.person();
  await signIn();
  await expect(/401/);
  await page.keyboard.press("t");
  await page.getByText("64 MiB, at s1; it comes with the installation").waitFor();
  const upload = page.getByRole("form", { name: "Upload an image" });
  await upload
    .getByLabel("A file")
    .setInputFiles({ name: "Debian 12.img", mimeType: "", buffer: Buffer.from("no disk") });
  assert.equal(await upload.getByRole("textbox", { name: "The image is called" }).inputValue(), "debian-12");
  assert.equal(await upload.getByRole("combobox", { name: "Its format" }).inputValue(), "raw");
  await upload.getByRole("button", { name: "Upload it" }).click();
  await upload.getByText("debian-12 is at s1, 1 MiB.").waitFor();
  const called = upload.getByRole("textbox", { name: "The image is called" });
  await eventually("the form is empty again", async () => (await called.inputValue()) === "");
  await upload
    .getByLabel("A file")
    .setInputFiles({ name: "Debian 13.qcow2", mimeType: "", buffer: Buffer.from("no disk") });
  await upload.getByRole("button", { name: "Upload it" }).click();
  await expect(/400/);
  await upload.getByRole("alert").filter({ hasText: "it is no qcow2 image" }).waitFor();
  await button(page, "Delete the image debian-12").click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
  await button(page, "Delete the image debian-12").waitFor({ state: "detached" });
  await end();
});
