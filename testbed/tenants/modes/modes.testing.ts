import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Testbed } from "../../harness.ts";

/* Cells whose networks modes of Eucalyptus make: machines that are members of a group, and what is asked of them. */

export const ports = { open: 7000, closed: 7001 } as const;
/** @param group its own Subnet; empty: it is in the cell's */
export const machine = (name: string, host: string | null, group: string, cell = "shop"): string => `
  ${name} extends {
    boot extends VolumeCopy { x.image "<ref:/${cell}/golden>"; }
    vm extends VM { x.memory 96; ${host === null ? "" : `x.placement.host "${host}";`} x.data extends { userData "for ${name}"; } }
    disk extends VolumeConnection { x.vm "<ref:../vm>"; x.volume "<ref:../boot>"; x.bootOrder 0; }
    ${group}
    card extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:${group === "" ? `/${cell}` : ".."}/group>"; x.vifName "${name}"; }
  }`;
export const groupOf = (more = ""): string => `group extends Subnet { x.size 16; ${more} }`;
export const external = 'x.addressRange "external";';

export const fileOf = (t: Testbed, name: string, text: string): string => {
  const file = join(dirname(t.configFile), name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
};
/** What a machine says back to somebody outside; empty: nothing. */
export const fromOutside = async (t: Testbed, elastic: string, port: number): Promise<string> =>
  (await t.outside(["sh", "-c", `echo cells | socat -t3 - TCP4:${elastic}:${port},connect-timeout=3`])).stdout;
