/** Kinds of faults, as `--faults` names them; what a step does to the world: `../world/steps.ts`. */
export const faultKinds = ["partition", "crash", "pause", "disk", "clock", "packet", "guest", "driver"] as const;
/**
 * Drawn only where they are asked for: `store` takes stores of services, or puts older ones back; an operator sees to it. `isolate`
 * cuts hosts off from all but the storage servers, and `heartbeat` from one of these; with `power` hosts have management controllers, of
 * which some are dead, slow, deaf or another machine's, and are lost to everybody now and then. With `administration` the first cell is the
 * root cell, hosts are drained, accounts have limits, and rights are taken from users, while the services that see to it are away now and then.
 * `storm` takes or cuts off several hosts at once, `poison` has a VM take down whichever host it runs at, and with `watchdog` hosts have watchdogs, Host Managers stand still for
 * longer than these wait, and some do nothing; with any of the three, machines have priorities, the HA Manager has settings and crashes, and a person looks at what is held.
 */
export const namedFaultKinds = [
  "store",
  "isolate",
  "heartbeat",
  "power",
  "administration",
  "storm",
  "poison",
  "watchdog",
] as const;
export type FaultKind = (typeof faultKinds)[number] | (typeof namedFaultKinds)[number];
