import type { ConnectionGroups } from "../../../core/controller/network/connection-groups.ts";
import type { WhyEnd, WhyEnds } from "../../../core/controller/requests/connection-ends.ts";
import type { ConnectionAnswer } from "../../../model/api.ts";
import { boolean, list, optional, record, text } from "../../../model/contract/schema.ts";

/**
 * Puts together what both hosts read from their maps. This shape is the hosts' answer to `POST /examine` (see
 * `PacketQuestion` and `PacketCheck` of the network driver, a layer above).
 */
export interface Question {
  readonly protocol: "tcp" | "udp" | "icmp";
  readonly port: number | null;
}
export interface Check {
  readonly check: string;
  readonly passes: boolean;
  readonly detail: string;
  /** What who runs the machines is told besides, and nobody else. Absent: nothing. */
  readonly apart?: string;
  /** Address of another host that the packet meets, behind this one or before it. Absent: there is none, or the host is of a version that names none. */
  readonly ask?: string;
}
/** As a host says them. */
export const examinedChecks = list(
  record<Check>({ check: text(), passes: boolean, detail: text(), apart: optional(text()), ask: optional(text()) }),
  { most: 100 },
);
export interface Examined {
  readonly where: string;
  readonly checks: readonly Check[];
}

/** To whom it is told: who runs the machines reads all. */
export type Told = { readonly to: "operator" } | { readonly to: "tenant"; readonly machines: ReadonlySet<string> };

/**
 * As it is told. A tenant is told no address of a machine, in what hosts of other versions say neither; one that stands in the question stays as it
 * was written, or who asks about one address after the other would learn which are machines'.
 */
export function toldTo(told: Told, examined: readonly Examined[], { from, to }: WhyEnds): readonly Examined[] {
  const detailOf = ({ detail, apart }: Check): string => {
    if (told.to === "operator") return apart === undefined ? detail : `${detail} (${apart})`;
    return detail.replace(ipv4Text, (text, address: string) =>
      told.machines.has(address) && address !== from.address && address !== to.address ? "a host" : text,
    );
  };
  return examined.map(({ where, checks }) => ({
    where,
    checks: checks.map(({ check, passes, ...said }) => ({
      check,
      passes,
      detail: detailOf({ check, passes, ...said }),
    })),
  }));
}
const ipv4Text = /\b(\d{1,3}(?:\.\d{1,3}){3})(?:\/\d{1,2})?\b/g;

const ruleNumber = /\brule (\d+)\b/;

/** Says which element a rule's number, or a group's id, stands for. */
function explain(detail: string, ends: WhyEnds): string {
  return named(detail, ends.groups?.names ?? {}).replace(ruleNumber, (text, id: string) => {
    const path = ends.rules[id];
    return path === undefined || detail.includes(path) ? text : `${text} (${path})`;
  });
}

const named = (detail: string, names: { readonly [id: string]: string }): string =>
  detail.replace(/\bsg-[0-9a-f]{8}\b/g, (id) => (names[id] === undefined ? id : `${id} (${names[id]})`));

/**
 * The rule that would let the connection pass, ready to be put into the cell's specification. Whoever opens the
 * connection is address1.
 */
export function openingRule(ends: WhyEnds, question: Question): string {
  const end = ({ vm, path }: WhyEnd, group: string | null = null): string =>
    // Under a mode of Eucalyptus rules are groups'.
    group !== null
      ? `<ref:/${group}>`
      : path.startsWith("//")
        ? `<ref:${path}>`
        : vm === null
          ? path === "controller" || path === "internet"
            ? path
            : `${path}/32`
          : `<ref:/${path}>`;
  const ports = question.port === null ? "" : ` x.port2 ${question.port};`;
  return `allow extends NetworkRule { x.address1 "${end(ends.from, ends.groups?.from)}"; x.address2 "${end(ends.to, ends.groups?.to)}"; x.protocol "${question.protocol}";${ports} x.direction "1to2"; }`;
}

/** @param examined in the order in which a packet meets the hosts */
export function connectionAnswer(ends: WhyEnds, question: Question, examined: readonly Examined[]): ConnectionAnswer {
  const checks = examined.flatMap(({ where, checks }) =>
    checks.map(({ check, passes, detail }) => ({ where, check, passes, detail: explain(detail, ends) })),
  );
  const failed = checks.find(({ passes }) => !passes);
  const port = question.port === null ? "" : ` port ${question.port}`;
  const packet = `${question.protocol}${port} from ${ends.from.path} to ${ends.to.path}`;
  const answer = { from: ends.from.path, to: ends.to.path, ...question, checks };
  if (checks.length === 0) {
    return {
      ...answer,
      allowed: false,
      verdict: `nothing is known of ${packet}: ${ends.nowhere ?? "neither end is at a host of this cell"}`,
    };
  }
  if (failed === undefined) {
    const rules = [...new Set(checks.flatMap(({ detail }) => decidingRule(detail, ends)))];
    const by =
      ends.groups === undefined
        ? rules.length === 0
          ? "every check lets it pass"
          : `opened by ${rules.join(" and ")}`
        : byGroups(ends.groups, question);
    return { ...answer, allowed: true, verdict: `${packet} passes: ${by}` };
  }
  const dropped = `${packet} is dropped at ${failed.where}`;
  // Between cells, hosts learn where an end is from the moment when both cells' rules say so.
  if (ends.waiting.length > 0)
    return {
      ...answer,
      allowed: false,
      verdict: `${dropped}, at its check "${failed.check}" (${failed.detail}): the rule ${ends.waiting.join("; the rule ")}`,
    };
  if (ends.nowhere !== null) return { ...answer, allowed: false, verdict: `${dropped}: ${ends.nowhere}` };
  const declared = failed.check === "rule" && ends.groups !== undefined ? openedBy(ends.groups, question) : [];
  if (declared.length > 0) {
    const which = declared.join(" and ");
    const verdict = `${dropped}: ${which} would let it pass and is not in force there: \`cells why ${declared[0]}\` says for what it waits`;
    return { ...answer, allowed: false, verdict };
  }
  // A host knows only the addresses that some rule connects with its own: an unknown one is a missing rule as well.
  const verdict = ["rule", "identity"].includes(failed.check)
    ? `${dropped}: no rule in force there lets it pass. To open it, add: ${openingRule(ends, question)}`
    : `${dropped}, at its check "${failed.check}": ${failed.detail}`;
  return { ...answer, allowed: false, verdict };
}

/** Rules of the model that are about this question. */
const openedBy = ({ openings }: ConnectionGroups, { protocol, port }: Question): readonly string[] => [
  ...new Set(
    openings
      .filter(
        (each) =>
          each.protocol === "any" ||
          (each.protocol === protocol && (port === null || (each.from <= port && port <= each.to))),
      )
      .map(({ rule }) => rule),
  ),
];
/** Chains know no rules of a model: what they let pass is said to be by those that say so there. */
function byGroups(groups: ConnectionGroups, question: Question): string {
  const rules = openedBy(groups, question);
  if (rules.length > 0) return `opened by ${rules.join(" and ")}`;
  if (groups.from !== null && groups.from === groups.to)
    return `both are members of ${groups.from}, and members of one group always reach one another`;
  return "the chains in force there let it pass, though no rule of the cell does";
}

function decidingRule(detail: string, ends: WhyEnds): readonly string[] {
  const id = ruleNumber.exec(detail)?.[1];
  const path = id === undefined ? undefined : ends.rules[id];
  return path === undefined ? [] : [path];
}
