import { type HostName, hostName, type PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { type DesiredPower, powerKey } from "../../documents/ha.ts";
import { desiredPower } from "../../documents/readers/ha.ts";
import { servicePeer } from "../../documents/service-roles.ts";
import type { Instant } from "../../env.ts";
import { desire, log } from "../../outbox.ts";
import { deathOf, hasEnded } from "../../presence/group/deaths.ts";
import type { HaState } from "../state.ts";
import { suspectedHosts } from "../suspicions.ts";
import { begunBoot } from "./power-state.ts";

/*
 * Powers where there are several HA Managers. Management controllers are registered with the first one, which alone has powers read and cut: it comes
 * back wherever the root controller does, and nothing has to be registered anew, and no secret handed on, when one more manager comes. The
 * others say of which hosts they need to know (`power/<host>`), and hear what was read from the Presence group, as everybody does.
 *
 * Rejected: each host's power at the manager with the highest hash. One more manager would take over hosts whose sealed secrets another one has.
 */

/** A fence at the storage that works is faster, and cuts nobody's power. */
export const afterFencingMs = 3_000;

const first = servicePeer("ha-manager");
export const isFurther = ({ options }: Pick<HaState, "options">): boolean => options.self !== first;
const prefix = powerKey("" as HostName);

/** A further manager says what it needs to know. */
export function settleAsked(state: HaState, now: Instant): void {
  if (!isFurther(state)) return;
  const { outbox, deaths, active, at, wanted, power } = state;
  const cuts = new Set<HostName>();
  const about = new Set<HostName>(suspectedHosts(state));
  for (const { step, host, since } of active.values()) {
    if (step !== "Scheduled" && step !== "Investigating" && step !== "Fencing") continue;
    about.add(host);
    if (step === "Fencing" && now.wallMs - since >= afterFencingMs && deathOf(deaths, host) !== null) cuts.add(host);
  }
  const due = new Map<string, DesiredPower>();
  for (const host of about) {
    const boots = [...(at.get(host) ?? [])].flatMap((vm) => wanted.get(vm)?.document.boot ?? []);
    const boot = begunBoot(power, host, boots);
    if (boot === null || hasEnded(deaths, host, boot)) continue;
    due.set(powerKey(host), { host, boot, ...(cuts.has(host) ? { cut: true as const } : {}) });
  }
  for (const key of [...(outbox.desired.get(first)?.keys() ?? [])])
    if (key.startsWith(prefix) && !due.has(key)) desire(outbox, first, key, null);
  for (const [key, document] of due) desire(outbox, first, key, document);
}

/** What others want to know of a host's power. @returns whether it is such a document */
export function takeAsked(state: HaState, from: PeerName, key: string, value: Json): boolean {
  if (!key.startsWith(prefix)) return false;
  const host = hostName(key.slice(prefix.length));
  const document = desiredPower.of(value, host);
  if (value !== null && (document === null || from === state.options.self)) {
    log(state.outbox, "document/refused", { from, key, why: "it is malformed, or about another host than its key" });
    return true;
  }
  const { asked } = state.power;
  const askers = asked.get(host) ?? new Map<PeerName, DesiredPower>();
  if (document === null) askers.delete(from);
  else askers.set(from, document);
  if (askers.size === 0) asked.delete(host);
  else asked.set(host, askers);
  return true;
}
