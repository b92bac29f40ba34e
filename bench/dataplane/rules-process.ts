import { createDiverter } from "../../host/drivers/network/diverter/diverter.ts";
import { policy, rule } from "../../host/drivers/network/diverter/testing/installation.testing.ts";
import { serve } from "../../host/drivers/network/diverter/testing/serve.testing.ts";
import { cidr, hostName, ipv4, mac } from "../../model/cell/identifiers.ts";
import { tableBytes } from "./in-machine.ts";

/** A host's network driver with nothing but rules, in a machine of its own. Arguments: directory, run directory. */
const [directory = "", runDirectory = ""] = process.argv.slice(2);
const driver = createDiverter({ directory, runDirectory });

/** CPU time in milliseconds, of this process. */
export interface RuleCosts {
  /** All rules for the first time. */
  readonly all: number;
  /** One changed among them. */
  readonly one: number;
  /** The same document once more, as after a connection was cut. */
  readonly same: number;
  /** Nothing new about rules while something else changed. */
  readonly none: number;
  /** Found by the next process, which reads back what is in force. */
  readonly adopted: number;
}

/** 250 identities on one side; every rule admits one port of one pair, so that none can stand for another. */
const rulesOf = (count: number, port: number) =>
  Array.from({ length: count }, (_, index) =>
    rule(index + 1, 10 + (index % 250), 1000 + Math.floor(index / 250), "tcp", index === 0 ? port : 1024),
  );

const init = () => driver.init({ device: "eth0", address: ipv4("10.0.1.1"), mac: mac("02:00:00:00:01:01") });

async function cpuMs(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** As the Host Manager's executor does it: look, then do what is missing. */
async function apply(policies: ReturnType<typeof policy>[]): Promise<void> {
  const global = { policies, interfaces: [], locations: [] };
  if (driver.scrub(global, await driver.inspect()).securityGroup) await driver.implementSecurityGroup(global);
}

async function costs(count: number, cell: number): Promise<RuleCosts> {
  const [first, second] = [rulesOf(count, 80), rulesOf(count, 81)];
  const all = await cpuMs(() => apply([policy(cell, 1, first)]));
  const changed = policy(cell, 2, second);
  const one = await cpuMs(() => apply([changed]));
  const again = structuredClone(changed);
  const same = await cpuMs(() => apply([again]));
  const none = await cpuMs(() => apply([again]));
  await init();
  const adopted = await cpuMs(() => apply([again]));
  return { all, one, same, none, adopted };
}

export interface KnownCosts {
  /** Milliseconds, of processor time and by the clock. */
  readonly cpu: number;
  readonly wall: number;
  /** Memory in the kernel of the tables that addresses are in: before, and then. */
  readonly empty: number;
  readonly full: number;
}
const cells = 40;

/** So many VMs of other hosts, and so many subnets, are news all at once: of cells that all have a machine here. */
async function known(vms: number, subnets: number): Promise<KnownCosts> {
  const each = { vms: vms / cells, subnets: subnets / cells };
  const addressOf = (cell: number, at: number): string => `10.${64 + cell}.${(at * 4) >> 8}.${(at * 4) & 255}`;
  const policies = Array.from({ length: cells }, (_, cell) => ({
    ...policy(cell + 1, 1, [rule(1, 1, 2, "tcp", 80)]),
    subnets: Array.from({ length: each.subnets }, (_, at) => ({
      identity: 100_000 + at,
      cidr: cidr(`${addressOf(cell, at)}/30`),
    })),
  }));
  const locations = policies.flatMap(({ cellNumber }) =>
    Array.from({ length: each.vms }, (_, at) => ({
      ...{
        address: ipv4(addressOf(cellNumber - 1, at).replace(/\d+$/, (last) => String(Number(last) + 2))),
        cellNumber,
      },
      ...{ identity: 1_000 + at, vmIdentity: 50_000 + at, subnetIdentity: 100_000 + at, incarnation: 1 },
      ...{ host: hostName("h2"), hostMac: mac("02:00:00:00:01:02") },
    })),
  );
  const global = { policies, interfaces: [], locations };
  await driver.implementSecurityGroup(global);
  const [empty, began] = [tableBytes(runDirectory), performance.now()];
  const cpu = await cpuMs(async () => void (await driver.implementAddressing(global)));
  const wall = performance.now() - began;
  const full = tableBytes(runDirectory);
  const none = { policies: [], interfaces: [], locations: [] };
  await driver.implementAddressing(none);
  await driver.implementSecurityGroup(none);
  return { cpu, wall, empty, full };
}

serve(async (method, args) => {
  switch (method) {
    case "init":
      return init();
    case "costs":
      return costs(Number(args[0]), Number(args[1]));
    case "known":
      return known(Number(args[0]), Number(args[1]));
    default:
      throw new Error(`no method ${method}`);
  }
});
