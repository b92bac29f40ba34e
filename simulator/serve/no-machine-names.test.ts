import assert from "node:assert/strict";
import { test } from "node:test";
import { publishedPath, type Route } from "../../model/contract/route.ts";
import { type RouteName, routeNames, routeOf } from "../../model/contract/routes.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { eventually } from "../../runtime/installation.testing.ts";
import { serveSimulation } from "./served.ts";

/** As the simulation calls its hosts and storage servers, as words of their own: "shop/h1" is an element, and "h1-disk" a name of somebody's. */
const machine = /(?<![\w/-])(?:root\/hosts\/)?[hs]\d+(?![\w/-])/;
const cell = "lab";
/** No element is called as a machine might be. */
const vm = (name: string, more: JsonObject = {}): JsonObject => ({
  [name]: { "x.type": "VM", "x.memory": 40_000, ...more },
  [`${name}-nic`]: {
    "x.type": "VirtualInterface",
    "x.vm": `<ref:/${cell}/${name}>`,
    "x.subnet": `<ref:/${cell}/net>`,
  },
  [`${name}-disk`]: { "x.type": "Volume", "x.size": 64 },
});
const model: JsonObject = {
  [cell]: {
    "x.type": "Cell",
    net: { "x.type": "Subnet", "x.size": 16 },
    ...Object.assign({}, ...["one", "two", "three", "four", "five"].map((name) => vm(name))),
    ...vm("pinned", { "x.placement.host": "h1" }),
    ...vm("grouped", { "x.placement.apartFrom": ["one"], "x.cpuSpeed": 2 }),
    allow: {
      "x.type": "NetworkRule",
      "x.address1": `<ref:/${cell}/net>`,
      "x.address2": `<ref:/${cell}/net>`,
      "x.protocol": "tcp",
      "x.port2": 80,
    },
  },
};
const paths = ["", "/one", "/five", "/one-disk", "/one-nic", "/net", "/allow", "/pinned", "/grouped", "/none"].map(
  (each) => `${cell}${each}`,
);

/** What stands for a parameter, and which questions a route is asked beside the one without any. */
const parameters: Readonly<Record<string, readonly string[]>> = {
  cell: [cell, "root"],
  path: paths,
  name: ["h1", "p1"],
};
const questions: { readonly [name in RouteName]?: readonly string[] } = {
  readModel: ["state=true"],
  readElement: ["state=true", "state=true&until=ready"],
  listElements: ["phase=waiting", "q=h1", "limit=3"],
  explain: [
    ...paths.map((path) => `element=${path}`),
    `from=${cell}/one&to=${cell}/two&port=80`,
    `from=${cell}/one&to=h2`,
  ],
  follow: [`topic=cells&topic=cell:${cell}`, "topic=status", "topic=ha"],
  followCell: ["follow=true", "since=2020-01-01T00:00:00Z"],
};
const bodies: { readonly [name in RouteName]?: readonly JsonObject[] } = {
  putModel: [
    { [cell]: { "x.type": "Cell", huge: { "x.type": "VM", "x.memory": 10_000_000 } } },
    { [cell]: { "x.type": "Cell", huge: { "x.type": "VM", "x.memory": 64, "x.placement.host": "h9" } } },
    {
      [cell]: {
        "x.type": "Cell",
        huge: { "x.type": "VM", "x.memory": 60_000, "x.cpus": 10_000, "x.cpuSpeed": 99_999 },
      },
    },
    { [cell]: { "x.type": "Cell", host: { "x.type": "Host" }, disk: { "x.type": "Volume", "x.size": 2 ** 30 } } },
  ],
  exec: [{ vm: `${cell}/one`, command: ["true"] }],
  grantSession: [
    { vm: `${cell}/one`, verb: "console" },
    { vm: `${cell}/five`, verb: "exec" },
  ],
  moveVm: [{ vm: `${cell}/one`, to: "h2" }],
  forceStop: [{ vm: `${cell}/one` }],
};
/** Not asked: what ends the way of asking itself, or the machines that are looked at; and what is the same for everybody. */
const left: ReadonlySet<RouteName> = new Set([
  "deleteModel",
  "revokeCredential",
  "endHost",
  "openSession",
  "readOpenApi",
] as const);

/** What the tenant has written himself. */
const unsaid: readonly RegExp[] = [/`h9`/g, /\\?"x\.placement\.host\\?": ?\\?"h1\\?"/g];
/** So that nothing was hidden by a refusal. */
const must: readonly RouteName[] = [
  ...(["readElement", "readModel", "listElements", "listAllElements", "followCell", "follow", "explain"] as const),
  ...(["readCell", "listCells", "readCellAudit", "putModel", "readCounters"] as const),
];

/** All ways in which a route is asked. What would change something is tried dry where that can be. */
function* asksOf(
  name: RouteName,
): Generator<{ readonly url: string; readonly body?: JsonObject; readonly readMs: number }> {
  const route: Route = routeOf(name);
  let urls = [publishedPath(route)];
  for (const [whole, key = ""] of publishedPath(route).matchAll(/\{([^}*]+)\*?\}/g))
    urls = urls.flatMap((url) => (parameters[key] ?? ["none"]).map((value) => url.replace(whole, value)));
  const dry = "dryRun" in route.query ? ["dryRun=true"] : [];
  for (const url of urls)
    for (const question of ["", ...(questions[name] ?? [])]) {
      const query = [...(question === "" ? [] : [question]), ...dry].join("&");
      const readMs = route.answer.stream || query.includes("until=") ? 2_000 : 10_000;
      for (const body of route.body === null ? [undefined] : (bodies[name] ?? [{}]))
        yield { url: query === "" ? url : `${url}?${query}`, readMs, ...(body === undefined ? {} : { body }) };
    }
}
interface Answer {
  readonly status: number;
  readonly text: string;
}

test("nobody but the operator reads the name of a machine: each route, event, stream, state, cause, remedy and refusal that there is", {
  // What runs beside a testbed has what that leaves of the processors: a bound for what never ends alone.
  timeout: 600_000,
}, async (t) => {
  const served = await serveSimulation({ hosts: 4, machines: 3, seed: 5, port: 0 });
  t.after(() => served.stop());
  const { credential: operator } = served;
  const ask = async (method: string, url: string, by: string, body?: JsonObject, readMs = 10_000): Promise<Answer> => {
    const headers = { authorization: `Bearer ${by}`, "content-type": "application/json" };
    const signal = AbortSignal.timeout(readMs);
    let [status, text] = [0, ""];
    try {
      const sent = body === undefined ? {} : { body: JSON.stringify(body) };
      const answer = await fetch(`${served.url}${url}`, { method, headers, signal, ...sent });
      status = answer.status;
      for await (const part of answer.body ?? []) text += Buffer.from(part).toString();
    } catch (error) {
      // Of a stream as much as came in that time.
      assert.ok(signal.aborted, String(error));
    }
    return { status, text };
  };
  const states = async () => (await ask("GET", `/cells/${cell}/model?state=true`, operator)).text;
  const put = await ask("PUT", `/cells/${cell}/model`, operator, model);
  assert.equal(put.status, 200, put.text);
  const { credential: tenant } = JSON.parse(
    (await ask("POST", `/cells/${cell}/credentials`, operator, { note: "a tenant" })).text,
  ) as { readonly credential: string };
  const isIn = async (text: RegExp) => text.test(await states());
  await eventually("machines run", () => isIn(/"host":"h\d"/));
  await eventually("others find no place", () => isIn(/no host can hold it/));
  served.perform("power-off h2 for 600000");
  await eventually("a host is not heard", () => isIn(/"host-unreachable"|"host-declared-dead"/));
  // What the operator has done is written down, too.
  await ask("POST", `/cells/${cell}/moves`, operator, { vm: `${cell}/three`, to: "h2" });

  const answered = new Set<RouteName>();
  const shown: string[] = [];
  let known = 0;
  for (const name of routeNames) {
    if (left.has(name)) continue;
    const { method } = routeOf(name);
    const asks = [...asksOf(name)].map(async ({ url, body, readMs }) => {
      const { status, text } = await ask(method, url, tenant, body, readMs);
      if (status > 0 && status < 400) answered.add(name);
      // What he asked for by its name is no news to him.
      const found = machine.exec(unsaid.reduce((left, each) => left.replaceAll(each, ""), text.replaceAll(url, "")));
      if (found !== null)
        shown.push(`${method} ${url}: ${text.slice(Math.max(0, found.index - 150), found.index + 60)}`);
      if (method !== "GET" || status === 0 || status >= 400) return;
      if (machine.test((await ask(method, url, operator, undefined, readMs)).text)) known += 1;
    });
    await Promise.all(asks);
  }
  assert.deepEqual(shown, []);
  for (const name of must) assert.ok(answered.has(name), `${name} answered`);
  assert.ok(known >= 20, `there was something to be found: the operator reads names in ${known} answers`);
});
