import { setTimeout as sleep } from "node:timers/promises";
import { World } from "../../core/controller/world.testing.ts";
import { openIndex } from "../../gateway/caas/volumes/search.ts";
import { uuidOf } from "../../gateway/shared/uuid.ts";
import { nextHeader } from "../../model/contract/tenancy/pages.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { percentile, residentMiBOf } from "../measure.ts";
import { asksSteadily, beside, connects, flood, hold } from "./connections.ts";
import { neighbour } from "./neighbour.ts";
import { type Page, pageAfter, withDoors, withGateway } from "./standing.ts";

/* One measurement in a process of its own, whose processor time is that of what is measured. The answer is one line of JSON. */
const cpuMs = (since?: NodeJS.CpuUsage): number => {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
};

/** Of so many persistent volumes of a hundred accounts: the index made of the model's text, and a thousand questions of people of one account. */
function search(count: number): Readonly<Record<string, number>> {
  const words = ["debian", "web", "db", "golden", "test", "backup", "mail", "cache", "build", "log"];
  const groups = Object.fromEntries(
    Array.from({ length: count }, (_, at) => [
      `pv-${uuidOf("bench", String(at))}`,
      {
        name: `disk-${at}`,
        account: `ROOT/acme/a${at % 100}`,
        tags: [` ${words[at % 10]}`],
        text: ` ${words[(at >> 3) % 10]} of ${words[(at >> 6) % 10]} number ${at % 977}`,
        made: "2026-11-26T10:00:00.000Z",
        version: 1,
        versions: 1,
        shares: at % 50 === 0 ? { s1: { kind: "domain", path: "ROOT/acme", right: "copy" } } : {},
        v1: { "x.type": "Volume", "x.size": 64 },
      } satisfies JsonObject,
    ]),
  );
  const written = JSON.stringify(groups);
  const began = process.cpuUsage();
  const index = openIndex(":memory:");
  index.fill("1", JSON.parse(written) as Json);
  const rebuiltMs = cpuMs(began);
  const times: number[] = [];
  for (let at = 0; at < 1000; at += 1) {
    const account = `ROOT/acme/a${at % 100}`;
    const asker = {
      account,
      reach: "account",
      mayRead: true,
      mayChange: true,
      accounts: new Map([[account, "u"]]),
      domains: new Map(),
      cells: new Set<string>(),
    } as const;
    const question = [
      { text: `${words[at % 10]} ${at % 977}` },
      { text: (words[at % 10] ?? "").slice(0, 2) },
      { tag: [words[at % 10] ?? ""] },
      { name: `disk-${at * 7}` },
    ][at % 4];
    const asked = process.cpuUsage();
    index.find(asker, { ...question, limit: 100 });
    times.push(cpuMs(asked));
  }
  index.close();
  return { rebuiltMs, p50Ms: percentile(times, 0.5), p99Ms: percentile(times, 0.99) };
}

/** Page by page, until there is none. Rejects where there are others than so many. */
async function listAll(count: number, page: Page): Promise<void> {
  let [found, next] = await page("");
  while (next !== "") {
    const [more, behind] = await page(next);
    found += more;
    next = behind;
  }
  if (found !== count) throw new Error(`${found} VMs were listed, not ${count}`);
}
/** VMs of all cells, page by page. */
const listing = (count: number): Promise<Readonly<Record<string, number>>> =>
  withGateway(count, async (app) => {
    const page: Page = async (after) => {
      const url = pageAfter(after);
      const answer = await app.inject({ method: "GET", url, headers: { authorization: "Bearer operator" } });
      if (answer.statusCode !== 200) throw new Error(`${answer.statusCode}: ${answer.body.slice(0, 300)}`);
      return [(JSON.parse(answer.body) as readonly Json[]).length, String(answer.headers[nextHeader] ?? "")];
    };
    const walls: number[] = [];
    const cpus: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      const [began, beganMs] = [process.cpuUsage(), performance.now()];
      await listAll(count, page);
      walls.push(performance.now() - beganMs);
      cpus.push(cpuMs(began));
    }
    return { wallMs: percentile(walls, 0.5), cpuMs: percentile(cpus, 0.5), firstMs: walls[0] ?? 0 };
  });

/** Idle, and when all VMs were listed through it, page by page, three times. */
const memory = (count: number): Promise<Readonly<Record<string, number>>> =>
  withDoors(count, async ({ caas: { pid }, page }) => {
    await sleep(5000);
    const idle = residentMiBOf(pid);
    for (let round = 0; round < 3; round += 1) await listAll(count, page);
    return { idleMiB: idle.now, mostMiB: residentMiBOf(pid).most };
  });

/** How much more CaaS has at most while so many connections come that ask nothing. */
const connections = (count: number): Promise<Readonly<Record<string, number>>> =>
  withDoors(25, async ({ caas: { pid, port } }) => {
    await sleep(5000);
    const before = residentMiBOf(pid).now;
    const holder = beside(["hold", String(port), String(count)]);
    try {
      const said = await holder.said;
      return { ...said, moreMiB: residentMiBOf(pid).most - before };
    } finally {
      await holder.end();
    }
  });

/** Changes of one cell's model by so many writers who have all read before any of them writes. `test`: of what each rests on; else by version. */
function writers(count: number, by: "test" | "version"): Readonly<Record<string, number>> {
  const world = new World();
  const groups = Object.fromEntries(Array.from({ length: 16 }, (_, at) => [`g${at}`, { counter: 0 }]));
  world.put({ shop: { "x.type": "Cell", ...groups } });
  const read = () => {
    const { version, body } = world.ask({ method: "GET", path: "" }) as unknown as {
      readonly version: number;
      readonly body: { readonly shop: Readonly<Record<string, { readonly counter: number }>> };
    };
    return { version, shop: body.shop };
  };
  const changes = 640;
  let [again, done] = [0, 0];
  const began = process.cpuUsage();
  const left = Array.from({ length: count }, () => changes / count);
  while (left.some((each) => each > 0)) {
    const seen = left.map((each) => (each > 0 ? read() : null));
    for (const [writer, found] of seen.entries()) {
      if (found === null) continue;
      const counter = found.shop[`g${writer}`]?.counter ?? 0;
      const path = `/shop/g${writer}/counter`;
      const patch = [
        ...(by === "test" ? [{ op: "test", path, value: counter }] : []),
        { op: "replace", path, value: counter + 1 },
      ];
      const more = by === "version" ? { ifMatch: found.version } : {};
      const { status } = world.ask({ method: "PATCH", path: "", patch, ...more });
      if (status === 200) {
        left[writer] = (left[writer] ?? 0) - 1;
        done += 1;
      } else again += 1;
    }
  }
  const tookMs = cpuMs(began);
  const { shop } = read();
  const counted = Object.values(shop).reduce((sum, each) => sum + (each?.counter ?? 0), 0);
  return { cpuMs: tookMs, again, lost: done - counted };
}

const [what = "", count = "0", how = "test", credential = "", localAddress = "", more = ""] = process.argv.slice(2);
const asked = { port: Number(count), path: how, credential, localAddress };
const answers: Readonly<Record<string, () => unknown>> = {
  search: () => search(Number(count)),
  listing: () => listing(Number(count)),
  memory: () => memory(Number(count)),
  writers: () => writers(Number(count), how === "version" ? "version" : "test"),
  connections: () => connections(Number(count)),
  neighbour: () => neighbour(Number(count), how),
  // What these ask of a door is said beside them.
  hold: async () => {
    process.stdout.write(`${JSON.stringify(await hold(Number(count), Number(how)))}\n`);
    // It holds them until it is ended.
    return new Promise(() => setInterval(() => undefined, 1000));
  },
  flood: () => flood(asked, Number(more)),
  connects: () => connects(asked, Number(more)),
  steadily: () => asksSteadily(asked, Number(more)),
};
process.stdout.write(`${JSON.stringify(await answers[what]?.())}\n`);
process.exit(0);
