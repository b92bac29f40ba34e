import type { ElementAnswer, ElementCheck } from "../../../model/api.ts";
import type { Cause, CauseKind, CauseOf } from "../../../model/cause/cause.ts";
import { remedy } from "../../../model/cause/remedy.ts";
import { sentenceOf } from "../../../model/cause/sentence.ts";
import { rulesText } from "../../../model/cause/words.ts";
import type { Element, VmElement } from "../../../model/cell/cell.ts";
import { type ElementPath, hostPeer } from "../../../model/cell/identifiers.ts";
import { isoTime } from "../../../model/cell/iso-time.ts";
import { crossingSays } from "../../../model/cell/tenants/dedication/alerts.ts";
import { leastWeight, niceOf } from "../../../model/cell/tenants/wishes/nice.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import type { PlacedAmounts } from "../../documents/pools.ts";
import { accountIsOff, target, told } from "../changes/standing.ts";
import { whyForked } from "../histories/fork.ts";
import { addressOf } from "../network/instances.ts";
import type { ElementRecord, Rested, Run, VmRecord } from "../records.ts";
import { whyForeign } from "../references/foreign.ts";
import { ruleSince, rulesAtHosts } from "../rules/rules-in-force.ts";
import { type ControllerState, elementOf, isOff, type LinkElement, linksOf, recordAt } from "../state.ts";
import { actualVmOf, connectionOf } from "../vm/life-cycle.ts";
import { placementOf } from "../vm/places/placement.ts";
import { placeInQueue } from "../vm/start-limit.ts";

/**
 * Why an element is as it is: what it needs, in the order in which it is needed, each with what is so; the first that
 * does not hold is the one that blocks, and says what would lift it. What holds is read from the same records as the life of
 * a VM; what does not hold are the causes of the elements' states (`element-state.ts`), and none is found here again.
 */
export function whyElement(
  state: ControllerState,
  record: ElementRecord,
): Result<ElementAnswer, { readonly status: number; readonly message: string }> {
  const checks: ElementCheck[] = [];
  const whole = whyForked(state);
  if (whole !== null) checks.push(failed("the store of the cell's controller", [whole]));
  follow(state, record, checks, new Set());
  const { path, type, phase, causes } = record;
  const common = { path, type, phase: phase ?? "waiting", ...told(causes), checks };
  const { reason } = common;
  const blocking = checks.find(({ passes }) => !passes);
  if (blocking === undefined) {
    const verdict =
      phase === "ready" ? `${path} is as declared` : `${path} is ${phase ?? "new"}: ${reason ?? "it goes on"}`;
    return ok({ ...common, verdict });
  }
  const { check, detail, lifts } = blocking;
  const lifted = lifts === null ? "" : `. To lift that: ${lifts}`;
  if (checks.length > 1000) return fail({ status: 413, message: `${path} depends on more than can be told` });
  return ok({ ...common, verdict: `${path} is held up at "${check}": ${detail}${lifted}` });
}

const passed = (check: string, detail: string): ElementCheck => ({ check, passes: true, detail, lifts: null });
const failed = (check: string, causes: readonly Cause[], detail = sentenceOf(causes) ?? ""): ElementCheck => ({
  check,
  passes: false,
  detail,
  ...(causes.length === 0 ? {} : { causes }),
  lifts: causes.reduce<string | null>((found, cause) => found ?? remedy(cause), null),
});

// --- a check for each cause ---------------------------------------------------------------------------------------

/** What is looked at where a cause is found; of those that are not here, the element itself. */
const subjects: { readonly [Kind in CauseKind]?: (cause: CauseOf<Kind>) => string } = {
  "switched-off": () => "wanted on",
  "all-or-none": () => "all or none",
  "waits-its-turn": () => "its turn to start",
  "not-restarted": () => "may start again",
  "backs-off": () => "back-off",
  "asks-for-host": () => "host",
  "no-host": () => "host",
  "cannot-leave": ({ host }) => `leaves ${host}`,
  "leaves-after": ({ host }) => `leaves ${host}`,
  "leaves-with-its-host": ({ host }) => `leaves ${host}`,
  "waits-for-lease": ({ element }) => `lease of ${element}`,
  "host-unreachable": ({ host }) => `host ${host} answers`,
  "host-declared-dead": ({ host }) => `host ${host} answers`,
  "host-doubts-store": ({ host }) => `store known to ${host}`,
  starts: () => "runs",
  stops: () => "stopped",
  "silent-left": () => "answers its probes",
  "enrolment-refused": () => "enrolment",
  "rules-unconfirmed": ({ host }) => `in force at host ${host}`,
  "rules-refused": ({ host }) => `in force at host ${host}`,
  "rules-older": ({ host }) => `in force at host ${host}`,
};
const otherCells: ReadonlySet<CauseKind> = new Set([
  ...(["foreign-wrong-type", "foreign-own-cell", "foreign-hidden", "no-directory", "directory-unreachable"] as const),
  ...(["other-storage-manager", "not-granted", "controller-of-own-cell-only", "not-agreed"] as const),
]);
const isUpgrade = ({ kind }: Cause): boolean => kind.startsWith("upgrade-");

function subjectOf(cause: Cause, path: string): string {
  if (otherCells.has(cause.kind)) return "other cells";
  if (isUpgrade(cause)) return "boot volume";
  return (subjects[cause.kind] as ((cause: Cause) => string) | undefined)?.(cause) ?? path;
}

/** What was so before is told with what came of it, and is no check of its own. */
const isPast = ({ kind }: Cause): boolean => kind === "ended" || kind === "before" || kind === "more-hosts";

/** One for each cause, and for each host that refuses it. */
function checksOf(causes: readonly Cause[], path: string): readonly ElementCheck[] {
  const past = causes.filter(isPast);
  return causes
    .filter((cause) => !isPast(cause) || past.length === causes.length)
    .flatMap((cause, index) => {
      if (cause.kind === "no-host" && cause.refusals.length > 0) {
        const { advice, counts, ...byHost } = cause;
        const rules = advice?.rules ?? counts;
        const each = cause.refusals.map(({ host, why, lifts, ...more }): ElementCheck => {
          const one: Cause = { ...byHost, refusals: [{ host, why, lifts, ...more }] };
          return failed(`host ${host}`, [one], why);
        });
        return rules === undefined ? each : [failed("a host", [cause], rulesText(rules)), ...each];
      }
      const ended = index === 0 ? past.filter((each) => each !== cause) : [];
      const told = ended[0]?.kind === "ended" ? [...ended, cause] : [cause, ...ended];
      return [failed(subjectOf(cause, path), told)];
    });
}

/** Of what is as declared: said for whoever wants to know, and holds nothing up. */
const isRemark = ({ kind }: Cause): boolean => kind === "said" || kind === "name-failed";

function ownChecks({ path, phase, causes }: ElementRecord): readonly ElementCheck[] {
  if (phase === "ready" && causes.every(isRemark)) return [passed(path, sentenceOf(causes) ?? "it is ready")];
  if (causes.length > 0) return checksOf(causes, path);
  return [phase === "deleting" ? failed(path, [{ kind: "deleting" }]) : failed(path, [], `it is ${phase ?? "new"}`)];
}

// --- what an element rests on ---------------------------------------------------------------------------------------

/** What the element rests on comes before itself, so that the first that fails is the cause and not its effect. */
function follow(state: ControllerState, record: ElementRecord, checks: ElementCheck[], seen: Set<string>): void {
  if (seen.has(record.uid)) return;
  seen.add(record.uid);
  const element = elementOf(state, record);
  const isGivenBack = record.causes.some((cause) => cause.kind === "all-or-none" && cause.stage !== "asking");
  if (element === undefined || isGivenBack) {
    checks.push(...ownChecks(record));
    return;
  }
  const foreign = whyForeign(state, record, element);
  if (foreign !== null) checks.push(...checksOf([foreign], record.path));
  if (element.type === "NetworkRule") ruleChecks(state, record, checks);
  for (const path of dependencies(state, element)) {
    const other = recordAt(state, path);
    if (other === undefined || other.type === "VM") continue;
    // Others need its addresses alone: which rules are in force within it holds none of them up.
    if (other.type === "Subnet" && other.range !== null && !other.deleting)
      checks.push(passed(path, "it has its addresses"));
    else follow(state, other, checks, seen);
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
  if (foreign !== null || (element.type === "NetworkRule" && record.phase !== "ready")) return;
  checks.push(...ownChecks(record));
}

/** Host by host, what packets meet there of a rule. */
function ruleChecks(state: ControllerState, record: ElementRecord, checks: ElementCheck[]): void {
  const since = ruleSince(state, record);
  for (const { host, version, why } of rulesAtHosts(state)) {
    const what = `in force at host ${host}`;
    checks.push(version >= since ? passed(what, "the host has confirmed it") : failed(what, why.causes));
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

function vmChecks(state: ControllerState, record: ElementRecord, vm: VmElement, checks: ElementCheck[]): void {
  const on = vm.desiredState === "on";
  checks.push(
    on
      ? isOff(state)
        ? failed("wanted on", [accountIsOff])
        : passed("wanted on", 'x.desiredState is "on"')
      : failed("wanted on", [{ kind: "switched-off", target: target(state, vm.path) }]),
  );
  for (const link of linksOf(state, vm.path)) checks.push(...linkChecks(state, link));
  const own = state.vms.get(record.uid);
  const run = own?.run ?? null;
  if (on && own !== undefined && (run === null || run.stage === "placing")) checks.push(...lastPlace(own));
  if (own?.rested !== undefined) checks.push(restCheck(own.rested));
  if (run !== null && on) checks.push(...runChecks(state, record, run));
  if (!on && record.causes.length === 0) return;
  // What it waits for was looked at before it.
  const isTold = checks.some(({ passes }) => !passes);
  const causes = record.causes.filter(({ kind }) => !(isTold && kind === "waits-for"));
  const turn = causes.map((cause) =>
    cause.kind === "waits-its-turn" ? placeInQueue(state, record.uid, cause) : cause,
  );
  if (causes.length < record.causes.length && causes.length === 0) return;
  checks.push(...ownChecks({ ...record, causes: turn }));
}

/** What a VM's own checks do not say of a link: its address, what it lacks of other cells, how far its upgrade is. */
function linkChecks(state: ControllerState, { path, requires, type }: LinkElement): readonly ElementCheck[] {
  const record = recordAt(state, path);
  if (record === undefined) return [];
  const { allocation, causes } = record;
  if (type === "VirtualInterface" && requires) {
    const what = `address of ${path}`;
    return [
      allocation === null
        ? failed(what, causes)
        : passed(what, addressOf(state, record) ?? "of the site, which gives it one once it runs"),
    ];
  }
  return checksOf(
    causes.filter((cause) => isUpgrade(cause) || (requires && otherCells.has(cause.kind))),
    path,
  );
}

/** Of one that has no place now, where it stood last. Who is not the operator reads no name. */
function lastPlace({ ran = [] }: VmRecord): readonly ElementCheck[] {
  const [last] = ran;
  return last === undefined ? [] : [passed("ran last", `incarnation ${last.incarnation} was at ${last.host}`)];
}

/** Of one that was stopped lately: who stands beside whom goes by it as if it still ran there. */
function restCheck({ host, incarnation, untilMs, placement }: Rested): ElementCheck {
  const wishes = [
    ...(placement.groups === undefined ? [] : ["affinity groups"]),
    ...(placement.dedication === undefined ? [] : ["implicit dedication"]),
  ].join(" and ");
  const until = isoTime(untilMs);
  return passed(
    "still counts",
    `for ${wishes} incarnation ${incarnation} counts at ${host} until ${until}, without room there`,
  );
}

/** What an incarnation has. What it lacks its causes say. */
function runChecks(state: ControllerState, { uid, causes }: ElementRecord, run: Run): readonly ElementCheck[] {
  const { host, incarnation, stage } = run;
  if (stage === "placing" || host === null) return [];
  const crossed = placementOf(state, uid, run)?.crossed ?? [];
  const checks = [
    passed("host", `${host} holds incarnation ${incarnation}`),
    ...crossedChecks(crossed),
    ...wishChecks(run),
  ];
  for (const { connection, volume } of run.disks) {
    const lease = connectionOf(state, connection, run);
    if (stage === "connecting" && lease?.phase !== "ready") continue;
    // What holds the storage up while the machine goes on: a server that does not answer, or is older than others know it.
    checks.push(passed(`lease of ${state.elements.get(volume)?.path ?? volume}`, lease?.reason ?? "it is held"));
  }
  if (stage === "connecting") return checks;
  if (state.reachable.get(hostPeer(host)) !== false) checks.push(passed(`host ${host} answers`, "it does"));
  const actual = actualVmOf(state, uid, run);
  if (stage === "stopping" || actual?.power !== "on") return checks;
  checks.push(passed("runs", actual.reason ?? "its machine runs"));
  // One that is silent and left alone says so by a cause.
  if (
    actual.health === "answering" ||
    (actual.health !== undefined && !causes.some(({ kind }) => kind === "silent-left"))
  )
    checks.push(probes(actual.health));
  return checks;
}

/** How it came to its host, where that crossed what is dedicated or held. Of a Placer of a later version by the name alone. */
function crossedChecks(crossed: readonly string[]): readonly ElementCheck[] {
  const says: Readonly<Record<string, string>> = crossingSays;
  const texts = crossed.map((alert) => (Object.hasOwn(says, alert) ? `${alert}, ${says[alert]}` : alert));
  return texts.length === 0 ? [] : [passed("dedication", `by the way that it came here: ${texts.join("; ")}`)];
}

/** Which of its nice wishes are so there, and what it has by them. None of them holds anything up. */
function wishChecks({ placement, nice = [], least, memoryMiB, cpus }: Run): readonly ElementCheck[] {
  const wishes = niceOf(placement);
  if (wishes.length === 0) return [];
  const told = (isSo: boolean): readonly string[] =>
    wishes.flatMap(({ name, weight }) =>
      nice.includes(name) === isSo ? [weight === leastWeight ? name : `${name} (weight ${weight})`] : [],
    );
  const [so, not] = [told(true), told(false)];
  const parts = [
    ...(so.length === 0 ? ["none of what it would rather have is so"] : [`${so.join(", ")} ${verbOf(so)} so`]),
    ...(not.length === 0 ? [] : [`${not.join(", ")} ${verbOf(not)} not`]),
    ...(least === undefined ? [] : [`it has ${amounts({ memoryMiB, cpus })}, and has to have ${amounts(least)}`]),
  ];
  return [passed("nice wishes", parts.join("; "))];
}
const verbOf = ({ length }: readonly string[]): string => (length === 1 ? "is" : "are");
const amounts = ({ memoryMiB, cpus }: PlacedAmounts): string =>
  `${memoryMiB} MiB and ${cpus} ${cpus === 1 ? "processor" : "processors"}`;

const waits = "nothing needs to be done: its next answer is waited for";
const probes = (health: "starting" | "answering" | "silent"): ElementCheck =>
  health === "answering"
    ? passed("answers its probes", "it is answering")
    : { ...passed("answers its probes", `it is ${health}`), passes: false, lifts: waits };
