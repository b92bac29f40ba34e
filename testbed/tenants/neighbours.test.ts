import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { listenerCommand, type Probe, probeCommand, seenIn } from "../../cli/connection/probe.ts";
import type { ConnectionAnswer, ElementAnswer } from "../../model/api.ts";
import type { Ended } from "../command.ts";
import { type Testbed, withTestbed } from "../harness.ts";
import { cells, requestByTls, stateOf, until, untilReady, untilSaid } from "../lab.testing.ts";
import { execIn } from "./questions.testing.ts";

/**
 * Two cells that have to do with one another, with real guests on two hosts: what the one names of the other waits until it
 * is there, is shown and is granted; packets pass exactly as long as both cells' rules say so; and a name is found exactly
 * where it is public.
 */
const bankDomain = "bank.cells.internal";
const ports = { open: 7000, closed: 7001 } as const;

const machine = (cell: string, host: string, card: string, more: string): string => `
${cell} extends Cell {
  golden extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }
  boot extends VolumeCopy { x.image "<ref:/${cell}/golden>"; }
  vm extends VM { x.memory 96; x.restartOnFailure true; x.placement.host "${host}"; }
  disk extends VolumeConnection { x.vm "<ref:/${cell}/vm>"; x.volume "<ref:/${cell}/boot>"; x.bootOrder 0; }
  subnet extends Subnet { x.size 16; }
  card extends VirtualInterface {
    x.vm "<ref:/${cell}/vm>"; x.subnet "<ref:/${cell}/subnet>"; x.vifName "${card}"; x.public true;
  }
  ${more}
}
`;
/** Names four things of the bank: a card, a volume to copy, a volume to connect. Sizes in MiB tell its disks apart. */
const sizes = { copied: 80, ledger: 72 } as const;
const shop = machine(
  "shop",
  "h1",
  "web",
  `toBank extends NetworkRule {
    x.address1 "<ref:/shop/card>"; x.address2 "<ref://${bankDomain}/bank/card>";
    x.protocol "tcp"; x.port2 ${ports.open}; x.direction "1to2";
  }
  copied extends VolumeCopy { x.image "<ref://${bankDomain}/bank/forms>"; x.size ${sizes.copied}; }
  copiedDisk extends VolumeConnection { x.vm "<ref:/shop/vm>"; x.volume "<ref:/shop/copied>"; x.bootOrder 1; }
  ledgerDisk extends VolumeConnection {
    x.vm "<ref:/shop/vm>"; x.volume "<ref://${bankDomain}/bank/ledger>"; x.bootOrder 2;
  }`,
);
const volumes = `
  forms extends Volume { x.size 64; x.access "ro"; x.import "tiny"; x.public true; }
  ledger extends Volume { x.size ${sizes.ledger}; x.access "ro"; x.import "tiny"; x.public true; }
  idle extends VM { x.memory 96; x.desiredState "off"; }
  hidden extends VirtualInterface { x.vm "<ref:/bank/idle>"; x.subnet "<ref:/bank/subnet>"; x.vifName "vault"; }
`;
const grants = `
  forCopies extends VolumeGrant { x.volume "<ref:/bank/forms>"; x.cell "<ref://shop.cells.internal/>"; x.grant "copy"; }
  forDisks extends VolumeGrant { x.volume "<ref:/bank/ledger>"; x.cell "<ref://shop.cells.internal/>"; x.grant "connect"; }
`;
const consent = `
  fromShop extends NetworkRule {
    x.address1 "<ref://shop.cells.internal/shop/card>"; x.address2 "<ref:/bank/card>";
    x.protocol "tcp"; x.port2 ${ports.open}; x.direction "1to2";
  }
`;
const bank = (more: string): string => machine("bank", "h2", "db", volumes + more);

const apply = async (t: Testbed, name: string, text: string, ...more: readonly string[]): Promise<void> => {
  const file = join(dirname(t.configFile), `${name}.sf`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  await cells(t, "apply", file, "--yes", ...more);
};
const run = (t: Testbed, vm: string, script: string): Promise<Ended> => execIn(t, `${vm}/vm`, ["sh", "-c", script]);
const untilRuns = (t: Testbed, vm: string, script: string, wanted: RegExp): Promise<Ended> =>
  until(
    `${vm}: \`${script}\` says ${wanted}`,
    () => run(t, vm, script),
    ({ stdout }) => wanted.test(stdout),
  );
const whyElement = async (t: Testbed, path: string): Promise<ElementAnswer> =>
  JSON.parse((await t.cells(["why", path, "--output", "json"])).stdout) as ElementAnswer;
const whyConnection = async (t: Testbed, question: string): Promise<ConnectionAnswer> =>
  JSON.parse((await t.cells(["why", question, "--output", "json"])).stdout) as ConnectionAnswer;
const toBank = `shop/vm -> //${bankDomain}/bank/card:${ports.open}`;

const addressOf = async (t: Testbed, card: string): Promise<string> => {
  const state = await stateOf(t, card);
  assert.ok(state?.address, `${card} has no address`);
  return state.address;
};
const probe = async (t: Testbed, from: string, to: string, port: number): Promise<string> => {
  const asked: Probe = { from: `${from}/vm`, to: `${to}/vm`, protocol: "tcp", port, expected: "passes" };
  const [command = "", ...args] = probeCommand(asked, await addressOf(t, `${to}/card`));
  const { code, stdout, stderr } = await execIn(t, `${from}/vm`, [command, ...args]);
  return seenIn(asked, { exitCode: code, stdout, stderr });
};
const untilProbed = (t: Testbed, wanted: "passes" | "blocked"): Promise<string> =>
  until(
    `a connection from the shop to the bank ${wanted}`,
    () => probe(t, "shop", "bank", ports.open),
    (seen) => seen === wanted,
  );
/** What a VM is told of a name: an address, or that there is none. */
const lookUp = async (t: Testbed, vm: string, name: string): Promise<string> => {
  const { stdout, stderr } = await run(t, vm, `nslookup ${name} 2>&1; true`);
  const text = stdout + stderr;
  if (/NXDOMAIN/.test(text)) return "NXDOMAIN";
  return /Name:[^\n]*\n[^\n]*?(10\.\d+\.\d+\.\d+)/.exec(text)?.[1] ?? text;
};

const referencesWait = async (t: Testbed): Promise<void> => {
  await apply(t, "shop", shop, "--no-wait");
  await untilSaid(t, "shop/copied", /\/\/bank\.cells\.internal\/bank\/forms is not visible/);
  await untilSaid(t, "shop/ledgerDisk", /bank\/ledger is not visible/);
  await untilSaid(t, "shop/toBank", /bank\/card is not visible/);
  assert.equal((await stateOf(t, "shop/vm"))?.phase, "waiting");
  // Shown is not granted, and a rule of one cell is none of the other.
  await apply(t, "bank", bank(""));
  await untilSaid(t, "shop/copied", /is visible, but bank\.cells\.internal does not let this cell copy it/);
  await untilSaid(t, "shop/toBank", /bank\.cells\.internal has no rule in effect that opens the same/);
  assert.match((await whyElement(t, "shop/vm")).verdict, /let bank\.cells\.internal have a VolumeGrant of it/);
  await apply(t, "bank", bank(grants));
  await untilReady(t, "shop/vm");
  for (const path of ["shop/copied", "shop/copiedDisk", "shop/ledgerDisk"]) await untilReady(t, path);
  for (const cell of ["shop", "bank"]) {
    const address = (await addressOf(t, `${cell}/card`)).replaceAll(".", "\\.");
    await untilRuns(t, cell, "ip -4 address; cat /etc/resolv.conf", new RegExp(`${address}.*nameserver`, "s"));
  }
};

const disksAreTheBanks = async (t: Testbed): Promise<void> => {
  const disk = (sizeMiB: number): string =>
    `$(for d in /sys/block/vd*; do test $(cat $d/size) = ${sizeMiB * 2048} && echo /dev/\${d##*/}; done)`;
  const sum = async (of: string): Promise<string> => (await run(t, "shop", `head -c 1048576 ${of} | sha256sum`)).stdout;
  const [copied, ledger] = [await sum(disk(sizes.copied)), await sum(disk(sizes.ledger))];
  assert.match(copied, /^[0-9a-f]{64}/);
  assert.equal(copied, ledger, "both hold what the bank's image holds");
  assert.notEqual(copied, await sum("/dev/zero"), "which is something");
  const writes = (of: string): Promise<Ended> =>
    run(t, "shop", `echo mine | dd of=${of} conv=notrunc,fsync bs=512 count=1`);
  assert.equal((await writes(disk(sizes.copied))).code, 0, "a copy is the cell's own");
  assert.notEqual((await writes(disk(sizes.ledger))).code, 0, "what is connected stays as the bank's grant has it");
};

const namesWherePublic = async (t: Testbed): Promise<void> => {
  const [card, vault] = [await addressOf(t, "bank/card"), await addressOf(t, "bank/hidden")];
  assert.equal(await lookUp(t, "bank", `vault.${bankDomain}`), vault, "its own names a cell sees all");
  assert.equal(await lookUp(t, "bank", `db.${bankDomain}`), card);
  assert.equal(await lookUp(t, "shop", `db.${bankDomain}`), card);
  assert.equal(await lookUp(t, "shop", `vault.${bankDomain}`), "NXDOMAIN");
  assert.equal(await lookUp(t, "shop", `nothing.${bankDomain}`), "NXDOMAIN");
};

/** A program in a cell's VM changes its cell: by rules of the cell, and with a credential of it. */
const controllerPort = 7101;
const changesItself = async (t: Testbed): Promise<void> => {
  const [own, other] = await Promise.all(
    ["shop", "bank"].map(async (cell) =>
      (await run(t, cell, "sed -n 's/nameserver //p' /etc/resolv.conf")).stdout.trim(),
    ),
  );
  const opens = async (address = ""): Promise<boolean> =>
    (await run(t, "shop", `socat -u OPEN:/dev/null TCP4:${address}:${controllerPort},connect-timeout=2`)).code === 0;
  assert.equal(await opens(own), false, "closed unless its rules open it");
  const opened = `inside extends NetworkRule {
    x.address1 "<ref:/shop/card>"; x.address2 "controller"; x.protocol "tcp"; x.port2 ${controllerPort}; x.direction "1to2";
  }
}`;
  await apply(t, "shop", shop.trimEnd().replace(/\}$/, opened), "--no-wait");
  await untilReady(t, "shop/inside");
  await until(
    "the controller can be reached",
    () => opens(own),
    (is) => is,
  );
  assert.equal(await opens(other), false, "another cell's controller stays out of reach");
  const { credential } = JSON.parse(await cells(t, "credential", "add", "shop", "--output", "json")) as {
    readonly credential: string;
  };
  const authority = readFileSync(join(t.at.authority, "authority.pem"), "utf8");
  await run(t, "shop", `echo '${authority}' >/tmp/authority.pem`);
  const put = async (bearer: string): Promise<string> => {
    const body = JSON.stringify({ "x.type": "Volume", "x.size": 1 });
    const head = ["PUT /cells/shop/model/shop/made HTTP/1.1", "host: controller", "connection: close"];
    const headers = [
      `authorization: Bearer ${bearer}`,
      "content-type: application/json",
      `content-length: ${body.length}`,
    ];
    const tls = `${own}:${controllerPort},cafile=/tmp/authority.pem,commonname=controller.shop`;
    const { stdout, stderr } = await run(t, "shop", requestByTls([...head, ...headers, "", body], tls));
    return stdout + stderr;
  };
  assert.match(await put("no-credential-of-it"), /^HTTP\/1.1 401 .*this is no credential of the cell shop/s);
  assert.equal(await stateOf(t, "shop/made"), null);
  assert.match(await put(credential), /^HTTP\/1.1 20/);
  await untilReady(t, "shop/made");
};

const oneSideIsNotEnough = async (t: Testbed): Promise<void> => {
  for (const port of Object.values(ports)) {
    const [command = "", ...args] = listenerCommand("tcp", port);
    await execIn(t, "bank/vm", [command, ...args]);
    await untilRuns(t, "bank", `echo cells-probe | socat -t2 - TCP4:127.0.0.1:${port}`, /cells-probe/);
  }
  assert.equal(await probe(t, "shop", "bank", ports.open), "blocked");
  const why = await whyConnection(t, toBank);
  assert.equal(why.allowed, false);
  assert.match(
    why.verdict,
    /is dropped at host h1 \(sender\).*the rule shop\/toBank waits: bank\.cells\.internal has no rule/,
  );
};

const bothAgree = async (t: Testbed): Promise<void> => {
  await apply(t, "bank", bank(grants + consent));
  await untilReady(t, "shop/toBank");
  await untilProbed(t, "passes");
  assert.equal((await whyConnection(t, toBank)).allowed, true);
  assert.equal(await probe(t, "shop", "bank", ports.closed), "blocked", "nothing but what both say");
  assert.equal(await probe(t, "bank", "shop", ports.open), "blocked", "and in the direction that both say");
};

/** A connection that is there ends with the consent as well: what it carries is counted at its far end. */
const consentEnds = async (t: Testbed): Promise<void> => {
  const address = await addressOf(t, "bank/card");
  const listen = "kill $(pidof socat); sleep 0.3; rm -f /tmp/seen";
  await run(
    t,
    "bank",
    `${listen}; socat TCP4-LISTEN:${ports.open},reuseaddr,fork OPEN:/tmp/seen,creat,append >/dev/null 2>&1 </dev/null & sleep 0.3`,
  );
  const listening = `grep -i ":${ports.open.toString(16).padStart(4, "0")} .* 0A " /proc/net/tcp`;
  await untilRuns(t, "bank", listening, /0A/);
  const sends = `(while :; do date; sleep 0.2; done) | socat -d -d - TCP4:${address}:${ports.open} 2>/tmp/sender`;
  await run(t, "shop", `sh -c '${sends}' >/dev/null 2>&1 </dev/null & sleep 0.2`);
  const arrived = async (): Promise<number> => Number((await run(t, "bank", "wc -c < /tmp/seen")).stdout.trim());
  const first = await until("something has arrived", arrived, (bytes) => bytes > 0);
  await until("more arrives", arrived, (bytes) => bytes > first);
  await apply(t, "bank", bank(grants));
  await untilSaid(t, "shop/toBank", /has no rule in effect/);
  let last = -1;
  await until("nothing more arrives", arrived, (bytes) => {
    const isStill = bytes === last;
    last = bytes;
    return isStill;
  });
  await new Promise((resolve) => setTimeout(resolve, 2000));
  assert.equal(await arrived(), last);
  assert.match((await run(t, "shop", "pidof socat; cat /tmp/sender; ps")).stdout, /^\d/, "who sent it would go on");
  const [command = "", ...args] = listenerCommand("tcp", ports.open);
  await run(t, "bank", "kill $(pidof socat); sleep 0.3");
  await execIn(t, "bank/vm", [command, ...args]);
  await untilProbed(t, "blocked");
  assert.match((await whyConnection(t, toBank)).verdict, /shop\/toBank waits/);
};

test("cells beside one another", {
  skip: process.getuid?.() === 0 ? false : "needs root",
}, async (context) => {
  await withTestbed({ hosts: 2 }, async (t) => {
    const steps: Readonly<Record<string, (t: Testbed) => Promise<void>>> = {
      "a reference waits until it is visible, and for leave where that is needed": referencesWait,
      "a copy and a connected volume hold what the other cell's do": disksAreTheBanks,
      "names across cells only where public": namesWherePublic,
      "a cell changes itself from inside, by its rules and with its credential": changesItself,
      "traffic that one cell alone wants is dropped at its source host": oneSideIsNotEnough,
      "traffic that both want passes, and nothing beside it": bothAgree,
      "without the consent what was open ends": consentEnds,
    };
    for (const [title, step] of Object.entries(steps)) await context.test(title, () => step(t));
  });
});
