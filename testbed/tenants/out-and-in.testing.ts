import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { listenerCommand } from "../../cli/connection/probe.ts";
import type { ConnectionAnswer } from "../../model/api.ts";
import type { Ended } from "../command.ts";
import { outside, resolver } from "../configuration.ts";
import type { Testbed } from "../harness.ts";
import { beginRoot } from "../hosts/losses/drain.testing.ts";
import { cells, requestByTls, stateOf, until, untilReady } from "../lab.testing.ts";
import { execIn } from "./questions.testing.ts";

/**
 * Out of the cloud and into it with real guests: the web server of `examples/public-web.sf` is reached from outside at its port and at no
 * other, and reaches what a rule opens. A namespace is the upstream router, with somebody behind it.
 */
const example = readFileSync(new URL("../../examples/public-web.sf", import.meta.url), "utf8");
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
    x.address1 "<ref:/web/server/card>"; x.address2 "internet"; x.protocol "icmp"; x.direction "1to2";
  }`;

/** Names are asked of the cell's controller, at its port. */
const asksBy = (protocol: "udp" | "tcp"): string => `  names${protocol} extends NetworkRule {
    x.address1 "<ref:/web/server/card>"; x.address2 "controller"; x.protocol "${protocol}"; x.port2 53; x.direction "1to2";
  }`;
const names = `${asksBy("udp")}\n${asksBy("tcp")}`;
/** A query of TXT by TCP, as a shell writes it: the guest's own programs ask by UDP alone. */
const queryByTcp = (name: string): string => {
  const labels = name.split(".").flatMap((label) => [label.length, ...Buffer.from(label)]);
  const query = [0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, 16, 0, 1];
  return [0, query.length, ...query].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
};
const log = "/run/resolver.log";
/** The operator's resolver, which knows of a small world and writes down what it is asked. */
const startResolver = async (t: Testbed): Promise<void> => {
  const zone = [
    `--host-record=www.example.org,${outside.somebody}`,
    "--cname=alias.example.org,www.example.org",
    "--host-record=rebound.example.org,10.64.0.2",
    ...Array.from({ length: 9 }, (_, index) => `--txt-record=long.example.org,${String(index).repeat(200)}`),

    "--local=/example.org/",
    "--local-ttl=60",
    "--no-resolv",
    "--no-hosts",
    "--conf-file=/dev/null",
    "--bind-interfaces",
    `--listen-address=${resolver.address}`,
    "--user=root",
    "--pid-file=/run/resolver.pid",
    "--log-queries",
    `--log-facility=${log}`,
  ];
  const { code, stderr } = await t.resolver(["dnsmasq", ...zone]);
  assert.equal(code, 0, stderr);
};
const asked = async (t: Testbed): Promise<readonly string[]> =>
  [...(await t.resolver(["cat", log])).stdout.matchAll(/query\[\w+\] (\S+) from/g)].map(([, name]) => name ?? "");

async function namesOutside(t: Testbed): Promise<void> {
  await startResolver(t);
  const look = (name: string, type = "a"): Promise<Ended> =>
    execIn(t, "web/server/vm", ["nslookup", `-type=${type}`, name]);
  await apply(t, names);
  const closed = await until(
    "the cell's name server answers",
    () => look("www.example.org"),
    ({ stdout }) => /REFUSED/.test(stdout),
  );
  assert.doesNotMatch(closed.stdout, /203\.0\.113\.9/, "without a rule towards the internet");
  assert.deepEqual(await asked(t), [], "nobody is asked");
  await apply(t, `${names}\n${toSomebody}`);
  await until(
    "a name outside is found",
    () => look("alias.example.org"),
    ({ stdout }) => stdout.includes(outside.somebody),
  );
  for (const again of [1, 2]) assert.match((await look("alias.example.org")).stdout, /203\.0\.113\.9/, `${again}`);
  assert.match((await look("rebound.example.org")).stdout, /REFUSED/);
  assert.match((await look("nobody.example.org")).stdout, /NXDOMAIN/);
  assert.match((await look("www.web.cells.internal")).stdout, /198\.18\./);
  const server = "$(sed -n 's/^nameserver //p' /etc/resolv.conf)";
  const asks = `printf '${queryByTcp("long.example.org")}' | socat -t10 - TCP4:${server}:53 | wc -c`;
  const { stdout: bytes } = await execIn(t, "web/server/vm", ["sh", "-c", asks]);
  assert.ok(Number(bytes) > 9 * 200, `nine texts of 200 bytes are there by TCP, and ${bytes} bytes came`);
  for (const inside of ["db.web.cells.internal", "db", "printer.local", "10.64.0.2"]) await look(inside);
  assert.deepEqual(
    (await asked(t)).filter((name) => !name.endsWith(".example.org")),
    [],
    "nothing of the inside is asked outside",
  );
  assert.equal((await asked(t)).filter((name) => name === "alias.example.org").length, 1, "what is known is not asked");
}

const exampleText = (name: string): string =>
  readFileSync(new URL(`../../examples/${name}.sf`, import.meta.url), "utf8");
const applyExample = async (t: Testbed, name: string): Promise<void> => {
  const file = join(dirname(t.configFile), `${name}.sf`);
  writeFileSync(file, exampleText(name));
  await cells(t, "apply", file, "--yes");
};

/** `examples/egress.sf`: who is outside sees the address of the VM that leads there, and of its neighbours no other. */
async function leadsOutside(t: Testbed): Promise<void> {
  await applyExample(t, "egress");
  for (const vm of ["team/worker/vm", "team/egress/vm"]) await untilReady(t, vm);
  const { code } = await t.outside([
    "sh",
    "-c",
    'socat TCP4-LISTEN:8082,fork,reuseaddr SYSTEM:"echo from \\$SOCAT_PEERADDR" >/dev/null 2>&1 </dev/null &',
  ]);
  assert.equal(code, 0);
  const own = (await stateOf(t, "team/egress/outside"))?.address ?? assert.fail("it has no address outside");
  const asks = (): Promise<Ended> =>
    execIn(t, "team/worker/vm", ["sh", "-c", `socat -T3 - TCP4:${outside.somebody}:8082,connect-timeout=3`]);
  const { stdout } = await until("somebody outside answers", asks, (ended) => ended.stdout.includes("from"));
  assert.equal(stdout.trim(), `from ${own}`);
  const answer = await why(t, `team/worker/vm -> ${outside.somebody}:8080`);
  assert.equal(answer.allowed, true, answer.verdict);
  const inwards = await why(t, `${outside.somebody} -> team/worker/vm:22`);
  assert.equal(inwards.allowed, false, inwards.verdict);
  await isAFirewall(t);
}

/** The same VM looks into what passes: its guest drops what a rule of the cell lets out, and the rest goes on. */
async function isAFirewall(t: Testbed): Promise<void> {
  const listens = 'socat TCP4-LISTEN:8081,fork,reuseaddr SYSTEM:"echo from elsewhere" >/dev/null 2>&1 </dev/null &';
  await t.outside(["sh", "-c", listens]);
  const guest = (vm: string, script: string): Promise<Ended> => execIn(t, `team/${vm}/vm`, ["sh", "-c", script]);
  const asks = (port: number): Promise<Ended> =>
    guest("worker", `socat -T3 - TCP4:${outside.somebody}:${port},connect-timeout=3 2>/dev/null || echo nothing`);
  const answers = (port: number, text: string): Promise<unknown> =>
    until(
      `${port} answers "${text}"`,
      () => asks(port),
      ({ stdout }) => stdout.includes(text),
    );
  await answers(8081, "from elsewhere");
  const wall = "add table ip wall; add chain ip wall pass { type filter hook forward priority 0; }";
  const { code, stderr } = await guest("egress", `nft '${wall}; add rule ip wall pass tcp dport 8081 drop'`);
  assert.equal(code, 0, stderr);
  await answers(8081, "nothing");
  await answers(8082, "from");
  await guest("egress", "nft delete table ip wall");
  await answers(8081, "from elsewhere");
}

/** `examples/own-gateway.sf`: from outside to the cell's own controller, which asks for a credential of the cell. */
async function hasAGatewayOfItsOwn(t: Testbed): Promise<void> {
  await applyExample(t, "own-gateway");
  await untilReady(t, "desk/vm");
  const address = (await stateOf(t, "desk/card"))?.address ?? assert.fail("the gateway has no address");
  const { credential } = JSON.parse(await cells(t, "credential", "add", "desk", "--output", "json")) as {
    readonly credential: string;
  };
  const ask = async (bearer: string): Promise<string> => {
    const head = [
      "GET /cells/desk/model HTTP/1.1",
      "host: desk",
      "connection: close",
      `authorization: Bearer ${bearer}`,
    ];
    const request = requestByTls([...head, "", ""], `${address}:443,verify=0,connect-timeout=3`);
    const { stdout, stderr } = await t.outside(["sh", "-c", request]);
    return stdout + stderr;
  };
  await until(
    "the controller answers outside",
    () => ask(credential),
    (answer) => /^HTTP\/1.1 200 /.test(answer),
  );
  assert.match(await ask("no-credential-of-it"), /^HTTP\/1.1 401 /);
}

/**
 * An operator's own addresses: a machine that comes then has one of these and is reached by it, the one that was there keeps its own, and what
 * is in use, or is a host's, is refused.
 */
async function hasPoolsOfItsOwn(t: Testbed, before: string): Promise<void> {
  const { code, stderr } = await t.outside(["ip", "route", "add", ownPool, "dev", "router", "src", outside.somebody]);
  assert.equal(code, 0, stderr);
  await beginRoot(t, ["h1", "h2"]);
  const file = join(dirname(t.configFile), "root.sf");
  const asked = (how: readonly string[], pools: readonly string[]): Promise<Ended> => {
    const list = pools.map((pool) => `"${pool}"`).join(", ");
    writeFileSync(file, `root extends Cell {\n${pools.length === 0 ? "" : `  x.pools.external [${list}];\n`}}\n`);
    return t.cells([...how, file]);
  };
  const declare = (...pools: readonly string[]): Promise<Ended> => asked(["apply", "--yes"], pools);
  /** Once its controller has heard what stands in the way. */
  const refused = (why: RegExp, ...pools: readonly string[]): Promise<Ended> =>
    until(
      `${pools.join()} is refused: ${why}`,
      () => asked(["plan"], pools),
      ({ code, stderr }) => code !== 0 && why.test(stderr),
    );
  await refused(/leaves out 198\.18\.0\.\d+\/\d+, where subnets have addresses/, ownPool);
  const declared = await declare(ownPool, "198.18.0.0/15");
  assert.equal(declared.code, 0, declared.stderr);
  const segment = /192\.0\.2\.1[12] is h[12]'s own on the way outside/;
  await refused(segment, "192.0.2.8/29", ownPool, "198.18.0.0/15");
  const late = join(dirname(t.configFile), "late.sf");
  writeFileSync(late, example.replaceAll("/web/", "/late/").replace("web extends Cell", "late extends Cell"));
  await cells(t, "apply", late, "--yes");
  const address = (await stateOf(t, "late/server/card"))?.address ?? assert.fail("the late server has no address");
  assert.match(address, /^198\.51\.100\./);
  for (const each of [address, before])
    await until(
      `the page is fetched at ${each}`,
      () => fetch(t, each, 443),
      ({ stdout }) => /^HTTP\/1\.[01] 200 /.test(stdout),
    );
  assert.equal((await fetch(t, address, 22)).stdout, "", "no other port is open");
  await refused(/leaves out 198\.51\.100\.\d+\/\d+, where subnets have addresses/);
  await cells(t, "delete", "late", "--yes", "--allow-destroy", "late/server/boot");
  const given = await until(
    "nothing has addresses of it",
    () => declare(),
    (ended) => ended.code === 0,
  );
  assert.equal(given.code, 0);
  assert.match((await fetch(t, before, 443)).stdout, /^HTTP\/1\.[01] 200 /);
}
const ownPool = "198.51.100.0/24";

/** Where the page of the way out and in has been: `web` and `team` are there. */
export async function outAndIn(t: Testbed): Promise<void> {
  const address = (await stateOf(t, "web/server/card"))?.address ?? assert.fail("the server has no address");
  assert.match(address, /^198\.18\./);
  await until(
    "the page is fetched from outside",
    () => fetch(t, address, 443),
    ({ stdout }) => /^HTTP\/1\.[01] 200 /.test(stdout),
  );
  await execIn(t, "web/server/vm", listenerCommand("tcp", 22));
  const refused = await fetch(t, address, 22);
  assert.deepEqual([refused.code, refused.stdout], [1, ""], "no other port is open");
  const within = await execIn(t, "web/server/vm", ["sh", "-c", "echo here | socat -t2 - TCP4:127.0.0.1:22"]);
  assert.equal(within.stdout, "here\n", "although somebody listens there, too");
  await hasPoolsOfItsOwn(t, address);
  const opened = await why(t, "internet -> web/server/vm:443");
  assert.equal(opened.allowed, true, opened.verdict);
  assert.match(opened.verdict, /opened by web\/in/);
  const closed = await why(t, `${outside.somebody} -> web/server/vm:80`);
  assert.equal(closed.allowed, false);
  assert.match(closed.verdict, /To open it, add: allow extends NetworkRule \{ x\.address1 "203\.0\.113\.9\/32"/);

  const ping = (): Promise<Ended> => execIn(t, "web/server/vm", ["ping", "-c", "1", "-W", "2", outside.somebody]);
  assert.notEqual((await ping()).code, 0, "nothing goes out without a rule");
  await apply(t, toSomebody);
  await until("somebody outside answers", ping, ({ code }) => code === 0);
  const out = await why(t, `web/server/vm -> ${outside.somebody} icmp`);
  assert.equal(out.allowed, true, out.verdict);
  assert.ok(out.checks.some(({ check, detail }) => check === "outside" && detail.includes(outside.router)));
  await namesOutside(t);
  await leadsOutside(t);
  await hasAGatewayOfItsOwn(t);
  for (const [cell, disks] of [
    ["web", "web/server/boot"],
    ["team", "team/worker/boot,team/egress/boot"],
    ["desk", "desk/boot"],
  ] as const)
    await cells(t, "delete", cell, "--yes", "--allow-destroy", disks);
}
