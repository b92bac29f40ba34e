import { createDiverter } from "../../host/drivers/network/diverter/diverter.ts";
import { policy, rule } from "../../host/drivers/network/diverter/testing/installation.testing.ts";
import { serve } from "../../host/drivers/network/diverter/testing/serve.testing.ts";
import { ipv4, mac } from "../../model/cell/identifiers.ts";

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

serve(async (method, args) => {
  switch (method) {
    case "init":
      return init();
    case "costs":
      return costs(Number(args[0]), Number(args[1]));
    default:
      throw new Error(`no method ${method}`);
  }
});
