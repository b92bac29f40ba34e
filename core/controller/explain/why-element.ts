import type { ElementAnswer, ElementCheck } from "../../../model/api.ts";
import type { Element, VmElement } from "../../../model/cell/cell.ts";
import type { ElementPath } from "../../../model/cell/identifiers.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import type { Progress } from "../../documents/vocabulary.ts";
import { forkReason, heldReason, isHeldAt } from "../histories/fork.ts";
import { type NotVisible, whyAbroad } from "../references/foreign.ts";
import { ruleSince, rulesAtHosts } from "../rules/rules-in-force.ts";
import { refusedEnrolments } from "../services/enrolments.ts";
import {
  type ControllerState,
  type ElementRecord,
  elementOf,
  hostPeer,
  type LinkElement,
  linksOf,
  type Run,
  recordAt,
  type VmRecord,
} from "../state.ts";
import { upgradeRemedy, upgradeState } from "../upgrade/upgrade.ts";
import { reservationReason, shortened } from "../vm/all-or-none.ts";
import { hostDied } from "../vm/host-died.ts";
import { actualVmOf, connectionOf, retryDelayMs } from "../vm/life-cycle.ts";
import { placementOf } from "../vm/placement.ts";
import { startQueueOf } from "../vm/start-limit.ts";

/**
 * Why an element is as it is: what it needs, in the order in which it is needed, each with what is so; the first that
 * does not hold is the one that blocks, and says what would lift it. It looks at the same records as the life of a VM
 * does, and decides nothing.
 */
export function whyElement(
  state: ControllerState,
  record: ElementRecord,
): Result<ElementAnswer, { readonly status: number; readonly message: string }> {
  const checks: ElementCheck[] = [];
  const whole = storeCheck(state);
  if (whole !== null) checks.push(whole);
  follow(state, record, checks, new Set());
  const { path, type, phase, reason } = record;
  const common = { path, type, phase: phase ?? "waiting", reason, checks };
  const blocking = checks.find(({ passes }) => !passes);
  if (blocking === undefined) {
    const verdict =
      phase === "ready" ? `${path} is as declared` : `${path} is ${phase ?? "new"}: ${reason ?? "it goes on"}`;
    return ok({ ...common, verdict });
  }
  const { check, detail, lifts } = blocking;
  const remedy = lifts === null ? "" : `. To lift that: ${lifts}`;
  if (checks.length > 1000) return fail({ status: 413, message: `${path} depends on more than can be told` });
  return ok({ ...common, verdict: `${path} is held up at "${check}": ${detail}${remedy}` });
}

const check = (what: string, passes: boolean, detail: string, lifts: string | null = null): ElementCheck => ({
  check: what,
  passes,
  detail,
  lifts: passes ? null : lifts,
});

function storeCheck(state: ControllerState): ElementCheck | null {
  const forked = forkReason(state);
  const lifts = `put the newer store back, or \`cells orphans release ${state.options.self}\``;
  return forked === null ? null : check("the store of the cell's controller", false, forked, lifts);
}

/** What the element rests on comes before itself, so that the first that fails is the cause and not its effect. */
function follow(state: ControllerState, record: ElementRecord, checks: ElementCheck[], seen: Set<string>): void {
  if (seen.has(record.uid)) return;
  seen.add(record.uid);
  const element = elementOf(state, record);
  if (element === undefined) {
    checks.push(check(record.path, false, record.reason ?? "it is being deleted", null));
    return;
  }
  const heldBack = reservationReason(state, record);
  if (heldBack !== null) {
    const short = shortened(state.reservation.short) || "what it lacks";
    const lifts = `make room for ${short}, or write x.policy.deploy "as-possible"; it asks again by itself`;
    checks.push(check("all or none", false, heldBack, lifts));
    return;
  }
  const abroad = whyAbroad(state, record, element);
  if (abroad !== null) checks.push(check("other cells", false, abroad.reason, abroad.lifts));
  if (element.type === "NetworkRule") ruleChecks(state, record, checks);
  for (const path of dependencies(state, element)) {
    const other = recordAt(state, path);
    if (other !== undefined && other.type !== "VM") follow(state, other, checks, seen);
  }
  if (element.type === "VM") {
    vmChecks(state, record, element, checks);
    return;
  }
  const link = element.type === "VirtualInterface" || element.type === "VolumeConnection";
  const vm = link ? recordAt(state, element.vm) : undefined;
  // A link is ready with its VM: the VM's own checks say more.
  if (link && (vm === undefined || seen.has(vm.uid))) return;
  if (vm !== undefined && record.phase !== "ready") {
    seen.add(vm.uid);
    const own = elementOf(state, vm);
    if (own?.type === "VM") vmChecks(state, vm, own, checks);
  }
  checks.push(check(record.path, record.phase === "ready", record.reason ?? `it is ${record.phase ?? "new"}`));
}

/** Host by host, what packets meet there of a rule. */
function ruleChecks(state: ControllerState, record: ElementRecord, checks: ElementCheck[]): void {
  const since = ruleSince(state, record);
  for (const { host, version, why } of rulesAtHosts(state)) {
    const passes = version >= since;
    const lifts =
      why.phase === "waiting"
        ? `bring the host back, or, if its power is off for certain, \`cells host dead ${host} --power-is-off\``
        : why.phase === "failed"
          ? "change the rules as it says"
          : "nothing needs to be done: the host is putting it in force";
    checks.push(
      check(`in force at host ${host}`, passes, passes ? "the host has confirmed it" : (why.reason ?? ""), lifts),
    );
  }
}

/** Elements that must be ready first. Those of a VM come through its links. */
function dependencies(state: ControllerState, element: Element): readonly ElementPath[] {
  switch (element.type) {
    case "VM":
      return linksOf(state, element.path)
        .filter(({ requires }) => requires)
        .map((link) => (link.type === "VirtualInterface" ? link.subnet : link.volume));
    case "VolumeCopy":
      return [element.image];
    case "VolumeConnection":
      return [element.volume];
    case "VirtualInterface":
      return [element.subnet];
    case "VolumeGrant":
      return [element.volume];
    default:
      return [];
  }
}

/** As commands write it: a child cell has its whole name in front. */
const commandPath = (state: ControllerState, path: ElementPath): string =>
  [state.options.cell, ...path.split("/").slice(1)].join("/");

/** Why a required volume of another cell is no disk here. */
function foreignVolumeOf(state: ControllerState, link: LinkElement): NotVisible | null {
  const record = link.type === "VolumeConnection" && link.requires ? recordAt(state, link.path) : undefined;
  return record === undefined ? null : whyAbroad(state, record, link);
}

function vmChecks(state: ControllerState, record: ElementRecord, vm: VmElement, checks: ElementCheck[]): void {
  const on = vm.desiredState === "on";
  const start = `\`cells start ${commandPath(state, vm.path)}\``;
  checks.push(
    check("wanted on", on, `x.desiredState is "${vm.desiredState}"`, `${start}, which writes x.desiredState "on"`),
  );
  for (const link of linksOf(state, vm.path)) {
    const abroad = foreignVolumeOf(state, link);
    if (abroad !== null) checks.push(check(link.path, false, abroad.reason, abroad.lifts));
    const record = link.type === "VirtualInterface" && link.requires ? recordAt(state, link.path) : undefined;
    if (record === undefined) continue;
    const address = record.allocation?.address ?? null;
    checks.push(check(`address of ${link.path}`, address !== null, address ?? record.reason ?? "it has none yet"));
  }
  const known = state.vms.get(record.uid);
  if (known === undefined || !on) return;
  if (known.run === null) idleChecks(state, record.path, known, checks);
  else runChecks(state, record, known, known.run, checks);
}

function idleChecks(state: ControllerState, path: ElementPath, vm: VmRecord, checks: ElementCheck[]): void {
  const turn = startQueueOf(state, vm.uid);
  if (turn !== null) {
    checks.push(check("its turn to start", false, turn.detail, turn.lifts));
    return;
  }
  if (vm.failure === null) return;
  if (!vm.again) {
    const start = `\`cells start ${commandPath(state, path)}\``;
    const lifts = `${start}; and with x.restartOnFailure true it is started again by itself`;
    checks.push(check("may start again", false, `${vm.failure}; x.restartOnFailure is false`, lifts));
  } else if (state.resting.has(vm.uid)) {
    const detail = `${vm.failure}; failed ${vm.failures} times in a row`;
    const lifts = `nothing needs to be done: it starts again within ${retryDelayMs(vm.failures) / 1000} s`;
    checks.push(check("back-off", false, detail, lifts));
  }
}

function runChecks(
  state: ControllerState,
  record: ElementRecord,
  vm: VmRecord,
  run: Run,
  checks: ElementCheck[],
): void {
  if (run.stage === "placing") {
    placementChecks(state, vm, run, checks);
    return;
  }
  checks.push(check("host", true, `${run.host} holds incarnation ${run.incarnation}`));
  for (const disk of run.disks) {
    const connection = connectionOf(state, disk.connection, run);
    const path = state.elements.get(disk.volume)?.path ?? disk.volume;
    const ready = connection?.phase === "ready" || run.stage !== "connecting";
    checks.push(
      check(`lease of ${path}`, ready, connection?.reason ?? (ready ? "it is held" : "the Storage Manager was asked")),
    );
  }
  if (run.stage === "connecting") return;
  const reachable = run.host === null || state.reachable.get(hostPeer(run.host)) !== false;
  const died = run.host === null ? null : hostDied(state, run.host);
  const lost = died ?? `host ${run.host} does not answer, so nobody knows how the VM is`;
  const lifts = `bring the host back, and a machine that still runs there goes on without a restart; or, if its power is off for certain, \`cells host dead ${run.host} --power-is-off\``;
  checks.push(check(`host ${run.host} answers`, reachable, reachable ? "it does" : lost, lifts));
  const actual = actualVmOf(state, vm.uid, run);
  if (isHeldAt(state, run.host) && (run.stage === "stopping" || actual?.power !== "on"))
    checks.push(check(`store known to ${run.host}`, false, heldReason(state, run.host)));
  if (run.stage === "stopping") {
    const detail = `incarnation ${run.incarnation} is being stopped${vm.failure === null ? "" : `: ${vm.failure}`}`;
    checks.push(
      check("stopped", false, detail, "nothing needs to be done: the next incarnation starts once it is gone"),
    );
    return;
  }
  const runs = actual?.power === "on";
  const otherwise = reachable ? "the host was told to start it" : "whether it does is not known";
  checks.push(check("runs", runs, actual?.reason ?? (runs ? "its machine runs" : otherwise)));
  for (const refused of refusedEnrolments(state, vm.uid)) {
    const lifts =
      "switch it off and on: the next incarnation has a new token, and its roles the keys on its data volume";
    checks.push(check("enrolment", false, refused, lifts));
  }
  if (actual?.health !== undefined) {
    const lifts = "look into it with `cells console`; with x.restartOnFailure true it is started again by itself";
    checks.push(check("answers its probes", actual.health === "answering", `it is ${actual.health}`, lifts));
  }
  const upgrade = upgradeState(state, vm.uid);
  if (upgrade !== null)
    checks.push(
      check("boot volume", false, upgrade.reason ?? "it is another one by the model", upgradeRemedyOf(upgrade)),
    );
  if (runs && record.phase !== "ready")
    checks.push(check(record.path, false, record.reason ?? `it is ${record.phase}`));
}

const upgradeRemedyOf = ({ phase }: Progress): string | null =>
  phase === "failed" ? upgradeRemedy : "nothing needs to be done: service VMs are upgraded one at a time";

function placementChecks(state: ControllerState, vm: VmRecord, run: Run, checks: ElementCheck[]): void {
  const placement = placementOf(state, vm.uid, run);
  if (placement?.host != null) {
    const others = shortened(state.elements.get(vm.uid)?.reserving === true ? state.reservation.lacking : []);
    const lifts = `make room for ${others}, or write x.policy.deploy "as-possible"`;
    const detail = others === "" ? "it waits for nothing else" : `${others} cannot be had yet`;
    checks.push(check("all or none", others === "", detail, lifts));
    return;
  }
  const refusals = placement?.refusals ?? [];
  if (refusals.length === 0) checks.push(check("host", false, placement?.reason ?? "the Placer was asked for one"));
  for (const { host, why, lifts } of refusals) checks.push(check(`host ${host}`, false, why, `${host}: ${lifts}`));
}
