import { entrancePrefix } from "../../core/documents/cells.ts";
import { takeDeclared } from "../../core/documents/declaration.ts";
import { beatsKey } from "../../core/documents/ha.ts";
import { mayDesire, maySee } from "../../core/documents/permissions.ts";
import { desiredStandby, desiredVm } from "../../core/documents/readers/host.ts";
import { documentsOf } from "../../core/documents/readers/table.ts";
import { standbyKey } from "../../core/documents/standby.ts";
import type { Effect, Input, Service } from "../../core/env.ts";
import { authorityName } from "../../core/identity/pins.ts";
import { type Uid, uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { FoundMachine, MachineCondition, MachineEnd } from "../drivers/hypervisor/driver.ts";
import { beatTimer, endedAs, hearBeat, settleBeats, takeBeats } from "../heartbeat/beats.ts";
import { settleWatchdog } from "../heartbeat/watchdog.ts";
import type { HostRequest, Outcome } from "../host-requests.ts";
import type { HostState } from "../known.ts";
import {
  isHealthOf,
  logHealth,
  pathOf,
  probeTargets,
  stalledSentence,
  withCondition,
  withHealth,
} from "../liveness/health.ts";
import type { HealthChange } from "../liveness/liveness.ts";
import { confirmOwners, followOwners, hearOwner, rootController, takeClaim } from "../machine/claims/claims.ts";
import { needsOwners } from "../machine/claims/standing.ts";
import { confirmEntrances, takeEntrance } from "../network/entrances.ts";
import { numbered, takeAddresses } from "../network/locations.ts";
import { takeProbeDesire, takeProbed } from "../network/neighbours.ts";
import { takeLease } from "../network/network-view.ts";
import { takeNetworkNews } from "../network/routers.ts";
import { endLife } from "../presence/own-life.ts";
import { beginBoot, handlePresence, hearMember } from "../presence/presence-state.ts";
import {
  trialBegins,
  trialLog,
  trialRuns,
  trialTimer,
  withDeadline,
  withEnd,
  withTrial,
} from "../root-vm/boot-trial.ts";
import {
  handleSuccession,
  hearReachable,
  hearSuccession,
  successionTimer,
  takeStandby,
} from "../root-vm/succession.ts";
import { execTarget } from "../sessions/exec-target.ts";
import type { VmRecord } from "../vm-record.ts";
import { awaitedGuests, guestAnswered, guestIsLate, guestTimer, timeGuests } from "./guest-state.ts";
import { beginViews, cellOf, endsBoot, followPeers, forgetUnconfirmed, handleLocation, takeRules } from "./heard.ts";
import {
  foundOf,
  type HostManagerOptions,
  leftAfterFailure,
  restoreState,
  store,
  succeed,
  takeAllocation,
  takePath,
  wantedOf,
} from "./host-state.ts";
import { measureHost, whatIsHere } from "./inventory.ts";
import { type Action, planHost, startingRecord } from "./planner.ts";
import { publish } from "./publish.ts";

/** After a failure the same action is planned again this much later. */
const retryMs = 3000;
/** A machine that had come up and ended is no failure of its start. */
const againMs = 500;

/**
 * The Host Manager as a service of state distribution: what its controllers desire comes in, what is so goes out, and
 * the executor asks it what to do (`HostRequest`).
 */
export const createHostManager = (options: HostManagerOptions): Service<HostState> => ({
  restore: (restored) => restoreState(restored, options),
  step: (state, input, now) => {
    const effects: Effect[] = [];
    state.now = now.ms;
    const changed = !takeLease(state, input, effects) && handle(state, input, options, effects, now.wallMs);
    const moved = state.started && succeed(state, options, effects);
    const isolates = state.started && settleBeats(state, options.host.host, effects);
    if (state.started) options.onWatchdog?.(settleWatchdog(state));
    if (changed === "elsewhere" && !moved && !isolates && state.started) options.wake();
    else if ((changed !== false || moved || isolates) && state.started) {
      adoptStrangers(state, effects);
      followPeers(state, options.host.host, effects);
      followOwners(state.claimed, () => needsOwners(state, state.records), effects);
      timeGuests(state, effects);
      publish(state, options, effects);
      options.wake();
    }
    return { state, effects };
  },
  entitled: (state, peer, key) => {
    if (!maySee("host", peer, key)) return false;
    if (key.startsWith("location/")) {
      const address = key.slice("location/".length);
      return state.audiences.get(address)?.has(peer) ?? false;
    }
    return true;
  },
  audience: (state) => state.audiences,
  accepts: (peer, key) => mayDesire("host", peer, key),
  read: documentsOf("host"),
  measure: (state) => measureHost(state, options.host),
});

/**
 * True when something changed that others or the plan may depend on; `elsewhere`: only where addresses are on other hosts, of
 * which this one says nothing, and there are tens of thousands.
 */
const handle = (
  state: HostState,
  input: Input,
  options: HostManagerOptions,
  effects: Effect[],
  wallMs: number,
): boolean | "elsewhere" => {
  switch (input.kind) {
    case "start":
      state.started = true;
      if (options.booted !== undefined && (options.booted || state.presence.boot === null))
        beginBoot(state.presence, 0, wallMs, effects, !options.booted);
      beginViews(state, { ms: state.now, wallMs }, effects);
      for (const record of state.records.values()) effects.push(...trialRuns(record));
      state.entrances.heard ||= options.hasAuthority !== true;
      if (options.onPin !== undefined) effects.push({ kind: "subscribe", to: authorityName, prefix: "pin/" });
      if (options.hasAuthority === true) effects.push({ kind: "subscribe", to: authorityName, prefix: entrancePrefix });
      return true;
    case "desired":
      return handleDesired(state, input, options, effects);
    case "actual": {
      const { from, key, value } = input;
      const death = takeDeclared(state.presence.declared, state.presence.members, from, key, value);
      if (death !== null) options.onDeath?.(death.host, death.generation);
      endLife(state.presence, options.host.host, state.now, options.onDeath, effects);
      const isOfLeases = hearSuccession(state.succession, state.presence.members, from, key, value, death);
      hearMember(state.presence, options.host.host, input, options.onMissed, effects);
      hearBeat(state, options.host.host, from, key, value);
      if (from === authorityName) {
        if (takeEntrance(state.entrances, key, value, effects)) return true;
        options.onPin?.(key, value);
      }
      if (from === rootController && hearOwner(state.claimed, key, value, effects)) return true;
      if (endsBoot(state, options.host.host, input, wallMs, effects)) return true;
      return isOfLeases || (handleLocation(state, from, key, value, effects) && "elsewhere");
    }
    case "reachable":
      hearReachable(state.succession, input.peer, input.reachable);
      if (!input.reachable) return false;
      if (input.peer === rootController && confirmOwners(state.claimed, effects)) return true;
      return input.peer === authorityName
        ? confirmEntrances(state.entrances, effects)
        : forgetUnconfirmed(state, input.peer, effects);
    case "timer":
      endLife(state.presence, options.host.host, state.now, options.onDeath, effects);
      if (input.name === beatTimer) return false;
      if (input.name === successionTimer) state.succession.wakeAt = null;
      if (input.name.startsWith(trialTimer))
        return trialIsOver(state, uid(input.name.slice(trialTimer.length)), effects);
      if (input.name.startsWith(guestTimer))
        return guestIsLate(state, uid(input.name.slice(guestTimer.length)), effects);
      state.troubles.delete(input.name.replace(/^retry\//, "") as Uid | "network");
      return true;
    case "request":
      return handleRequest(state, input.id, input.request as unknown as HostRequest, options, effects);
    // The histories of stores, and ends of documents that were taken back: a host goes by what is desired of it now.
    case "unknown-end":
    case "forked":
    case "another":
    case "released":
    case "kept":
    case "complete":
    case "excused":
    case "ended":
    case "behind":
    case "set-back":
    case "seen-later":
    case "earlier":
      return false;
  }
};

const handleDesired = (
  state: HostState,
  { from, key, value }: Extract<Input, { kind: "desired" }>,
  { onProbes, host: { host } }: HostManagerOptions,
  effects: Effect[],
): boolean => {
  const [kind, name = "", slice = ""] = key.split("/");
  const refuse = (why: string): boolean => {
    effects.push({ kind: "log", event: "document/refused", fields: { from, key, why } });
    return false;
  };
  if (kind === standbyKey) {
    const standby = desiredStandby.of(value);
    takeStandby(state.succession, standby && { ...standby, policy: numbered(state, standby.policy, effects) });
    return true;
  }
  if (key === beatsKey) return takeBeats(state, from, value);
  let taken: boolean | string | null = null;
  if (kind === "claim") taken = takeClaim(state.claimed, host, value, effects);
  else if (kind === "probe") taken = takeProbeDesire(state, { from, name, value }, onProbes);
  else if (/^(?:places|policy|pools|slice|network-view|network-slice)$/.test(kind ?? ""))
    taken = takeRules(state, from, { kind: kind ?? "", cell: name, name: slice, value }, effects);
  if (taken !== null) return typeof taken === "string" ? refuse(taken) : taken;
  const vm = uid(name);
  const owner = state.vms.get(vm)?.client ?? state.records.get(vm)?.client;
  if (owner !== undefined && owner !== from) return refuse(`this VM belongs to ${owner}`);
  if (value === null) return state.vms.delete(vm);
  const desired = desiredVm.of(value, vm);
  if (desired === null) {
    // Stored by another version. What runs goes on as it is: a VM that nobody seems to want would be stopped.
    const record = state.records.get(vm);
    if (!state.started && record !== undefined) state.vms.set(vm, { client: from, desired: record.vm });
    return refuse("it is malformed, or about another VM than its key");
  }
  if (desired.cell !== cellOf(from)) return refuse(`it is about ${desired.uid} of ${desired.cell}`);
  state.vms.set(vm, { client: from, desired });
  takePath(state, desired, effects);
  return true;
};

const handleRequest = (
  state: HostState,
  id: number,
  request: HostRequest,
  options: HostManagerOptions,
  effects: Effect[],
): boolean => {
  const reply = (response: unknown): void => {
    effects.push({ kind: "reply", id, response: response as Json });
  };
  switch (request.kind) {
    case "found":
      reconcileMachines(state, request.machines, options, effects);
      reply(null);
      return true;
    case "next": {
      const actions = nextActions(state, options, effects);
      const changed = actions.length > 0 || effects.length > 0;
      reply(actions);
      return changed;
    }
    case "done":
      settle(state, request.outcome, effects);
      reply(null);
      return true;
    case "machine-ended":
      machineEnded(state, request.end, effects);
      reply(null);
      return true;
    case "machine-condition":
      reply(null);
      return takeCondition(state, request.condition, effects);
    case "health":
      reply(null);
      return takeHealth(state, request.change, effects);
    case "probe-targets":
      reply(state.started ? probeTargets(wantedOf(state), foundOf(state, options)) : []);
      return false;
    case "awaited-guests":
      reply(state.started ? awaitedGuests(state) : []);
      return false;
    case "guest-up":
      reply(null);
      return guestAnswered(state, request.guest, effects);
    case "inventory":
    case "instance":
    case "status":
      reply(whatIsHere(state, options.host, request));
      return false;
    case "presence-enter":
    case "presence-said":
    case "presence-follow":
      reply(handlePresence(state.presence, request, effects));
      return false;
    case "peer-addresses":
      reply(null);
      return takeAddresses(state, request.addresses, effects);
    case "probed":
      reply(null);
      return takeProbed(state, request.host, request);
    case "network-placed":
    case "routers":
    case "groups":
      reply(null);
      return takeNetworkNews(state, request, effects);
    case "presence-doubts":
      state.beats.doubts = request.doubts;
      reply(null);
      return false;
    case "presence-heard":
    case "presence-hosts":
    case "presence-died":
      handleSuccession(state.succession, request);
      reply(null);
      return false;
    case "exec-target":
      reply(execTarget(state, request.client, request.vm, request.incarnation));
      return false;
  }
};

/** A record whose stage changed. */
const save = (state: HostState, vm: Uid, changed: VmRecord | null, effects: Effect[]): void => {
  if (changed === null || changed.stage === "ended") state.stalled.delete(vm);
  const record = changed === null ? null : withEnd(changed);
  store(state, vm, record, effects);
  if (record !== null) effects.push(...trialBegins(record));
  if (record !== changed && record !== null) effects.push(trialLog(record, `gone back: ${record.trial?.refused}`));
  const fields =
    record === null
      ? { vm, stage: "gone" }
      : {
          vm,
          path: pathOf(record, wantedOf(state)),
          incarnation: record.vm.incarnation,
          stage: record.stage,
          ended: record.ended,
          reason: record.reason,
        };
  effects.push({ kind: "log", event: "machine/stage", fields });
};

/** A disk on trial that was not taken over in time. */
const trialIsOver = (state: HostState, vm: Uid, effects: Effect[]): boolean => {
  const record = state.records.get(vm);
  const over = record === undefined ? null : withDeadline(record, state.vms.get(vm)?.desired);
  if (over === null) return false;
  store(state, vm, over, effects);
  effects.push(trialLog(over, `gone back: ${over.trial?.refused}`));
  return true;
};

/** Machines are the truth and records what we knew: a record that says "runs" without a machine has lost it meanwhile. */
const reconcileMachines = (
  state: HostState,
  machines: readonly FoundMachine[],
  { switchedOff }: HostManagerOptions,
  effects: Effect[],
): void => {
  const running = new Map(machines.map((machine) => [machine.vm, machine]));
  for (const [vm, record] of state.records) {
    const machine = running.get(vm);
    if (machine !== undefined) {
      running.delete(vm);
      const found = { ...record.vm, incarnation: machine.incarnation };
      if (machine.ending === true) {
        const reason = record.reason ?? "its start was cut off, and its process does not end when killed";
        save(state, vm, { ...record, vm: found, stage: "starting", ending: true, ended: null, reason }, effects);
      } else if (record.stage !== "running" || record.vm.incarnation !== machine.incarnation)
        save(state, vm, { ...record, vm: found, stage: "running", ended: null, reason: null }, effects);
    } else if (record.stage !== "ended") {
      const away = { ended: "crashed", reason: "its machine ended while the Host Manager was away" } as const;
      const how = switchedOff === true ? ({ ended: "stopped", reason: "its host was switched off" } as const) : away;
      save(state, vm, afterEnd(record, how), effects);
    }
  }
  state.strangers = running;
};

/** A machine without a record (a lost store) is taken over when a controller names it; until then it is left alone. */
const adoptStrangers = (state: HostState, effects: Effect[]): void => {
  for (const [vm, machine] of state.strangers ?? []) {
    const wanted = state.vms.get(vm);
    if (wanted === undefined) continue;
    state.strangers?.delete(vm);
    const desired = { ...wanted.desired, incarnation: machine.incarnation };
    const found =
      machine.ending === true ? ({ stage: "starting", ending: true } as const) : { stage: "running" as const };
    save(state, vm, { ...startingRecord(wanted.client, desired), ...found }, effects);
  }
};

const nextActions = (state: HostState, options: HostManagerOptions, effects: Effect[]): readonly Action[] => {
  if (!state.started || state.strangers === null) return [];
  const actions: Action[] = [];
  const wanted = wantedOf(state);
  for (const action of planHost(wanted, foundOf(state, options))) {
    if (action.kind === "withdraw-state") {
      save(state, action.vm, null, effects);
      continue;
    }
    if (action.kind === "refuse-machine") {
      // Durable before it is said: what its controller starts elsewhere must never start here as well.
      const refused = startingRecord(wanted.vms.get(action.vm)?.client, action.desired);
      const ended = { stage: "ended", reason: action.reason, released: true, refused: true } as const;
      save(state, action.vm, { ...refused, ...ended }, effects);
      continue;
    }
    state.busy.add(action.kind === "implement-network" ? "network" : action.vm);
    if (action.kind === "start-machine") {
      const client = wanted.vms.get(action.vm)?.client;
      save(state, action.vm, withTrial(startingRecord(client, action.desired), state.records.get(action.vm)), effects);
    }
    actions.push(action);
  }
  return actions;
};

const settle = (state: HostState, outcome: Outcome, effects: Effect[]): void => {
  const subject = outcome.kind === "implement-network" ? "network" : outcome.vm;
  state.busy.delete(subject);
  const retry = (reason: string): void => {
    state.troubles.set(subject, reason);
    effects.push({ kind: "timer", name: `retry/${subject}`, afterMs: retryMs });
    effects.push({ kind: "log", event: "host/action-failed", fields: { action: outcome.kind, subject, reason } });
  };
  if (outcome.kind === "implement-network") {
    if (outcome.error !== null) {
      leftAfterFailure(state, outcome.tried ?? []);
      retry(outcome.error);
      return;
    }
    if (state.revision !== outcome.revision) {
      const fields = { interfaces: outcome.allocation.interfaces.length, policies: state.policies.size };
      effects.push({ kind: "log", event: "network/implemented", fields });
    }
    state.revision = outcome.revision;
    takeAllocation(state, outcome.allocation, effects);
    return;
  }
  const record = state.records.get(outcome.vm);
  if (record === undefined) return;
  switch (outcome.kind) {
    case "start-machine":
      // It may have ended before its start was reported.
      if (outcome.error === null && record.stage === "starting")
        save(state, outcome.vm, { ...record, stage: "running", reason: outcome.remark ?? null }, effects);
      if (outcome.error !== null && outcome.unconfirmed === true && record.stage !== "ended") {
        save(state, outcome.vm, { ...record, stage: "starting", ending: true, reason: outcome.error }, effects);
        retry(outcome.error);
        return;
      }
      // Never tried again here: with that word its controller may give its volumes to the next incarnation.
      if (outcome.error !== null) {
        save(state, outcome.vm, { ...record, stage: "ended", ended: null, reason: outcome.error }, effects);
        if (record.vm.restart === "host") retry(outcome.error);
      }
      return;
    case "stop-machine":
      if (outcome.error !== null) retry(outcome.error);
      else if (record.stage !== "ended")
        save(state, outcome.vm, afterEnd(record, endedAs(state, outcome.vm, stopped)), effects);
      return;
    case "grow-disk":
      if (outcome.error !== null) retry(outcome.error);
      else if (outcome.grown !== undefined) {
        const { connection, sizeMiB } = outcome.grown;
        store(state, outcome.vm, { ...record, grown: { ...record.grown, [connection]: sizeMiB } }, effects);
        effects.push({ kind: "log", event: "machine/disk-grown", fields: { vm: outcome.vm, connection, sizeMiB } });
      }
      return;
    case "release-disks":
      if (outcome.error !== null) retry(outcome.error);
      else save(state, outcome.vm, { ...record, released: true }, effects);
  }
};

const stopped = { ended: "stopped", reason: null } as const;

/** One whose start failed never ran, however its process was ended in the end. */
const afterEnd = (record: VmRecord, how: Pick<VmRecord, "ended" | "reason">): VmRecord => {
  const { ending, ...rest } = record;
  return ending === true ? { ...rest, stage: "ended", ended: null } : { ...rest, stage: "ended", ...how };
};

/** News of a machine that goes on, or of one whose end follows. */
const takeCondition = (state: HostState, condition: MachineCondition, effects: Effect[]): boolean => {
  const record = state.records.get(condition.vm);
  if (record === undefined || record.stage === "ended" || record.vm.incarnation !== condition.incarnation) return false;
  const before = state.stalled.get(condition.vm);
  const stalled = condition.condition === "stalled" ? stalledSentence(record, wantedOf(state), condition) : undefined;
  if (stalled !== undefined) state.stalled.set(condition.vm, stalled);
  else if (condition.condition === "running") state.stalled.delete(condition.vm);
  const changed = withCondition(record, condition);
  if (changed !== record) store(state, condition.vm, changed, effects);
  else if (state.stalled.get(condition.vm) === before && condition.condition !== "panicked") return false;
  effects.push(
    logHealth(
      record,
      pathOf(record, wantedOf(state)),
      "machine/condition",
      condition.condition,
      stalled ?? condition.detail,
    ),
  );
  return true;
};
const takeHealth = (state: HostState, change: HealthChange, effects: Effect[]): boolean => {
  const record = state.records.get(change.vm);
  if (!isHealthOf(record, wantedOf(state), change)) return false;
  store(state, change.vm, withHealth(record, change), effects);
  effects.push(logHealth(record, pathOf(record, wantedOf(state)), "machine/health", change.health, change.reason));
  return true;
};

const machineEnded = (state: HostState, end: MachineEnd, effects: Effect[]): void => {
  const record = state.records.get(end.vm);
  if (record === undefined) {
    state.strangers?.delete(end.vm);
    return;
  }
  if (record.stage === "ended" || record.vm.incarnation !== end.incarnation) return;
  const reason = end.ended === "stopped" ? null : end.detail;
  save(state, end.vm, afterEnd(record, endedAs(state, end.vm, { ended: end.ended, reason })), effects);
  if (record.vm.restart !== "host" || reason === null) return;
  // Its host starts it again, but not as fast as it can end: one that answers has taken its time to come up.
  state.troubles.set(end.vm, reason);
  const afterMs = record.health === "answering" ? againMs : retryMs;
  effects.push({ kind: "timer", name: `retry/${end.vm}`, afterMs });
};
