import type { HaAlert, HaItem, HaReport } from "../../model/contract/operator/ha.ts";
import { textOrder } from "../observation/event-merge.ts";

/** What one of several HA Managers says; of one that did not answer, why not, a sentence. */
export interface Heard {
  readonly manager: string;
  readonly said: HaReport | string;
}
/** That it answered. */
export const reportOf = ({ said }: Heard): HaReport | null => (typeof said === "string" ? null : said);

/**
 * What all HA Managers of an installation say, as one report: each looks after cells of its own, and the first alone tells of alerts outside and
 * cuts power. Null: none answered.
 * @param heard the first one first
 */
export function joined(heard: readonly Heard[]): HaReport | null {
  const reports = heard.flatMap((each) => reportOf(each) ?? []);
  const silent = heard.flatMap(({ manager, said }) => (typeof said === "string" ? [{ manager, sentence: said }] : []));
  const [only] = reports;
  if (only === undefined) return null;
  if (heard.length === 1) return only;
  const outside = heard[0] === undefined ? null : reportOf(heard[0]);
  return {
    ...(outside?.webhook === undefined ? {} : { webhook: outside.webhook }),
    ...(outside?.mail === undefined ? {} : { mail: outside.mail }),
    ...(outside?.power === undefined ? {} : { power: outside.power }),
    protected: reports.reduce((sum, report) => sum + report.protected, 0),
    storm: stormOf(reports),
    alerts: alertsOf(reports),
    items: itemsOf(reports),
    ...(silent.length === 0 ? {} : { silent }),
  };
}

/** It began with the first one, and was asked for where nobody has a storm of his own. */
function stormOf(reports: readonly HaReport[]): HaReport["storm"] {
  const storms = reports.flatMap(({ storm }) => storm ?? []).sort((a, b) => textOrder(a.since, b.since));
  const [first] = storms;
  if (first === undefined) return null;
  return {
    since: first.since,
    hosts: [...new Set(storms.flatMap(({ hosts }) => hosts))],
    ...(storms.every(({ asked }) => asked === true) ? { asked: true } : {}),
  };
}

/** A host, or all that is paused, is the matter of each of them, and is shown once; looked after is what is so at all of them. */
function alertsOf(reports: readonly HaReport[]): readonly HaAlert[] {
  const found = new Map<string, HaAlert>();
  for (const alert of reports.flatMap(({ alerts = [] }) => alerts)) {
    const key = JSON.stringify([alert.kind, alert.subject]);
    const before = found.get(key);
    found.set(key, before === undefined ? alert : sameMatter(before, alert));
  }
  return [...found.values()].sort((a, b) => textOrder(a.since, b.since));
}
function sameMatter(one: HaAlert, other: HaAlert): HaAlert {
  const { acknowledged, ...first } = textOrder(one.since, other.since) <= 0 ? one : other;
  if (one.acknowledged === undefined || other.acknowledged === undefined) return first;
  return { ...first, acknowledged: acknowledged ?? one.acknowledged };
}

/** As one of them lists its own: what is worked on, the first one first, then what has ended, the last one first. */
function itemsOf(reports: readonly HaReport[]): readonly HaItem[] {
  const items = reports.flatMap((report) => report.items);
  const [worked, ended] = [items.filter(isWorkedOn), items.filter((item) => !isWorkedOn(item))];
  return [
    ...worked.sort((a, b) => textOrder(a.scheduled, b.scheduled)),
    ...ended.sort((a, b) => textOrder(b.since, a.since)),
  ];
}
const isWorkedOn = ({ step }: HaItem): boolean => step !== "Done" && step !== "Cancelled" && step !== "Error";
