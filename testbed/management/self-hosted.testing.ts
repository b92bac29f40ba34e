import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { isReady } from "../../cli/connection/elements.ts";
import type { ElementState } from "../../model/api.ts";
import type { Testbed } from "../harness.ts";
import { cells, stateOf, until } from "../lab.testing.ts";
import { askElements, execIn } from "../tenants/questions.testing.ts";

/** What tests and measurements of a cloud that runs in itself have in common. */

/** A small machine of a tenant, which may be asked over its agent. */
export const tenant = (cell: string): string => `
${cell} extends Cell {
  golden extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }
  boot extends VolumeCopy { x.image "<ref:/${cell}/golden>"; }
  vm extends VM { x.memory 96; x.restartOnFailure true; }
  disk extends VolumeConnection { x.vm "<ref:/${cell}/vm>"; x.volume "<ref:/${cell}/boot>"; x.bootOrder 0; }
  subnet extends Subnet { x.size 16; }
  card extends VirtualInterface { x.vm "<ref:/${cell}/vm>"; x.subnet "<ref:/${cell}/subnet>"; x.vifName "me"; }
}
`;

export const vmState = async (t: Testbed, path: string): Promise<ElementState & { readonly host: string }> => {
  const state = await stateOf(t, path);
  assert.ok(typeof state?.host === "string", `${path} runs on no host: ${JSON.stringify(state)}`);
  return { ...state, host: state.host };
};

/** Everything of a cell is ready. */
export const untilAllReady = (t: Testbed, cell: string, seconds: number): Promise<unknown> =>
  until(
    `${cell} is as declared`,
    async () => (await askElements(t, cell)) ?? [],
    (elements) => elements.length > 0 && elements.every(isReady),
    seconds,
  );

/** Numbers of the processes on a member whose command line has a word like this, of this testbed alone. */
export const processesOf = async (t: Testbed, member: string, pattern: string): Promise<readonly string[]> => {
  const { stdout } = await t.exec(member, ["pgrep", "-f", "--", pattern]);
  return stdout.split("\n").filter((line) => /^\d+$/.test(line));
};

const signalMachine = async (t: Testbed, host: string, uid: string, signal: "KILL" | "STOP"): Promise<void> => {
  const [pid, ...more] = await processesOf(t, host, `^qemu-system.*guest=cells-${uid}-[0-9]+`);
  assert.ok(pid !== undefined && more.length === 0, `one QEMU of ${uid} on ${host}, not ${more.length + 1}`);
  assert.equal((await t.exec(host, ["kill", `-${signal}`, pid])).code, 0);
};
/** Ends a VM's QEMU as a crash does. `uid`: of the VM. */
export const killMachine = (t: Testbed, host: string, uid: string): Promise<void> =>
  signalMachine(t, host, uid, "KILL");
/** Its QEMU is there and does nothing any more. */
export const freezeMachine = (t: Testbed, host: string, uid: string): Promise<void> =>
  signalMachine(t, host, uid, "STOP");

/** Two machines of the cell `one`, the first of which pings the other all the time. */
export const startPings = async (t: Testbed, file: string): Promise<void> => {
  const peer = `
  peerBoot extends VolumeCopy { x.image "<ref:/one/golden>"; }
  peer extends VM { x.memory 96; }
  peerDisk extends VolumeConnection { x.vm "<ref:/one/peer>"; x.volume "<ref:/one/peerBoot>"; x.bootOrder 0; }
  peerCard extends VirtualInterface { x.vm "<ref:/one/peer>"; x.subnet "<ref:/one/subnet>"; x.vifName "peer"; }
  ping extends NetworkRule { x.address1 "<ref:/one/card>"; x.address2 "<ref:/one/peerCard>"; x.protocol "icmp"; x.direction "1to2"; }
}`;
  writeFileSync(file, tenant("one").trimEnd().replace(/\}$/, peer));
  await cells(t, "apply", file, "--yes");
  const { address } = (await stateOf(t, "one/peerCard")) ?? {};
  assert.ok(typeof address === "string");
  await until(
    "one/vm reaches its peer",
    () => execIn(t, "one/vm", ["ping", "-c", "1", "-W", "1", address]),
    ({ code }) => code === 0,
  );
  await cells(t, "exec", "one/vm", "--", "sh", "-c", `ping ${address} >/tmp/pings 2>&1 & echo $! >/tmp/pinger`);
};

/** How many of its pings were lost. */
export const pingsLost = async (t: Testbed): Promise<{ readonly sent: number; readonly lost: number }> => {
  const { stdout } = await until(
    "one/vm tells its pings",
    () => execIn(t, "one/vm", ["sh", "-c", "kill -INT $(cat /tmp/pinger); sleep 1; tail -n 2 /tmp/pings"]),
    ({ code, stdout }) => code === 0 && /packets transmitted/.test(stdout),
  );
  const [, sent = "0", received = "0"] = /(\d+) packets transmitted, (\d+) /.exec(stdout) ?? [];
  return { sent: Number(sent), lost: Number(sent) - Number(received) };
};
