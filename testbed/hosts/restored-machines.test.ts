import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { hashCredential } from "../../runtime/http/bearer.ts";
import { layWire, type Machine, type Running, says, startGateway, until, type Wire } from "./machines.testing.ts";

/**
 * The management of a cloud of real machines is gone, and comes back from a backup as docs/backup.md says: with the commands
 * and the units of the repository, on machines that share a wire and nothing else. What a VM would do is left out, as in
 * joining.test.ts: the birth's processes go on from the backup, and whoever was there joins anew.
 */
const gatewayAddress = "10.0.0.40";
const images = "/etc/images";
const passphrase = "four words make one";
let wire: Wire;
const machines = new Map<string, Machine>();
const own = (name: string): Machine => machines.get(name) ?? assert.fail(`there is no machine ${name}`);

const inShell = async (machine: Machine, script: string, input?: string): Promise<string> => {
  const { code, stdout, stderr } = await machine.run(["sh", "-euc", script], input);
  assert.equal(code, 0, stderr);
  return stdout;
};
const startUnits = async (machine: Machine): Promise<void> => {
  for (const unit of ["machines", "bridge", "agent", "host"]) await machine.startUnit(`cells-${unit}.service`);
};
/** As systemd would with `cells host leave`, or a plug: nothing of the machine runs any more. */
const endAll = async (machine: Machine): Promise<void> => {
  await machine.run(["sh", "-c", "kill -9 -1"]);
};
const volumesOf = (machine: Machine): Promise<string> =>
  inShell(machine, "ls /var/lib/cells/storage/volumes 2>/dev/null | grep qcow2 | sort || true");

before(async () => {
  wire = await layWire();
  for (const number of [1, 2]) {
    const machine = await wire.machine(`h${number}`, `10.0.1.${number}`);
    machines.set(machine.name, machine);
    // No VM boots here: an agent only has to know where its images would be.
    const stubs = `for image in service tiny; do mkdir -p ${images}/$image; echo "{}" > ${images}/$image/manifest.json; done`;
    await inShell(machine, `${stubs}; umask 077; cat > /etc/passphrase`, passphrase);
    await inShell(machine, "umask 077; cat > /etc/wrong", "five words make none at all");
  }
});
after(() => wire.remove());

const credentialOf = async (machine: Machine): Promise<string> =>
  ((await machine.read("/etc/cells/operator.credential")) ?? "").trim();

const bootstrap = (machine: Machine, ...more: readonly string[]): Running =>
  machine.begin(["bootstrap", "--images", images, "--address", machine.address, ...more]);
const restore = ["--backup", "/etc/cells.backup", "--passphrase-file", "/etc/passphrase"];
let backup = "";
let uids: unknown = null;

test("a cloud of two machines, and a backup of its management", async () => {
  const [h1, h2] = [own("h1"), own("h2")];
  const first = bootstrap(h1);
  await says(first, /waiting for host.h1 to listen/);
  await startUnits(h1);
  await says(first, /the bootstrap model was accepted/);
  await first.end();
  await startGateway(h1, gatewayAddress, hashCredential(await credentialOf(h1)));
  const token = await h1.cells(["host", "token", "h2", "--address", "10.0.1.2", "--agent"]);
  assert.equal(token.code, 0, token.stderr);
  const joining = h2.begin(["host", "join", "--storage", "/var/lib/cells/storage", "--images", images], token.stdout);
  await Promise.race([says(joining, /waiting for host.* to listen/), joining.ended]);
  await startUnits(h2);
  assert.equal(await joining.ended, 0, joining.lines.join("\n"));
  await until(
    "the volume of the birth is there",
    () => volumesOf(h1),
    (names) => names !== "",
  );
  // As the birth does once the controller is in its VM.
  await until(
    "the whole root cell is accepted",
    () => h1.cells(["apply", "/etc/cells/root/small.sf", "--yes", "--timeout", "1"]),
    ({ code }) => code === 0 || code === 4,
  );
  const made = await until(
    "everybody gives its part",
    () => h1.cells(["management", "backup", "/etc/cells.backup", "--passphrase-file", "/etc/passphrase"]),
    ({ code }) => code === 0,
  );
  for (const part of ["authority", "controller.root", "host.h1", "host.h2", "agent.h2"])
    assert.match(made.stdout, new RegExp(`^  ${part.replace(".", "\\.")}: `, "m"));
  const shown = await h1.cells(["get", "root", "--output", "json"]);
  uids = JSON.parse(shown.stdout);
  backup = await inShell(h1, "base64 -w0 /etc/cells.backup");
});

/** Of each machine what a refusal must not change. */
const fingerprintOf = async (machine: Machine): Promise<string> =>
  inShell(
    machine,
    "for d in /etc/cells /var/lib/cells/authority /var/lib/cells/host /var/lib/cells/agent; do if test -d $d; then cd $d; find . -type f ! -name '*.sqlite*' | sort | xargs -r sha256sum; fi; done; ip -br address",
  );
const refused = async (machine: Machine, why: RegExp, ...args: readonly string[]): Promise<void> => {
  const before = await fingerprintOf(machine);
  const ended = await machine.cells(["bootstrap", "--images", images, ...args]);
  assert.ok(ended.code !== 0 && ended.code !== null, ended.stdout);
  assert.match(ended.stderr, why);
  assert.equal(await fingerprintOf(machine), before, "nothing was touched");
};

test("what does not fit is refused, and nothing is touched", async () => {
  const [h1, h2] = [own("h1"), own("h2")];
  const said = ["--powered-off", "h1,h2"];
  await refused(h1, /this machine is host\.h1 already.*cells host leave --force/, ...restore, ...said);
  await refused(h1, /--powered-off is about a backup/, ...said);

  // The first machine is lost with all that it had, and another one is in its place.
  await endAll(h1);
  await inShell(
    h1,
    "umount /run/cells/host/bpf; rm -rf /etc/cells /var/lib/cells /run/cells /etc/systemd/system/cells-* /etc/cells-client.json; ip link del cells0 2>/dev/null; ip address replace 10.0.1.1/16 dev eth0; base64 -d > /etc/cells.backup",
    backup,
  );
  await refused(h1, /passphrase/, "--backup", "/etc/cells.backup", "--passphrase-file", "/etc/wrong", ...said);
  await refused(h1, /the backup has the hosts h1, h2.*said of h1, h2 that nothing runs/, ...restore);
  await refused(h1, /nobody has said of h2 that nothing runs there/, ...restore, "--powered-off", "h1");
  await refused(h1, /no host can have the name "h_9"; the backup has h1, h2/, ...restore, "--powered-off", "h1,h2,h_9");
  await refused(h1, /no storage server h9/, ...restore, ...said, "--lost-servers", "h9");
  await refused(h1, /host\.h2 at 10\.0\.1\.2 still answers.*cells host leave --force/, ...restore, ...said);
  const moved =
    "mkdir /etc/other; cp -r \"$1\"/. /etc/other; sed -i 's/10\\.0\\.0\\.31/10.0.0.91/' /etc/other/small.sf";
  const root = fileURLToPath(new URL("../../examples/root", import.meta.url));
  assert.equal((await h1.run(["sh", "-euc", moved, "move", root])).code, 0);
  await refused(
    h1,
    /10\.0\.0\.31, and the root specification here says .*10\.0\.0\.91/,
    ...restore,
    ...said,
    "--specification",
    "/etc/other/small.sf",
  );

  // Nobody takes a machine that runs for one that comes back.
  const left = await h2.cells(["host", "leave", "--force"]);
  assert.equal(left.code, 0, left.stderr);
  await endAll(h2);
});

test("the first machine goes on from the backup, and waits for the disk of the other before it makes a volume", async () => {
  const [h1, h2] = [own("h1"), own("h2")];
  const kept = await volumesOf(h2);
  // h9 joined after the backup was made.
  const going = bootstrap(h1, ...restore, "--powered-off", "h1,h2,h9");
  await Promise.race([says(going, /waiting for host.h1 to listen/), going.ended]);
  assert.match(
    going.lines.join("\n"),
    /does not know the host h9[\s\S]*restored authority[\s\S]*restored controller\.root/,
  );
  await startUnits(h1);
  await says(going, /they go on from the backup of .*: root\/core1\/vm is made anew/);
  assert.match(going.lines.join("\n"), /h2 comes back with the token in \/etc\/cells\/returning\/h2\.token/);
  await going.end();

  // It may be interrupted, and is given again.
  const again = bootstrap(h1, ...restore, "--powered-off", "h1,h2");
  await says(again, /is in place already, and this goes on from it/);
  await says(again, /they go on from the backup/);
  await again.end();

  await startGateway(h1, gatewayAddress, hashCredential(await credentialOf(h1)));
  const shown = await until(
    "the root cell is there",
    () => h1.cells(["get", "root", "--output", "json"]),
    ({ code }) => code === 0,
  );
  assert.deepEqual(Object.keys(JSON.parse(shown.stdout)), Object.keys(uids as object));
  const waiting = await until(
    "its volume waits for the other server",
    () => h1.cells(["get", "root/core1/data", "--state", "--output", "json"]),
    ({ stdout }) => /yet to hear what is on/.test(stdout),
  );
  assert.match(waiting.stdout, /yet to hear what is on (h1, )?h2/);
  assert.equal(await volumesOf(h1), "", "nothing is made before");

  const token = await inShell(h1, "cat /etc/cells/returning/h2.token");
  const joining = h2.begin(["host", "join", "--storage", "/var/lib/cells/storage", "--images", images], token);
  await Promise.race([says(joining, /waiting for host.* to listen/), joining.ended]);
  await startUnits(h2);
  assert.equal(await joining.ended, 0, joining.lines.join("\n"));
  assert.match(await inShell(h2, "ls /var/lib/cells"), /^host\.before-restore$/m, "it begins as a fresh host");
  await until(
    "the volume of the root controller's VM is made anew",
    async () => `${await volumesOf(h1)}${await volumesOf(h2)}`,
    (names) =>
      names.trim().split("\n").length >
      kept
        .trim()
        .split("\n")
        .filter((name) => name !== "").length,
  );
  const now = (await volumesOf(h2)).split("\n");
  assert.deepEqual(
    kept.split("\n").filter((name) => !now.includes(name)),
    [],
    "what survived is there",
  );
});
