import assert from "node:assert/strict";
import type { ElementState } from "../model/api.ts";
import type { Testbed } from "./harness.ts";
import { stateOf, until } from "./lab.testing.ts";

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
    async () => (await t.cells(["get", cell, "--state"])).stdout.trim().split("\n").at(-1) ?? "",
    (last) => /^(\d+) elements: \1 ready$/.test(last),
    seconds,
  );

/** Numbers of the processes on a member whose command line has a word like this, of this testbed alone. */
export const processesOf = async (t: Testbed, member: string, pattern: string): Promise<readonly string[]> => {
  const { stdout } = await t.exec(member, ["pgrep", "-f", "--", pattern]);
  return stdout.split("\n").filter((line) => /^\d+$/.test(line));
};

/** Ends a VM's QEMU as a crash does. `uid`: of the VM. */
export const killMachine = async (t: Testbed, host: string, uid: string): Promise<void> => {
  const [pid, ...more] = await processesOf(t, host, `^qemu-system.*guest=cells-${uid}-[0-9]+`);
  assert.ok(pid !== undefined && more.length === 0, `one QEMU of ${uid} on ${host}, not ${more.length + 1}`);
  assert.equal((await t.exec(host, ["kill", "-KILL", pid])).code, 0);
};
