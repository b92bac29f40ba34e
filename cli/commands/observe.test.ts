import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import type { CellEvent, ServiceEvent } from "../../model/api.ts";
import { Client } from "../connection/client.ts";
import type { Context } from "../context/context.ts";
import { plain } from "../terminal/terminal.ts";
import { type EventsOptions, events } from "./observe.ts";

/** The same thing that happened, as the cell keeps it and as all services tell it. */
const time = "2026-01-31T12:00:00.000Z";
const fields = { type: "VM", phase: "failed", reason: "crashed", uid: "ab-1" };
const whole = { service: "controller.shop", event: "element/state", cell: "shop", path: "shop/vm", time, fields };
const ofServices: ServiceEvent = { id: "7", ...whole };
const ofCell: CellEvent = {
  id: 7,
  time,
  cell: "shop",
  path: "shop/vm",
  type: "VM",
  event: "state",
  phase: "failed",
  reason: "crashed",
  fields: { uid: "ab-1" },
};

/** What is asked of a gateway that tells this event, and what is printed; it refuses what is asked a second time. */
const told = async (t: TestContext, options: Partial<EventsOptions>, json = false) => {
  const [asked, printed]: [URL[], string[]] = [[], []];
  const server = createServer((request, response) => {
    asked.push(new URL(request.url ?? "", "http://gateway"));
    if (asked.length > 1) {
      response.writeHead(403, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { code: "no-right", message: "not any more" } }));
      return;
    }
    const event = request.url?.startsWith("/cells/") === true ? ofCell : ofServices;
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(`id: 7\nevent: x\ndata: ${JSON.stringify(event)}\n\n`);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const client = new Client({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, credential: "x" });
  const terminal = { paint: plain, print: (text: string) => void printed.push(text) };
  const context = { terminal, json, client: () => client } as unknown as Context;
  const nothing = { own: undefined, cell: undefined, service: undefined, since: undefined };
  await events(context, { follow: false, ...nothing, ...options }).catch((error: unknown) => {
    assert.match(String(error), /not any more/);
  });
  return { asked: asked.map(({ pathname, searchParams }) => [pathname, Object.fromEntries(searchParams)]), printed };
};

test("events have one form, whether one cell tells them or all services", async (t) => {
  const [cell, all] = [await told(t, { own: "shop" }), await told(t, {})];
  assert.deepEqual(cell.printed, all.printed);
  assert.match(cell.printed.join(), /controller\.shop +shop\/vm +element\/state {2}✗ failed {2}crashed$/);
  const [inJson, allInJson] = [await told(t, { own: "shop" }, true), await told(t, {}, true)];
  assert.deepEqual(JSON.parse(inJson.printed.join()), JSON.parse(allInJson.printed.join()));
  assert.deepEqual([cell.asked, all.asked], [[["/cells/shop/events", {}]], [["/events", {}]]]);
});

test("following begins with now, or with the time that is given, and goes on from what was shown", async (t) => {
  for (const own of ["shop", undefined]) {
    const path = own === undefined ? "/events" : "/cells/shop/events";
    const { asked } = await told(t, { own, follow: true });
    assert.deepEqual(asked, [
      [path, { follow: "true", past: "false" }],
      [path, { follow: "true", since: time }],
    ]);
    const before = Date.now();
    const [first] = (await told(t, { own, follow: true, since: "20s" })).asked;
    const { since, ...more } = (first?.[1] ?? {}) as Record<string, string>;
    assert.deepEqual(more, { follow: "true" });
    assert.ok(Date.parse(since ?? "") >= before - 20_000);
  }
});
