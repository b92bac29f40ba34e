import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { type TestContext, test } from "node:test";
import type { Resolve } from "../../ha/names-outside.ts";
import { postNotice } from "../../ha/notices.ts";
import { isReceiver, receiverAlone } from "./receivers.ts";

/*
 * Where a stranger may have something posted to. What he may not is beside what he may each time: a guard that refuses everything would be no less
 * wrong than one that refuses nothing.
 */
const pools = ["192.0.3.0/24", "5.10.0.0/16"];

test("what everybody on the Internet reaches is a receiver", () => {
  for (const address of ["1.1.1.1", "5.11.0.1", "192.0.4.1", "172.32.0.1", "100.128.0.1", "9.255.255.255", "11.0.0.0"])
    assert.ok(isReceiver(address, pools), address);
  for (const address of ["2606:4700::1111", "2a00:1450:4001::1", "2001:4860:4860::8888"])
    assert.ok(isReceiver(address, pools), address);
});

test("loopback, the underlay, link-local, private networks, the installation's pools and this machine are none", () => {
  for (const address of ["127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.2", "10.255.0.1", "169.254.169.254"])
    assert.ok(!isReceiver(address, pools), address);
  for (const address of ["172.16.0.1", "172.31.255.254", "192.168.1.1", "100.64.0.1", "198.18.0.1", "198.19.255.1"])
    assert.ok(!isReceiver(address, pools), address);
  for (const address of ["192.0.2.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"])
    assert.ok(!isReceiver(address, pools), address);
  for (const address of ["192.0.3.7", "5.10.200.1"]) assert.ok(!isReceiver(address, pools), `a pool: ${address}`);
  for (const address of ["::1", "::", "fe80::1", "fc00::1", "fd12::1", "fec0::1", "ff02::1", "::ffff:1.1.1.1"])
    assert.ok(!isReceiver(address, pools), address);
  for (const address of ["64:ff9b::101:101", "2002:101:101::1", "2001:db8::1", "2001::1", "3fff::1", "4000::1"])
    assert.ok(!isReceiver(address, pools), address);
  for (const own of Object.values(networkInterfaces()).flatMap((all) => all ?? []))
    assert.ok(!isReceiver(own.address, pools), `this machine: ${own.address}`);
  assert.ok(!isReceiver("1.1.1.1", pools, ["10.0.0.9", "1.1.1.1"]), "one that everybody reaches it by");
  for (const nothing of ["", "localhost", "1.1.1", "1.1.1.1.1", "hooks.example.com"])
    assert.ok(!isReceiver(nothing, pools), nothing);
});

const listening = async (context: TestContext, address: string, port: number, status = 200) => {
  const asked: string[] = [];
  const server: Server = createServer((request, response) => {
    asked.push(`${request.headers.host} ${request.url}`);
    response.writeHead(status, status === 302 ? { location: `http://127.0.0.1:${port}/inside` } : {}).end();
  });
  server.listen(port, address);
  await once(server, "listening");
  context.after(() => server.close());
  return { asked, port: (server.address() as AddressInfo).port };
};
const notice = (url: string) => ({ number: 1, url, body: "{}", signature: "t=1,v1=0" });
/** Of this test 127.0.0.2 is the Internet. */
const onlyTheSecond = (address: string): boolean => address === "127.0.0.2";

test("a name that leads inside is refused, also where it leads outside as well; one that leads outside is posted to", async (context) => {
  const outside = await listening(context, "127.0.0.2", 0);
  const inside = await listening(context, "127.0.0.1", outside.port);
  const url = `http://hooks.example.com:${outside.port}/a`;
  const leadsTo =
    (...addresses: readonly string[]): Resolve =>
    async () =>
      addresses.map((address) => ({ address }));
  assert.equal(await postNotice(notice(url), onlyTheSecond, leadsTo("127.0.0.2")), null);
  assert.match((await postNotice(notice(url), onlyTheSecond, leadsTo("127.0.0.1"))) ?? "", /leads to 127\.0\.0\.1/);
  assert.match((await postNotice(notice(url), onlyTheSecond, leadsTo("127.0.0.2", "127.0.0.1"))) ?? "", /leads to/);
  assert.match((await postNotice(notice(url), onlyTheSecond, leadsTo())) ?? "", /has no address/);
  assert.deepEqual([outside.asked, inside.asked], [[`hooks.example.com:${outside.port} /a`], []]);
});

test("a stranger is not told what a name of the house means", async () => {
  const resolve: Resolve = async () => [{ address: "10.20.30.40" }];
  const url = "http://payroll.corp.example/";
  const said = (await postNotice(notice(url), receiverAlone(onlyTheSecond), resolve)) ?? "";
  assert.match(said, /^it leads to an address that not everybody on the Internet reaches/);
  assert.doesNotMatch(said, /10\.20/);
  assert.equal(receiverAlone(onlyTheSecond)("127.0.0.2"), true);
});

test("a name that leads elsewhere once it was looked at is not asked again: what was looked at is what is spoken to", async (context) => {
  const outside = await listening(context, "127.0.0.2", 0);
  const inside = await listening(context, "127.0.0.1", outside.port);
  let looks = 0;
  // As a name server of a stranger's that answers otherwise the second time, for a name that means this machine to everybody else.
  const resolve: Resolve = async () => {
    looks += 1;
    return [{ address: looks === 1 ? "127.0.0.2" : "127.0.0.1" }];
  };
  assert.equal(await postNotice(notice(`http://localhost:${outside.port}/b`), onlyTheSecond, resolve), null);
  assert.deepEqual([looks, outside.asked.length, inside.asked.length], [1, 1, 0]);
});

test("a redirect to the inside is an answer that is not 2xx, and is not followed", async (context) => {
  const outside = await listening(context, "127.0.0.2", 0, 302);
  const inside = await listening(context, "127.0.0.1", outside.port);
  const url = `http://127.0.0.2:${outside.port}/c`;
  assert.match((await postNotice(notice(url), onlyTheSecond)) ?? "", /answered with 302/);
  assert.deepEqual([outside.asked.length, inside.asked.length], [1, 0]);
});
