import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import { hashCredential } from "../http/bearer.ts";
import { peerRequest, servePeers } from "../http/https.ts";
import { recordResponse } from "../http/response.testing.ts";
import { IssuedTickets, isTicket, newTicket, rememberedMs, spendWithinMs, ticketPath } from "../identity/tickets.ts";
import { createTestInstallation } from "../installation.testing.ts";
import { answerSpending, createTicketCheck, spendingHandler } from "./tickets.ts";

test("a ticket is spent once, in time, by the one cell that it is for", () => {
  let now = 0;
  const issued = new IssuedTickets(() => now);
  const hash = hashCredential(newTicket());
  assert.ok(issued.issue(hash, "shop"));
  assert.equal(issued.spend(hash, "web"), false);
  assert.equal(issued.spend(hash, "shop"), true);
  assert.equal(issued.spend(hash, "shop"), false);
  assert.ok(issued.issue(hash, "shop"));
  now = spendWithinMs + 1;
  assert.equal(issued.spend(hash, "shop"), false);
});

test("only so many are outstanding, and what has run out makes room", () => {
  let now = 0;
  const issued = new IssuedTickets(() => now);
  let count = 0;
  while (count < 10_000 && issued.issue(hashCredential(String(count)), "shop")) count += 1;
  assert.equal(count, 4096);
  now = spendWithinMs + 1;
  assert.ok(issued.issue(hashCredential("another"), "shop"));
});

test("who spends it is who its certificate names", () => {
  const issued = new IssuedTickets(() => 0);
  const hash = hashCredential(newTicket());
  issued.issue(hash, "team.shop");
  const spend = (peer: string): number => {
    const recorded = recordResponse();
    answerSpending(issued, { peer: peerName(peer), url: ticketPath(hash) }, recorded.response);
    return recorded.status;
  };
  for (const peer of ["controller.shop", "controller.team", "host.team.shop", "gateway"])
    assert.equal(spend(peer), 404, peer);
  assert.equal(spend("controller.team.shop"), 200);
});

test("a controller asks once for a ticket, however many requests come with it, and forgets it in time", async () => {
  const installation = await createTestInstallation("ticket-check");
  const gateway = await installation.configure(peerName("gateway"));
  const { configuration } = await installation.configure(peerName("controller.shop"));
  const issued = new IssuedTickets(() => 0);
  let asked = 0;
  const server = await servePeers(gateway.configuration, (incoming, response) => {
    asked += 1;
    return spendingHandler(issued)(incoming, response);
  });
  try {
    let now = 0;
    const check = createTicketCheck(configuration, peerName("gateway"), () => now);
    const ticket = newTicket();
    assert.ok(isTicket(ticket));
    issued.issue(hashCredential(ticket), "shop");
    const worth = await Promise.all(Array.from({ length: 8 }, () => check(`Bearer ${ticket}`)));
    assert.ok(worth.every((each) => "known" in each && each.known));
    assert.deepEqual(await check(`Bearer ${ticket}`), { known: true });
    assert.equal(asked, 1);
    now = rememberedMs + 1;
    assert.deepEqual(await check(`Bearer ${ticket}`), { known: false });
    for (const other of ["open-sesame", "ticket.", `${ticket}x`, ""])
      assert.deepEqual(await check(`Bearer ${other}`), { known: false });
    assert.equal(asked, 2, "what is no ticket is not asked for");
    const { configuration: host } = await installation.configure(peerName("host.h1"));
    const path = ticketPath(hashCredential(ticket));
    const refused = await peerRequest(host, peerName("gateway"), { method: "DELETE", path });
    assert.equal(refused.status, 403);
    refused.body.destroy();
  } finally {
    await server.stop();
    await installation.remove();
  }
});
