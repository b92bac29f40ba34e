import { type RouteName, routeOf } from "../routes.ts";
import { allows, type Rule } from "../tenancy/rules.ts";
import { sessionVerb, verbOf } from "../tenancy/verbs.ts";
import type { PartySubject, Subjects, VmSubject, VolumeSubject } from "./subjects.ts";

/**
 * What may be done now: an action, by whom, to something that is so. One table for those who refuse (the gateway, and services behind it), for
 * the command line and for the page, whose buttons say why they are off by the same sentences.
 *
 * A row names the request that carries the action out, so who may is read off the table of routes and verbs, and is said nowhere else.
 */
export interface Verdict {
  /** A sentence without an end: why not. */
  readonly why: string;
  /** It is so already: whoever asks for it all the same has what he wants. */
  readonly isSo: boolean;
}
/** Null: it may be done. */
type When<S> = (subject: S) => Verdict | null;
export interface Action<K extends keyof Subjects = keyof Subjects> {
  readonly about: K;
  /** As buttons and sentences have it: "Start". */
  readonly label: string;
  /** The request that carries it out. */
  readonly route: RouteName;
  /** What a tenant's rules call it; null: it is the operator's. */
  readonly verb: string | null;
  /** Something ends, or may be lost: it is asked about first. */
  readonly ends: boolean;
  readonly when: When<Subjects[K]>;
}

const no = (why: string): Verdict => ({ why, isSo: false });
const so = (why: string): Verdict => ({ why, isSo: true });

interface Row<K extends keyof Subjects> {
  readonly about: K;
  readonly label: string;
  readonly route: RouteName;
  /** Where it is not that of the route, which carries out several. Null: it is the operator's. */
  readonly verb?: string | null;
  readonly ends?: true;
  readonly when: When<Subjects[K]>;
}
const row = <K extends keyof Subjects>({ verb, ends, ...rest }: Row<K>): Action<K> => ({
  ...rest,
  verb: verb === undefined ? verbOf(rest.route) : verb,
  ends: ends ?? false,
});
const silent = (cell: string): string =>
  `nothing is heard of ${cell}: what is there goes on, and is changed once its controller answers`;
const stateOf =
  (wanted: string): When<PartySubject> =>
  ({ party, state }) => {
    if (state === "deleting") return no(`${party} is being deleted`);
    return state === wanted ? so(`${party} is ${wanted} already`) : null;
  };

const whenThere: When<PartySubject> = ({ party, state }) =>
  state === "deleting" ? so(`${party} is being deleted`) : null;

const whenItRuns: When<VmSubject> = ({ path, power, phase, reason }) =>
  power === "on" || (power === null && phase === "ready") ? null : no(`${path} does not run: ${reason ?? "it is off"}`);

/** Of what the HA Manager works on in order, whose word counts instead. */
const inOrder: Readonly<Record<string, string>> = {
  Migration: "`cells host resume` lets the VMs of a host stay",
  CheckStop: "`cells start` wants it on again",
  ForceStop: "its host ends it when it is heard",
};
const isOver = (step: string): boolean => step === "Done" || step === "Error";
const anothers = (path: string, type: string): Verdict =>
  no(`${path} is no VM of a lost host, and what is done there (${type}) is another's: ${inOrder[type]}`);
const nothing = (path: string): Verdict => no(`nothing is being done about ${path}; \`cells ha\` shows what is`);

const whenManaged: When<VolumeSubject> = ({ volume, rights }) =>
  rights.includes("manage") ? null : no(`${volume} is shared with you, and its owner's people alone change it`);

export const actions = {
  // --- a VM -------------------------------------------------------------------------------------------------------
  start: row({
    about: "vm",
    label: "Start",
    route: "putElement",
    when: ({ path, phase, wanted }) => {
      if (phase === "deleting") return no(`${path} is being taken away`);
      return wanted === "on" && phase !== "failed" ? so(`${path} is to run already`) : null;
    },
  }),
  stop: row({
    about: "vm",
    label: "Stop",
    route: "putElement",
    ends: true,
    when: ({ path, phase, wanted }) => {
      if (phase === "deleting") return no(`${path} is being taken away`);
      return wanted === "off" ? so(`${path} is to be off already`) : null;
    },
  }),
  restart: row({
    about: "vm",
    label: "Restart",
    route: "putElement",
    ends: true,
    when: ({ path, phase, wanted }) => {
      if (phase === "deleting") return no(`${path} is being taken away`);
      return wanted === "off" ? no(`${path} is off: \`cells start ${path}\` starts it`) : null;
    },
  }),
  console: row({
    about: "vm",
    label: "Console",
    route: "grantSession",
    verb: sessionVerb("console"),
    when: whenItRuns,
  }),
  display: row({
    about: "vm",
    label: "Display",
    route: "grantSession",
    verb: sessionVerb("display"),
    when: whenItRuns,
  }),
  move: row({
    about: "vm",
    label: "Move",
    route: "moveVm",
    ends: true,
    when: ({ path, power, host, reason }) =>
      power === "on" && host !== null
        ? null
        : no(`${path} does not run: ${reason ?? "it is off"}. It is placed anew when it starts`),
  }),
  forceStop: row({
    about: "vm",
    label: "Force stop",
    route: "forceStop",
    ends: true,
    when: ({ path, host, isHostHeard }) => {
      if (host === null) return no(`nothing of ${path} runs anywhere: \`cells stop ${path}\` is enough`);
      return isHostHeard === true
        ? no(`${host} is heard, and stops what it runs: \`cells stop ${path}\` waits for its word`)
        : null;
    },
  }),

  // --- a host -----------------------------------------------------------------------------------------------------
  drain: row({
    about: "host",
    label: "Drain",
    route: "putElement",
    verb: null,
    ends: true,
    when: ({ host, administration }) =>
      administration === "maintenance" ? so(`${host} is in maintenance already`) : null,
  }),
  resume: row({
    about: "host",
    label: "Resume",
    route: "putElement",
    verb: null,
    when: ({ host, administration }) => (administration === "enabled" ? so(`${host} takes VMs already`) : null),
  }),
  dead: row({
    about: "host",
    label: "Its power is off",
    route: "endHost",
    ends: true,
    when: ({ host, presence }) => {
      if (presence === "off") return so(`that was said already of ${host}, which has not started since`);
      if (presence === "up") return no(`host ${host} is being heard: it runs`);
      return presence === "unknown" ? no(`whether host ${host} answers is not known yet: try again in a moment`) : null;
    },
  }),

  // --- high availability ------------------------------------------------------------------------------------------
  pauseHa: row({
    about: "queue",
    label: "Pause",
    route: "pauseHa",
    when: ({ paused }) =>
      paused === "asked" ? so("high availability is paused already, by an operator's word") : null,
  }),
  resumeHa: row({
    about: "queue",
    label: "Go on",
    route: "releaseHa",
    when: ({ paused }) => (paused === null ? so("high availability goes on: nothing is paused") : null),
  }),
  releaseHeld: row({
    about: "work",
    label: "Release",
    route: "releaseHa",
    when: ({ path, isHeld }) => (isHeld ? null : so(`nothing holds ${path}`)),
  }),
  retryWork: row({
    about: "work",
    label: "Retry",
    route: "retryHa",
    when: ({ path, type, step }) => {
      if (inOrder[type] !== undefined) return anothers(path, type);
      return isOver(step) ? nothing(path) : null;
    },
  }),
  cancelWork: row({
    about: "work",
    label: "Cancel",
    route: "cancelHa",
    ends: true,
    when: ({ path, type, step }) => {
      if (inOrder[type] !== undefined) return anothers(path, type);
      if (step === "Cancelled") return so(`${path} is left alone already`);
      if (isOver(step)) return nothing(path);
      return step === "Scheduled" || step === "Investigating"
        ? null
        : no(
            `${path} is at ${step}: a fence that has begun is carried through, since it may have ended some of its leases; \`cells stop ${path}\` keeps it off afterwards`,
          );
    },
  }),
  acknowledge: row({
    about: "alert",
    label: "I look after it",
    route: "acknowledgeAlert",
    when: ({ isAcknowledged }) => (isAcknowledged ? so("somebody looks after it already") : null),
  }),

  // --- cells ------------------------------------------------------------------------------------------------------
  changeCell: row({
    about: "cell",
    label: "Change",
    route: "putModel",
    when: ({ cell, isHeard }) => (isHeard ? null : no(silent(cell))),
  }),
  deleteCell: row({
    about: "cell",
    label: "Delete",
    route: "deleteModel",
    ends: true,
    when: ({ cell, isHeard }) => {
      if (cell === "root") return no("the root cell is the cloud itself, and is not deleted");
      return isHeard ? null : no(silent(cell));
    },
  }),
  rollback: row({
    about: "version",
    label: "Go back to it",
    route: "putModel",
    when: ({ version, isPresent, hasText }) => {
      if (isPresent) return so(`version ${version} is the present one`);
      return hasText ? null : no(`the text of version ${version} is not kept`);
    },
  }),

  // --- whose hardware it is ---------------------------------------------------------------------------------------
  dedicate: row({
    about: "place",
    label: "Dedicate",
    route: "putElement",
    verb: null,
    when: ({ place, dedicatedTo }) =>
      dedicatedTo === null ? null : no(`${place} is dedicated to ${dedicatedTo} already`),
  }),
  release: row({
    about: "place",
    label: "Release",
    route: "deleteElement",
    verb: null,
    ends: true,
    when: ({ place, dedicatedTo }) => (dedicatedTo === null ? no(`${place} is dedicated to nobody`) : null),
  }),
  changePool: row({
    about: "pool",
    label: "Change",
    route: "changePool",
    verb: "cell.change",
    when: () => null,
  }),
  deletePool: row({
    about: "pool",
    label: "Delete",
    route: "deletePool",
    verb: "cell.change",
    ends: true,
    when: ({ pool, hosts }) =>
      hosts.length === 0
        ? null
        : no(`the pool ${pool} has hosts: ${[...hosts].sort().join(", ")}; take them out of it first`),
  }),
  enablePoolHost: row({
    about: "poolHost",
    label: "Enable",
    route: "changePoolHost",
    verb: "cell.change",
    when: ({ name, isEnabled }) => (isEnabled ? so(`${name} is enabled already`) : null),
  }),
  disablePoolHost: row({
    about: "poolHost",
    label: "Disable",
    route: "changePoolHost",
    verb: "cell.change",
    when: ({ name, isEnabled }) => (isEnabled ? null : so(`${name} is disabled already`)),
  }),
  removePoolHost: row({
    about: "poolHost",
    label: "Remove",
    route: "removePoolHost",
    verb: "cell.change",
    ends: true,
    when: ({ name, isEnabled, vms }) => {
      if (isEnabled) return no(`${name} is enabled: disable it first`);
      return vms.length === 0
        ? null
        : no(`${vms.length === 1 ? "a VM stands" : `${vms.length} VMs stand`} at ${name}: they have to leave it first`);
    },
  }),

  // --- persistent volumes -----------------------------------------------------------------------------------------
  cloneVolume: row({
    about: "volume",
    label: "Clone",
    route: "addVolume",
    verb: "cell.change",
    when: ({ volume, rights }) =>
      rights.includes("copy") ? null : no(`${volume} is shared with you, and not to be copied`),
  }),
  changeVolume: row({
    about: "volume",
    label: "Change",
    route: "changeVolume",
    verb: "cell.change",
    when: whenManaged,
  }),
  shareVolume: row({
    about: "volume",
    label: "Share",
    route: "shareVolume",
    verb: "cell.change",
    when: whenManaged,
  }),
  unshareVolume: row({
    about: "volume",
    label: "Unshare",
    route: "unshareVolume",
    verb: "cell.change",
    ends: true,
    when: whenManaged,
  }),
  deleteVolume: row({
    about: "volume",
    label: "Delete",
    route: "deleteVolume",
    verb: "cell.change",
    ends: true,
    when: whenManaged,
  }),

  // --- people -----------------------------------------------------------------------------------------------------
  enableDomain: row({
    about: "party",
    label: "Enable",
    route: "changeDomain",
    verb: "domain.change",
    when: stateOf("enabled"),
  }),
  disableDomain: row({
    about: "party",
    label: "Disable",
    route: "changeDomain",
    verb: "domain.change",
    ends: true,
    when: stateOf("disabled"),
  }),
  deleteDomain: row({
    about: "party",
    label: "Delete",
    route: "deleteDomain",
    verb: "domain.delete",
    ends: true,
    when: whenThere,
  }),
  enableUser: row({
    about: "party",
    label: "Enable",
    route: "changeUser",
    verb: "user.change",
    when: stateOf("enabled"),
  }),
  disableUser: row({
    about: "party",
    label: "Disable",
    route: "changeUser",
    verb: "user.change",
    ends: true,
    when: stateOf("disabled"),
  }),
  deleteUser: row({
    about: "party",
    label: "Delete",
    route: "deleteUser",
    verb: "user.delete",
    ends: true,
    when: whenThere,
  }),
  enableAccount: row({
    about: "party",
    label: "Enable",
    route: "changeAccount",
    verb: "account.change",
    when: stateOf("enabled"),
  }),
  lockAccount: row({
    about: "party",
    label: "Lock",
    route: "changeAccount",
    verb: "account.change",
    ends: true,
    when: stateOf("locked"),
  }),
  disableAccount: row({
    about: "party",
    label: "Disable",
    route: "changeAccount",
    verb: "account.change",
    ends: true,
    when: stateOf("disabled"),
  }),
  deleteAccount: row({
    about: "party",
    label: "Delete",
    route: "deleteAccount",
    verb: "account.delete",
    ends: true,
    when: whenThere,
  }),
  setQuota: row({ about: "party", label: "Limit", route: "setQuota", verb: "quota.change", when: whenThere }),
} as const;

export type ActionName = keyof typeof actions;
/** What the action is about. */
export type SubjectOf<A extends ActionName> = Subjects[(typeof actions)[A]["about"]];

/** Who asks, as far as it is known. */
export type Asker =
  | { readonly kind: "operator" }
  /** By a cell's own credential. */
  | { readonly kind: "cell" }
  | { readonly kind: "user"; readonly rules: readonly Rule[] };

/** Why somebody may not do this to anything, a sentence without an end; null: he may, where nothing else stands against it. */
export function whyNotBy(name: ActionName, asker: Asker): string | null {
  const { verb, route }: Action = actions[name] as unknown as Action;
  if (asker.kind === "operator") return null;
  if (verb === null) return "this is for the operator, by the operator's credential";
  if (asker.kind === "cell")
    return routeOf(route).who === "cell" ? null : "a cell's own credential opens that cell alone: sign in as a user";
  return allows(asker.rules, verb) ? null : `your role does not allow it: it takes ${verb}`;
}
/**
 * Whether something may be done now. @param asker null: whoever answers has looked, or will
 * @returns null: yes
 */
export function whyNot<A extends ActionName>(name: A, asker: Asker | null, subject: SubjectOf<A>): Verdict | null {
  const by = asker === null ? null : whyNotBy(name, asker);
  if (by !== null) return no(by);
  return (actions[name].when as When<SubjectOf<A>>)(subject);
}
