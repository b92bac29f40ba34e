import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import type { ConnectionAnswer } from "../../model/api.ts";
import { outside } from "../configuration.ts";
import { type Ended, type Testbed, withTestbed } from "../harness.ts";
import { cells, stateOf, until, untilReady } from "../lab.testing.ts";

/**
 * Out of the cloud and into it with a real guest: the web server of `examples/public-web.sf` is reached from outside at its
 * port and at no other, and reaches what a rule opens. A namespace is the upstream router, with somebody behind it.
 */
const example = readFileSync(new URL("../../examples/public-web.sf", import.meta.url), "utf8").replace(
  "http 443;",
  'http "443 80";',
);
const apply = async (t: Testbed, more = ""): Promise<void> => {
  const file = join(dirname(t.configFile), "web.sf");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, example.replace(/\n}\n$/, `\n${more}\n}\n`));
  await cells(t, "apply", file, "--yes");
};
const fetch = (t: Testbed, address: string, port: number): Promise<Ended> =>
  t.outside(["sh", "-c", request, address, String(port)]);
/** The static busybox of Debian 12 has a `wget` that ends by SIGSEGV. */
const request = 'printf "GET / HTTP/1.0\\r\\n\\r\\n" | busybox nc -w 3 "$0" "$1"';
const why = async (t: Testbed, question: string): Promise<ConnectionAnswer> =>
  JSON.parse((await t.cells(["why", question, "--output", "json"])).stdout) as ConnectionAnswer;
const toSomebody = `  out extends NetworkRule {
    x.address1 "<ref:/web/interface>"; x.address2 "internet"; x.protocol "icmp"; x.direction "1to2";
  }`;

test("a web server with an external address is reached from outside, and reaches what its rules open", () =>
  withTestbed({ hosts: 2, servers: 1 }, async (t) => {
    await apply(t);
    await untilReady(t, "web/vm");
    const address = (await stateOf(t, "web/interface"))?.address ?? assert.fail("the server has no address");
    assert.match(address, /^198\.18\./);
    await until(
      "the page is fetched from outside",
      () => fetch(t, address, 443),
      ({ stdout }) => /^HTTP\/1\.[01] 200 /.test(stdout),
    );
    const refused = await fetch(t, address, 80);
    assert.deepEqual([refused.code, refused.stdout], [1, ""], "no other port is open");
    const within = await t.cells(["exec", "web/vm", "--", "wget", "-q", "-O", "-", "http://127.0.0.1:80/"]);
    assert.equal(within.code, 0, "although its server listens there, too");
    const opened = await why(t, "internet -> web/vm:443");
    assert.equal(opened.allowed, true, opened.verdict);
    assert.match(opened.verdict, /opened by web\/everybody/);
    const closed = await why(t, `${outside.somebody} -> web/vm:80`);
    assert.equal(closed.allowed, false);
    assert.match(closed.verdict, /To open it, add: allow extends NetworkRule \{ x\.address1 "203\.0\.113\.9\/32"/);

    const ping = (): Promise<Ended> =>
      t.cells(["exec", "web/vm", "--", "ping", "-c", "1", "-W", "2", outside.somebody]);
    assert.notEqual((await ping()).code, 0, "nothing goes out without a rule");
    await apply(t, toSomebody);
    await until("somebody outside answers", ping, ({ code }) => code === 0);
    const out = await why(t, `web/vm -> ${outside.somebody} icmp`);
    assert.equal(out.allowed, true, out.verdict);
    assert.ok(out.checks.some(({ check, detail }) => check === "outside" && detail.includes(outside.router)));
  }));
