import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { beginJourneys, type Journeys } from "./browser.testing.ts";

/**
 * A way to the gateway on which nothing moves for a while, though no connection ends. On those that carried the stream nothing moves ever again, as after
 * a machine that slept, or a gateway that lost its power.
 */
class Way {
  readonly #server: Server;
  readonly #pairs = new Set<{ readonly ends: readonly Socket[]; isStream: boolean }>();
  #isStill = false;
  constructor(port: number) {
    this.#server = createServer((near) => {
      const far = connect(port, "127.0.0.1");
      const pair = { ends: [near, far], isStream: false };
      this.#pairs.add(pair);
      near.on("data", (bytes: Buffer) => {
        pair.isStream ||= bytes.includes("GET /follow");
        far.write(bytes);
      });
      far.on("data", (bytes: Buffer) => near.write(bytes));
      for (const end of pair.ends) {
        end.on("error", () => undefined);
        end.on("close", () => {
          for (const each of pair.ends) each.destroy();
          this.#pairs.delete(pair);
        });
        if (this.#isStill) end.pause();
      }
    });
  }
  async open(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }
  standStill(): void {
    this.#isStill = true;
    for (const { ends } of this.#pairs) for (const end of ends) end.pause();
  }
  goOn(): void {
    this.#isStill = false;
    for (const { ends, isStream } of this.#pairs) if (!isStream || isNew(ends)) for (const end of ends) end.resume();
  }
  close(): void {
    this.#server.close();
    for (const { ends } of this.#pairs) for (const end of ends) end.destroy();
  }
}
/** Nothing was carried on it yet. */
const isNew = ([, far]: readonly Socket[]): boolean => (far?.bytesRead ?? 0) === 0;

const tabs = 8;
let journeys: Journeys;
let way: Way;
let url = "";
before(async () => {
  journeys = await beginJourneys({ hosts: 3, machines: 6 });
  way = new Way(Number(new URL(journeys.served.url).port));
  url = await way.open();
});
after(async () => {
  way?.close();
  await journeys?.end();
});

test("the gateway stands still: all of 8 tabs say since when they know nothing, and come to what is so by themselves", async () => {
  const { served } = journeys;
  const { page, context, expect, end } = await journeys.person();
  await page.goto(`${url}/ui/#code=${await served.code()}`);
  await page.getByRole("button", { name: "Sign in as the operator" }).click();
  await page.getByText("All is well.").waitFor();
  await expect(/401/);
  const others = await Promise.all(Array.from({ length: tabs - 1 }, () => context.newPage()));
  const all = [page, ...others];
  for (const each of others) {
    await each.goto(`${url}/ui/`);
    await each.getByText("All is well.").waitFor();
  }
  const old = (each: typeof page) => each.getByText(/The gateway was last heard at .+: what is shown may be old/);
  for (const each of all) await old(each).waitFor({ state: "detached" });

  way.standStill();
  const [host = ""] = served.busyHosts();
  served.perform(`power-off ${host} for 600000`);
  for (const each of all) await old(each).waitFor({ timeout: 60_000 });
  for (const each of all) await each.getByText("All is well.").waitFor();

  way.goOn();
  for (const each of all) {
    await each.getByText(`Host ${host} is lost`).first().waitFor({ timeout: 60_000 });
    await old(each).waitFor({ state: "detached" });
  }
  await end();
});
