import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { addCredential, revokeCredential } from "../core/controller/requests/credentials/credentials.ts";
import { World } from "../core/controller/world.testing.ts";
import { cidr, uid } from "../model/cell/identifiers.ts";
import { isImageName } from "../model/cell/image-name.ts";
import { IssuedTickets } from "../runtime/identity/tickets.ts";
import { readFirstModel } from "./cells/unknown-cell.ts";
import { isCellName, requireFreeName } from "./requests/cell-names.ts";
import { beyondScope } from "./requests/credentials.ts";
import { loginPlaces } from "./tenancy/tenants.ts";

/*
 * A refusal of the gateway, or of a controller to a request, that says what to do instead: what it says is done, and is taken, here
 * or in the test that the table names. The sentences are read out of the code, so a new one needs a line.
 */
const root = join(import.meta.dirname, "..");
const folders = ["core/controller/requests", "gateway", "model/contract/actions"];

const verbs = "use|name|send|try|revoke|take|give|ask|choose|replace|apply|see|add|write|make|move|look|wait|leave|set";
const says = new RegExp(`(?:^|[:;.,(] )(?:${verbs})\\b|[Dd]id you mean|\`cells \\w|must be the same|a bundle is`, "i");

/** All texts of a source that say what to do. */
const waysIn = (text: string): readonly string[] => {
  const code = text.replace(/^\s*(?:\/\*\*?|\*|\/\/|import ).*$/gm, "");
  const texts = /`((?:[^`\\]|\\.)*)`|"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'/g;
  const all = [...code.matchAll(texts)].map(([, a, b, c]) => a ?? b ?? c ?? "");
  return all.map((each) => each.replaceAll("\\`", "`")).filter((each) => each.includes(" ") && says.test(each));
};
const ways = folders.flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !/\.test(ing)?\.ts$/.test(name))
    .flatMap((name) =>
      waysIn(readFileSync(join(root, folder, name), "utf8")).map((text) => ({ at: `${folder}/${name}`, text })),
    ),
);

const model = (name: string): object => ({ [name]: { "x.type": "Cell" } });
const json = (value: object): Buffer => Buffer.from(JSON.stringify(value));
const refusedFirst = async (cell: string, body: Buffer, mediaType?: string): Promise<string | null> => {
  const read = await readFirstModel(cell, mediaType, body);
  return read.ok ? null : read.error.message;
};
const bundle = "application/vnd.cells.bundle+json";

/** By a part of the sentence that no other has. */
const followed: Readonly<Record<string, () => void | Promise<void>>> = {
  "credentials; revoke one that nobody uses": () => {
    const { state } = new World();
    const add = (id: string) => addCredential(state, { id, hash: id, note: id });
    let count = 0;
    while (add(`one-${count}`).ok) count += 1;
    assert.ok(count > 1);
    assert.ok(revokeCredential(state, "one-0").ok);
    assert.ok(add("another").ok);
  },
  "name an interface there that has one, or an address": () => {
    const world = new World({ directory: true });
    const shows = (...networks: readonly string[]) => ({
      ...({ kind: "addresses", type: "VM", networks: networks.map(cidr) } as const),
    });
    world.shown.set("bank.cells.internal/vm", { uid: uid("b-1"), shows: shows("10.77.0.2/32", "10.77.0.3/32") });
    world.shown.set("bank.cells.internal/card", { uid: uid("b-2"), shows: shows("10.77.0.2/32") });
    const rule = (to: string) => ({
      "x.type": "NetworkRule",
      "x.address1": "<ref:../vm>",
      "x.address2": `<ref://bank.cells.internal/${to}>`,
      "x.protocol": "icmp",
      "x.direction": "1to2",
    });
    const net = { "x.type": "Subnet", "x.size": 8, "x.addressRange": "internal" };
    const card = { "x.type": "VirtualInterface", "x.vm": "<ref:../vm>", "x.subnet": "<ref:../net>" };
    const vm = { "x.type": "VM", "x.memory": 64 };
    world.put({ shop: { "x.type": "Cell", vm, net, card, a: rule("vm"), b: rule("card") } });
    const ask = (to: string): string => {
      const { status, body } = world.ask({ method: "WHY-ENDS", from: "shop/vm", to });
      return status === 200 ? "" : JSON.stringify(body);
    };
    assert.match(ask("//bank.cells.internal/vm"), /name an interface there that has one, or an address/);
    assert.equal(ask("//bank.cells.internal/card"), "");
    assert.equal(ask("10.77.0.2"), "");
  },
  "cannot name an image: use": () => {
    assert.ok(!isImageName("a b") && !isImageName("-a") && !isImageName("a".repeat(64)));
    assert.ok(isImageName("a") && isImageName("1.2_3-d") && isImageName("a".repeat(63)));
  },
  "use lower-case letters, digits and `-`, at most 53": () => {
    assert.ok(!isCellName("Shop") && !isCellName("1shop") && !isCellName("a".repeat(54)));
    assert.ok(isCellName("shop-1") && isCellName("a".repeat(53)));
  },
  "give the cell another name, in the specification too": () => {
    assert.throws(() => requireFreeName("primary"), /give the cell another name/);
    requireFreeName("primary-2");
  },
  "and opens no other: use one of the cell": () => {
    const at = (cell: string) => beyondScope({ kind: "cell", cell }, "GET", "/cells/bank/model");
    assert.match(at("shop") ?? "", /opens no other: use one of the cell "bank"/);
    assert.equal(at("bank"), null);
  },
  "too many tickets are issued; try again in a minute": () => {
    let now = 0;
    const issued = new IssuedTickets(() => now);
    let count = 0;
    while (issued.issue(`ticket-${count}`, "shop")) count += 1;
    assert.ok(count > 1);
    now += 60_001;
    assert.ok(issued.issue("another", "shop"));
    assert.ok(issued.spend("another", "shop"));
  },
  "too many logins are under way; try again in a second": () => {
    const logins = loginPlaces();
    const begin = (address: string) => logins.begin("", address);
    const ends: (() => void)[] = [];
    for (let end = begin("192.0.2.1"); end !== null; end = begin("192.0.2.1")) ends.push(end);
    assert.notEqual(begin("192.0.2.2"), null, "one address has not all places");
    ends[0]?.();
    assert.notEqual(begin("192.0.2.1"), null);
  },
  "send JSON (RFC 8259, section 8.1) or YAML in UTF-8": async () => {
    const word = Buffer.from('{"shop": {"x.type": "Cell", "a": "é"}}', "latin1");
    assert.match((await refusedFirst("shop", word)) ?? "", /send JSON .* or YAML in UTF-8/);
    assert.equal(await refusedFirst("shop", Buffer.from(word.toString("latin1"), "utf8")), null);
    const yaml = "shop:\n  x.type: Cell\n  a: é\n";
    assert.equal(await refusedFirst("shop", Buffer.from(yaml, "utf8"), "application/yaml"), null);
  },
  "both must be the same": async () => {
    assert.match((await refusedFirst("bank", json(model("shop")))) ?? "", /both must be the same/);
    assert.equal(await refusedFirst("bank", json(model("bank"))), null);
    assert.equal(await refusedFirst("shop", json(model("shop"))), null);
  },
  "is replaced with JSON; a bundle is a whole model": () => {
    const world = new World();
    const text = "shop extends Cell { vm extends VM { x.memory 64; } }";
    const whole = { main: "shop.sf", files: { "shop.sf": text } };
    const put = (path: string, more: object): number => world.ask({ method: "PUT", path, ...more }).status;
    assert.equal(put("", { bundle: whole }), 200);
    assert.equal(put("vm", { bundle: whole }), 400);
    assert.equal(put("vm", { json: { "x.type": "VM", "x.memory": 128 } }), 200);
  },
  'a bundle is {"main"': async () => {
    assert.match((await refusedFirst("shop", json({ main: "shop.sf" }), bundle)) ?? "", /a bundle is/);
    const whole = { main: "shop.sf", files: { "shop.sf": "shop extends Cell { }" } };
    assert.equal(await refusedFirst("shop", json(whole), bundle), null);
  },
};

/** The tests that follow the others, where what it takes is up. */
const named = ["runtime/controller/connections/why.test.ts", "what is no end says why, and what would be one"] as const;
const busy = ["gateway/edge/admission.test.ts", "a cell's holder is let in, has a share of the gateway"] as const;
const opening = ["gateway/edge/sessions.test.ts", "neither made-up capabilities nor a cell whose controller"] as const;
const pools = ["gateway/cells/pools.test.ts", "what stands against a request is said, and nothing is touched"] as const;
const force = "core/controller/requests/force-stop.test.ts";
const power = ["cli/commands/model/power.test.ts", "each verb puts what it takes, and nothing where it is so"] as const;
const elsewhere: Readonly<Record<string, readonly [file: string, test: string]>> = {
  "`cells why ${vmPath}` says more": named,
  "name one of them, such as": named,
  "Did you mean ${closest}?": named,
  "--state` lists them": [
    "core/controller/explain/why-element.test.ts",
    "an element that is not there is a refusal that says where to look",
  ],
  "its parent did not answer within": [
    "core/controller/model/quota.test.ts",
    "a parent that does not answer makes a change fail after a while",
  ],
  "It goes on: apply again, or take it back with": [
    "gateway/cells/root-cells-waiting.test.ts",
    "a controller that does not start in time is said to be on its way",
  ],
  "ask its operator for one (cells credential add": [
    "gateway/cells/root-cells.test.ts",
    "a cell is made, changed and ended through the root cell",
  ],
  "too many requests are under way; try again": busy,
  "under way as it may have now (at most": busy,
  "runs anywhere: `cells stop ${path}` is enough": [
    force,
    "what runs nowhere needs no force, and what is no VM is told",
  ],
  "`cells stop ${path}` waits for its word": [force, "one whose host is heard is stopped by the ordinary way"],
  "is to run: switch it off first": [force, "a VM whose host is away is freed of it by the operator"],
  "too many sign-ins from this address have failed; try again": [
    "gateway/sign-in/attempts.test.ts",
    "after ten wrong sign-ins an address waits for a minute at most",
  ],
  "already: give the pool another name": pools,
  "already: give the host another name": [
    "gateway/cells/pools.test.ts",
    "a host is written over nothing that stands in its pool",
  ],
  "is made by a credential, as `cells web` does": [
    "gateway/sign-in/sign-in.test.ts",
    "a sign-in makes no other that would outlive it",
  ],
  "`cells host resume` lets the VMs of a host stay": [
    "cli/commands/hosts/drain.test.ts",
    "resume takes back what drain wrote, and nothing where it is so",
  ],
  "`cells start` wants it on again": power,
  "is off: `cells start ${path}` starts it": power,
  "; `cells ha` shows what is": [
    "core/ha/people/by-hand.test.ts",
    "of what nothing is being done about, that is said; another cell's VM of that name is not meant",
  ],
  "; `cells stop ${path}` keeps it off afterwards": [
    "core/ha/people/by-hand.test.ts",
    "a fence that has begun is not cancelled: it says why, and what keeps the VM off",
  ],
  "answers is not known yet: try again in a moment": [
    "core/presence/group/end.test.ts",
    "a host that is heard, here or by other hosts, has not ended, whatever is said",
  ],
  "take them out of it first": pools,
  "already: give it another name": pools,
  "see the API reference": ["gateway/requests/serve.test.ts", "the gateway serves every route of the table"],
  "take out of it what is not to run any more": [
    "gateway/cells/root-cells.test.ts",
    "the root cell is not deleted, and what is taken out of its model ends",
  ],
  "too many topics are followed; try again": [
    "gateway/follow/follow.test.ts",
    "so many topics are read, and one that nobody follows any more makes room",
  ],
  "ask for another name": [
    "gateway/page/certificate/certificate.test.ts",
    "names that clients know the gateway by, names that are none, and who is no operator are refused",
  ],
  "`cells gateway request NAME` first": [
    "gateway/page/certificate/certificate.test.ts",
    "what browsers would refuse is not put in force, and what was in force stays",
  ],
  "(${why}): ask for a new one": [
    "gateway/page/certificate/certificate.test.ts",
    "where what was kept is lost or damaged the installation's certificate is shown, why is said, and a new request mends it",
  ],
  "have it renewed over its key, then": [
    "gateway/page/certificate/certificate.test.ts",
    "a request is answered by an authority of one's own, and browsers see the answer at once; who knows the installation sees no change",
  ],
  "ran is not known any more; `cells events` tells its stages, and where it was": [
    "core/controller/controller.test.ts",
    "what an incarnation has said is asked for where it ran, whatever runs now",
  ],
  "ask for another one": ["gateway/edge/sessions.test.ts", "a capability is used once"],
  "are opening; try again in a moment": opening,
  "of all ${open.inAll}); try again later": [
    "gateway/edge/sessions.test.ts",
    "a cell has no more sessions than it may, until one of them ends",
  ],
  "already: give this one another name": [
    "gateway/requests/whole-hosts.test.ts",
    "a flavour is an element of the root cell, once by its name, and goes when no host is of it",
  ],
  "see `cells status`": ["gateway/observation/observation.test.ts", "one valid exposition over all services"],
  "images are being uploaded already; try again when one is done": [
    "gateway/storage/images.test.ts",
    "no more than a few images are uploaded at a time, and the next one once one of them is done",
  ],
  "in all, are under way already; try again when one is done": [
    "gateway/storage/uploads.test.ts",
    "two uploads of an account are under way at a time",
  ],
  "that broke off: send it from its beginning": [
    "gateway/storage/resumed.test.ts",
    "less than a MiB is not kept, and is sent again",
  ],
  "as the rest is behind; ask how far it is": [
    "gateway/storage/resumed.test.ts",
    "a storage server of the version before is sent no rest, which it would take for the whole",
  ],
  "as it has places left for others, and these are taken; try again when one is done": [
    "gateway/storage/uploads.test.ts",
    "those of one domain have as many places of a server as they leave to others, whoever of it is slow",
  ],
  "redirects are not followed: name what it leads to": [
    "gateway/storage/fetched.test.ts",
    "a redirect is not followed, and what is no whole answer of a known length is refused; the same with 200 is fetched",
  ],
  "cannot be replaced; choose another name": [
    "gateway/storage/images.test.ts",
    "an image of the installation is not replaced, and one of another name stands beside it",
  ],
  "already; choose another name, or replace it (--replace)": [
    "gateway/storage/images.test.ts",
    "an image comes to every server, and goes from every server",
  ],
  "Give it a copy of its store first": [
    "gateway/storage/orphans.test.ts",
    "the root cell's controller is not let count before its store knows the cloud",
  ],
  "Ask by memoryMiB and cpus": [
    "gateway/placement/capacity.test.ts",
    "what is no question is refused, and a VM that nobody knows is said to be none",
  ],
  "in it gives it one, with which it is started again": [
    "core/controller/controller.test.ts",
    "a display is reached where a VM has one, and its host is told to give it one",
  ],
  "ask again in a moment": [
    "gateway/placement/capacity.test.ts",
    "who leaves has the Placer stop, and one person asks two things at a time at most",
  ],
  "${why}; try again in a few seconds": [
    "gateway/caas/volumes/harvest.test.ts",
    "so many requests of one person wait for cells that do not answer, and nobody else is held up",
  ],
  "`cells orphans list` names them": [
    "gateway/storage/orphans.test.ts",
    "an operator sees what a controller without its store has left",
  ],
};

for (const [part, follow] of Object.entries(followed)) test(`what is said works: ${part}`, follow);

test("every refusal that says what to do is followed, here or where the table says", () => {
  const parts = [...Object.keys(followed), ...Object.keys(elsewhere)];
  assert.ok(ways.length > 20, String(ways.length));
  assert.deepEqual(
    ways.filter(({ text }) => !parts.some((part) => text.includes(part))).map(({ at, text }) => `${at}: ${text}`),
    [],
  );
  assert.deepEqual(
    parts.filter((part) => !ways.some(({ text }) => text.includes(part))),
    [],
    "what is not said any more",
  );
  for (const [file, title] of Object.values(elsewhere))
    assert.ok(readFileSync(join(root, file), "utf8").includes(`test("${title}`), `${file}: ${title}`);
});
