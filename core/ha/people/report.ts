import { isoTime } from "../../../model/cell/iso-time.ts";
import type { HaItem, HaReport } from "../../../model/contract/operator/ha.ts";
import type { WorkItem } from "../item.ts";
import type { HaState } from "../state.ts";

/** The queue as people see it: what is being worked on, then what has ended, the last first. */
export function reportOf({ active, ended, wanted, storm, alerts, power, notices, mail, orderly }: HaState): HaReport {
  const byTime = (one: WorkItem, other: WorkItem): number => other.since - one.since;
  const both = (one: ReadonlyMap<string, WorkItem>, other: ReadonlyMap<string, WorkItem>): readonly WorkItem[] =>
    [...one.values(), ...other.values()].sort(byTime);
  const items = [...both(active, orderly.active), ...both(ended, orderly.ended)].map(shown);
  return {
    protected: wanted.size,
    storm:
      storm === null
        ? null
        : {
            since: isoTime(storm.since),
            hosts: storm.hosts,
            ...(storm.asked === true ? { asked: true as const } : {}),
          },
    alerts: [...alerts.values()]
      .sort((one, other) => one.since - other.since)
      .map(({ kind, subject, since, sentence, acknowledged }) => ({
        kind,
        subject,
        since: isoTime(since),
        sentence,
        ...(acknowledged === undefined ? {} : { acknowledged: isoTime(acknowledged) }),
      })),
    ...(notices.receiver === null
      ? {}
      : { webhook: { url: notices.receiver.url, waiting: notices.queue.size, said: notices.said } }),
    ...(mail.receiver === null
      ? {}
      : { mail: { server: mail.receiver.server, to: mail.receiver.to, waiting: mail.queue.size, said: mail.said } }),
    // Without the user's name, and without what is sealed.
    power: [...power.registered.values()]
      .sort((one, other) => (one.host < other.host ? -1 : 1))
      .map(({ host, kind, address, uuid, agent, plug }) => ({
        host,
        kind,
        address,
        uuid,
        ...(agent === undefined ? {} : { agent }),
        ...(plug === undefined ? {} : { plug }),
        said: power.said.get(host)?.sentence ?? null,
      })),
    items,
  };
}

const shown = (item: WorkItem): HaItem => {
  const { type, step, vm, cell, path, incarnation, host, reason, outcome = null, held = null, fencedBy = null } = item;
  const said = ({ by, state, sentence, at }: WorkItem["answers"][number]) => ({
    by,
    says: state,
    sentence,
    since: isoTime(at),
  });
  return {
    type,
    step,
    vm,
    cell,
    path,
    incarnation,
    host,
    reason,
    outcome,
    held,
    fencedBy,
    scheduled: isoTime(item.scheduledAt),
    since: isoTime(item.since),
    investigators: item.answers.map(said),
    fencers: item.fencing.map(said),
    ...(item.gaveUp === true ? { gaveUp: true as const } : {}),
  };
};
