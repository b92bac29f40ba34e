import type { Uid } from "../../../../../model/cell/identifiers.ts";
import type { GlobalNetwork, LivenessProbe, MachineElsewhere, PacketQuestion, RouterFact } from "../../driver.ts";
import { createDiverter } from "../diverter.ts";
import { serve } from "./serve.testing.ts";

/** A host's driver, as a Host Manager has it. Arguments: directory, run directory. */
const [directory = "", runDirectory = ""] = process.argv.slice(2);
let routers: readonly RouterFact[] = [];
let arrived = (): void => undefined;
const driver = createDiverter({
  directory,
  runDirectory,
  onRouters: (facts) => {
    routers = facts;
    arrived();
  },
});
/** What is known of the routers once one of them is at that MAC, answering or not. */
async function untilRouter(mac: string | null, answers: boolean): Promise<readonly RouterFact[]> {
  while (!routers.some((known) => known.mac === mac && known.answers === answers))
    await new Promise<void>((resolve) => {
      arrived = resolve;
    });
  return routers;
}

/** What comes as text is the same object as before while it says the same, as documents of a Host Manager are. */
const documents = new Map<string, object>();
function same<T extends object>(document: T): T {
  const text = JSON.stringify(document);
  const known = (documents.get(text) as T | undefined) ?? document;
  documents.set(text, known);
  return known;
}

/** One round of a Host Manager: only what `scrub` asks for. */
async function apply(told: GlobalNetwork) {
  const global = {
    policies: told.policies.map(same),
    interfaces: told.interfaces.map((each) => ({ ...each, desired: same(each.desired) })),
    locations: same(told.locations.map(same)),
    ...(told.external === undefined ? {} : { external: told.external }),
  };
  const changes = driver.scrub(global, await driver.inspect());
  if (changes.network) await driver.implementNetwork(global);
  if (changes.securityGroup) await driver.implementSecurityGroup(global);
  const allocation = await driver.implementAddressing(global);
  return { changes, after: driver.scrub(global, await driver.inspect()), allocation };
}

serve((method, args) => {
  switch (method) {
    case "init":
      return driver.init(args[0] as Parameters<typeof driver.init>[0]);
    case "apply":
      return apply(args[0] as GlobalNetwork);
    case "inspect":
      return driver.inspect();
    case "ask":
      return driver.ask(args[0] as MachineElsewhere, Number(args[1]));
    case "probe":
      return driver.probe(args[0] as Uid, args[1] as LivenessProbe, Number(args[2]));
    case "examine":
      return driver.examine(args[0] as PacketQuestion);
    case "announced":
      return driver.announced();
    case "counters":
      return driver.counters();
    case "untilRouter":
      return untilRouter(args[0] as string | null, Boolean(args[1]));
    case "flush":
      return driver.flush();
    case "cleanup":
      return driver.cleanup();
    default:
      throw new Error(`no method ${method}`);
  }
});
