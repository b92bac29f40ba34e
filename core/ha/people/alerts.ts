import type { Instant } from "../../env.ts";
import { log, sameJson, toJson, write } from "../../outbox.ts";
import { fixed } from "../settings.ts";
import type { HaState } from "../state.ts";
import { type Alert, some } from "./alert.ts";
import { addNotice } from "./notices.ts";
import { stuckVms } from "./stuck.ts";
import { toldAlerts } from "./told.ts";
import { unguardedAlerts } from "./unguarded.ts";

/**
 * What a person is to look at, since the HA Manager goes no further by itself. One is open for each kind and subject, what is of one
 * host is one alert, and an alert ends when what it is about is over: nobody has to close it. Which are open is durable, so a start
 * repeats none.
 */
export const alertKey = ({ kind, subject }: Pick<Alert, "kind" | "subject">): string => `alert/${kind}/${subject}`;

type Due = Omit<Alert, "since" | "acknowledged">;

/** Opens what is due and ends what is not, after everything else of a step. */
export function settleAlerts(state: HaState, now: Instant): void {
  const own = dueOf(state, now);
  // What this one has open itself it says itself.
  const due = new Map([...toldAlerts(state), ...own].map((alert) => [alertKey(alert), alert]));
  for (const [key, alert] of [...state.alerts])
    if (!due.has(key)) {
      state.alerts.delete(key);
      write(state.outbox, key, null);
      log(state.outbox, "alert/ended", { kind: alert.kind, subject: alert.subject });
      addNotice(state, "ended", alert, now);
    }
  for (const [key, alert] of due) {
    const before = state.alerts.get(key);
    const { since = now.wallMs, acknowledged } = before ?? {};
    const next: Alert = { ...alert, since, ...(acknowledged === undefined ? {} : { acknowledged }) };
    if (before !== undefined && sameJson(toJson(before), toJson(next))) continue;
    state.alerts.set(key, next);
    write(state.outbox, key, next);
    if (before !== undefined) continue;
    log(state.outbox, "alert/opened", { ...alert });
    addNotice(state, "opened", next, now);
  }
}

/** Somebody says that he looks after it: it stays open until it is over. @returns whether there is such an alert */
export function acknowledge(state: HaState, kind: string, subject: string, now: Instant): boolean {
  const alert = [...state.alerts.values()].find((each) => each.kind === kind && each.subject === subject);
  if (alert === undefined) return false;
  if (alert.acknowledged !== undefined) return true;
  const next: Alert = { ...alert, acknowledged: now.wallMs };
  state.alerts.set(alertKey(next), next);
  write(state.outbox, alertKey(next), next);
  log(state.outbox, "alert/acknowledged", { kind: alert.kind, subject });
  addNotice(state, "acknowledged", next, now);
  return true;
}

function dueOf(state: HaState, now: Instant): readonly Due[] {
  const { ms, wallMs } = now;
  const { storm, active, vetoedSince } = state;
  const due: Due[] = [];
  if (storm !== null)
    due.push({
      kind: "paused",
      subject: "",
      sentence: storm.asked
        ? "hosts are switched off by the operator's word, so no VM of theirs is started elsewhere: `cells ha release` goes on"
        : `${storm.hosts.join(", ")} were lost within minutes, so tenants' VMs wait: see whether it is a network; \`cells ha release\` goes on`,
    });
  const stuck = new Map<string, string[]>();
  const isolated = new Map<string, string[]>();
  const unfenced = new Map<string, string[]>();
  const add = (to: Map<string, string[]>, host: string, path: string): void =>
    void to.set(host, [...(to.get(host) ?? []), path]);
  for (const [vm, item] of active) {
    // As long as all wait for the same there is one alert.
    if (item.held !== undefined && storm === null)
      due.push({ kind: "held", subject: `${item.cell}:${item.path}`, sentence: item.held });
    const since = vetoedSince.get(vm);
    if (item.step === "Investigating" && since !== undefined && ms - since >= fixed.isolatedMs)
      add(isolated, item.host, item.path);
    if (item.step === "Fencing" && wallMs - item.since >= fixed.fenceMs) add(unfenced, item.host, item.path);
  }
  for (const vm of stuckVms(state, now)) {
    const document = state.wanted.get(vm)?.document;
    if (document !== undefined) add(stuck, document.host, document.path);
  }
  for (const [host, paths] of stuck)
    due.push({
      kind: "stuck",
      subject: host,
      sentence: `${some(paths)} of ${host} should long have started or stopped there, and ${host}, which is heard, says otherwise: \`cells why\` says what that waits for`,
    });
  for (const [host, paths] of isolated)
    due.push({
      kind: "isolated",
      subject: host,
      sentence: `${host} is declared dead, and something says that it runs on with ${some(paths)}: \`cells ha why\` says what; where its power is off, \`cells host dead ${host}\` goes on`,
    });
  for (const [host, paths] of unfenced)
    due.push({
      kind: "unfenced",
      subject: host,
      sentence: `${some(paths)} of ${host} cannot be fenced: \`cells ha why\` says what that waits for; where the power of ${host} is off, \`cells host dead ${host}\` goes on`,
    });
  due.push(...unguardedAlerts(state));
  const { short } = state;
  if (short !== null)
    due.push({
      kind: "system-hosts",
      subject: "",
      sentence: `${short.left} of ${short.kept} hosts are left to the cloud's own VMs: others hold strict VMs, are closed, of flavours, or away. Where one of these VMs has to start anew it may stand beside nobody's by right: let a host join or open one, or end strict VMs; \`x.placement.systemHosts\` says how many are to be left`,
    });
  return due;
}
