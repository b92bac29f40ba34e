import { peerName } from "../../../model/cell/identifiers.ts";
import { placerOf } from "../many-hosts.ts";
import { hostSize } from "../trace-hosts.ts";
import { alike } from "./alike.ts";

/* VMs that are all alike, at hosts that are: what others are compared with. Arguments: hosts, VMs. */
export interface AlikeReport {
  readonly tookMs: number;
  readonly placed: number;
}
const [hosts = 20, vms = 200] = process.argv.slice(2).map(Number);
const { state, desire } = placerOf(hosts, 1, () => hostSize);
const client = peerName("controller.k0");
let tookMs = 0;
for (let at = 0; at < vms; at += 1) {
  const vm = `v${at}`;
  const document = { vm, path: `k0/${vm}`, cell: "k0", incarnation: 1, cpuSpeedMHz: 0, ...alike, placement: {} };
  const began = performance.now();
  desire(client, `placement/${vm}`, document);
  tookMs += performance.now() - began;
}
const report: AlikeReport = { tookMs, placed: state.reservations.size };
process.stdout.write(`${JSON.stringify(report)}\n`);
