import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { HaReport } from "../../model/contract/operator/ha.ts";
import type { Testbed } from "../harness.ts";
import { cells, stateOf, until } from "../lab.testing.ts";
import { processesOf, tenant, vmState } from "../management/self-hosted.testing.ts";
import { askStatus } from "../tenants/questions.testing.ts";

/**
 * The bootstrap host is lost for good: nothing of it runs any more, and nobody else could start the root controller's VM.
 * Another host does, and everything goes on; when the lost one comes back, it leaves the VM where it is.
 */
const core = "root/core1/vm";

/** All machines that run in a member's own network, and the wire: as when a plug is pulled. */
const pull = `ip link set eth0 down
for pid in $(pgrep -f '^qemu-system'); do
  [ "$(readlink /proc/$pid/ns/net)" = "$(readlink /proc/self/ns/net)" ] && kill -KILL "$pid"
done
true`;

export interface Succession {
  readonly t: Testbed;
  readonly reached: (what: string) => void;
  /** Seconds. */
  readonly patience: number;
  /** A tenant's cell, as `tenant` gives it. */
  readonly cell: string;
}

export const losesBootstrapHost = async ({ t, reached, patience, cell }: Succession): Promise<void> => {
  const before = await vmState(t, core);
  const lost = before.host;
  // Of these every host but the lost one may have some; who can be asked then is not the subject of this test.
  for (const path of ["primary/gateway/vm", `root/controllers/${cell}/vm`])
    assert.notEqual((await vmState(t, path)).host, lost, `${path} is on the host that is to be lost`);
  // The one that is placed last is where there is most room left: a second one is elsewhere than the first.
  const file = join(dirname(t.configFile), `${cell}.sf`);
  const more = `
  boot2 extends VolumeCopy { x.image "<ref:/${cell}/golden>"; }
  vm2 extends VM { x.memory 96; x.restartOnFailure true; }
  disk2 extends VolumeConnection { x.vm "<ref:/${cell}/vm2>"; x.volume "<ref:/${cell}/boot2>"; x.bootOrder 0; }
`;
  const withMore = tenant(cell).replace(/\}\s*$/, `${more}}\n`);
  writeFileSync(file, withMore);
  await cells(t, "apply", file, "--yes");
  const machines = [`${cell}/vm`, `${cell}/vm2`];
  const states = await Promise.all(machines.map((path) => vmState(t, path)));
  const elsewhere = machines.filter((_, at) => states[at]?.host !== lost);
  assert.notEqual(elsewhere.length, 0, `all of the tenant's machines are on ${lost}`);
  for (const path of elsewhere) await cells(t, "exec", path, "--", "sh", "-c", "echo kept > /tmp/lost");

  // Who the operator is only the root controller can say, so the tenant's own credential is what opens its cell meanwhile.
  const tenantOnly = join(dirname(t.configFile), `${cell}.json`);
  await cells(t, "credential", "add", cell, "--out", tenantOnly);

  await t.exec(lost, ["sh", "-c", pull]);
  await t.stop(lost);
  assert.deepEqual(await processesOf(t, lost, `^qemu-system.*guest=cells-${before.uid}-`), []);
  reached(`${lost}, where the root controller's VM ran, is gone`);
  let answered = 0;
  const now = await until(
    "the root controller's VM runs on another host",
    async () => {
      for (const path of elsewhere) {
        const { code, stderr } = await t.cells(["exec", path, "--", "cat", "/tmp/lost"], tenantOnly);
        assert.equal(code, 0, `${path} does not answer while the root controller is away: ${stderr}`);
        answered += 1;
      }
      return stateOf(t, core);
    },
    (state) => typeof state?.host === "string" && state.host !== lost && state.phase === "ready",
    patience,
  );
  assert.ok(answered > 0 && (now?.incarnation ?? 0) > (before.incarnation ?? 0), JSON.stringify(now));
  reached(
    `${now?.host} has started it as incarnation ${now?.incarnation}; tenants' VMs answered ${answered} times meanwhile`,
  );
  writeFileSync(file, withMore.replace(/\}\s*$/, "  extra extends Volume { x.size 8; }\n}\n"));
  // Something of the cell may be on the lost host, where it is not known how it is.
  await cells(t, "apply", file, "--yes", "--no-wait");
  await until(
    "a volume that is asked for now",
    () => stateOf(t, `${cell}/extra`),
    (state) => state?.phase === "ready",
    patience,
  );
  reached("a change was accepted and carried out");
  // The HA Manager came with the root controller, and the rest of what ran there is fenced and starts elsewhere.
  for (const [at, path] of machines.entries())
    if (states[at]?.host === lost) {
      const again = await untilElsewhere(t, path, lost, patience);
      reached(`${path} was there, too, and runs at ${again} by itself`);
    }
  await comesBack(t, lost, patience);
  const after = await vmState(t, core);
  assert.deepEqual([after.host, after.incarnation], [now?.host, now?.incarnation], "it stays where it is");
  assert.deepEqual(await machinesAt(t, lost, before.uid), [], `${lost} runs nothing of it`);
  for (const path of elsewhere) assert.equal((await cells(t, "exec", path, "--", "cat", "/tmp/lost")).trim(), "kept");
  reached(`${lost} has come back, and left it where it is`);
};

/**
 * The host of a service that is not the root controller's is lost for good: the HA Manager has its machines fenced, and they start
 * elsewhere with the service's store, without anybody's word.
 */
export const losesServiceHost = async ({ t, reached, patience }: Succession): Promise<void> => {
  const rootVm = await vmState(t, core);
  // The host that took the root controller's VM over may have had one of the others already; no host has both.
  let name = "core2";
  if ((await vmState(t, `root/${name}/vm`)).host === rootVm.host) name = "core3";
  const path = `root/${name}/vm`;
  const service = await vmState(t, path);
  const lost = service.host;
  assert.notEqual(lost, rootVm.host, "the others are spread over hosts");
  const said = JSON.parse((await t.cells(["ha", "--output", "json"])).stdout) as HaReport;
  assert.ok(said.protected > 3, `${said.protected} machines are looked after`);
  await t.exec(lost, ["sh", "-c", pull]);
  await t.stop(lost);
  reached(`${lost}, where ${name} ran, is gone`);
  const host = await untilElsewhere(t, path, lost, patience);
  // The gateway may have been there as well, and have come back the same way.
  const { stdout } = await until(
    "the HA Manager says what it has done",
    () => t.cells(["ha", "--output", "json"]),
    ({ code }) => code === 0,
    patience,
  );
  const done = (JSON.parse(stdout) as HaReport).items.find(
    (item) => item.path === path && item.host === lost && item.step === "Done",
  );
  assert.equal(done?.fencedBy, "storage", stdout);
  const after = await vmState(t, core);
  assert.deepEqual([after.host, after.incarnation], [rootVm.host, rootVm.incarnation], "the root controller went on");
  reached(`${name} runs at ${host} by itself, fenced at the storage before`);
  await comesBack(t, lost, patience);
  assert.deepEqual(await machinesAt(t, lost, service.uid), [], `${lost} runs nothing of it`);
  reached(`${lost} has come back, and left it where it is`);
};

/** @returns where it runs now */
const untilElsewhere = async (t: Testbed, path: string, lost: string, patience: number): Promise<string> => {
  const state = await until(
    `${path} runs on another host than ${lost}`,
    () => stateOf(t, path),
    (found) => typeof found?.host === "string" && found.host !== lost && found.phase === "ready",
    patience,
  );
  return state?.host ?? "";
};

const comesBack = async (t: Testbed, host: string, patience: number): Promise<void> => {
  await t.exec(host, ["ip", "link", "set", "eth0", "up"]);
  await t.start(host);
  await until(
    `${host} is back`,
    () => askStatus(t),
    (status) => status?.hosts.find((each) => each.host === host)?.presence?.state === "up",
    patience,
  );
};

/** QEMUs of a VM that run in a host's own network; the others' are to be seen as well. */
const machinesAt = async (t: Testbed, host: string, uid: string): Promise<readonly string[]> => {
  const { stdout } = await t.exec(host, ["sh", "-c", "readlink /proc/self/ns/net"]);
  const found: string[] = [];
  for (const pid of await processesOf(t, host, `^qemu-system.*guest=cells-${uid}-[0-9]+`))
    if ((await t.exec(host, ["readlink", `/proc/${pid}/ns/net`])).stdout === stdout) found.push(pid);
  return found;
};
