import type { CellSummary, InstallationStatus } from "../../model/api.ts";
import { commandOf } from "./command.ts";
import type { KnownHa } from "./known.ts";

/** What needs a person, why, and what he can do about it; and what is being done without him. */
export interface Need {
  readonly key: string;
  readonly title: string;
  /** A sentence; null: nobody has said more. */
  readonly reason: string | null;
  /** A command that is the way out, or says more. */
  readonly command: string | null;
}
export interface Doing {
  readonly key: string;
  readonly title: string;
  readonly step: string;
  readonly reason: string | null;
  /** ISO 8601. */
  readonly since: string | null;
}
export interface Standing {
  readonly needs: readonly Need[];
  readonly doing: readonly Doing[];
}

/** Each of the three is null while nothing has come of it, or where it is not for who looks. */
export function standingOf(
  status: InstallationStatus | null,
  cells: readonly CellSummary[] | null,
  ha: KnownHa | null,
): Standing {
  const ofCells = (cells ?? []).map(standingOfCell);
  const working = (ha?.items ?? []).filter(
    ({ step, held, gaveUp }) => !over.has(step) && held === null && gaveUp !== true,
  );
  return {
    needs: [
      ...needsOfHa(ha),
      ...(status === null ? [] : needsOfStatus(status, new Set(working.map(({ host }) => host)))),
      ...ofCells.flatMap(({ needs }) => needs),
    ],
    doing: [
      ...working.map(({ vm, incarnation, path, host, step, reason, since }) => ({
        key: `ha/${vm}/${incarnation}`,
        title: `${path}, which ran on ${host}`,
        step: stepWords[step] ?? step,
        reason,
        since,
      })),
      ...ofCells.flatMap(({ doing }) => doing),
    ],
  };
}

/** What was done about a lost machine without a person: it may be over before anybody looks. */
export interface DoneLately {
  readonly key: string;
  readonly title: string;
  /** How it ended, a sentence. */
  readonly outcome: string;
  /** ISO 8601. */
  readonly since: string;
}
const latelyMs = 10 * 60_000;
/** Of the last ten minutes, the latest first. */
export const doneLately = (ha: KnownHa | null, nowMs: number): readonly DoneLately[] =>
  (ha?.items ?? [])
    .filter(({ step, since }) => step === "Done" && nowMs - Date.parse(since) < latelyMs)
    .map(({ type, vm, incarnation, path, host, outcome, reason, since }) => ({
      key: `${type}/${vm}/${incarnation}`,
      title: `${path}, which ran on ${host}`,
      outcome: outcome ?? reason,
      since,
    }))
    .sort((a, b) => Date.parse(b.since) - Date.parse(a.since));

const over: ReadonlySet<string> = new Set(["Done", "Error", "Cancelled"]);
const stepWords: Readonly<Record<string, string>> = {
  Scheduled: "is scheduled",
  Investigating: "asks whether it still runs",
  Fencing: "makes sure that it writes no more",
  Stopping: "is being stopped",
  Restarting: "starts elsewhere",
};

function needsOfHa(ha: KnownHa | null): readonly Need[] {
  if (ha === null) return [];
  const held = ha.items.flatMap(({ vm, incarnation, path, cell, step, held: why, gaveUp }): readonly Need[] => {
    if (over.has(step) || (why === null && gaveUp !== true)) return [];
    const named = [cell, ...path.split("/").slice(1)].join("/");
    const reason = why ?? "Everybody who could say whether it still runs was asked, and nobody is asked any more.";
    const command = commandOf(gaveUp === true ? "cells ha retry" : "cells ha release", named);
    return [{ key: `held/${vm}/${incarnation}`, title: `${path} waits for a person`, reason, command }];
  });
  const alerts = ha.alerts.map(({ kind, subject, sentence, acknowledged }) => ({
    key: `alert/${kind}/${subject}`,
    title: alertTitle(kind, subject),
    reason: acknowledged === undefined ? sentence : `${sentence} Somebody looks after it.`,
    command: "cells ha",
  }));
  return [...alerts, ...held];
}
const alertTitle = (kind: string, subject: string): string =>
  ({
    paused: "Many hosts were lost at once, and high availability waits",
    held: `${subject} was started again too often, and waits`,
    isolated: `${subject} is declared dead and may still run`,
    unfenced: `The fence of ${subject} takes too long`,
    stuck: `${subject} does not do what it was asked`,
  })[kind] ?? `${kind}: ${subject}`;

function needsOfStatus(
  { hosts, servers, services, loss, warnings = [] }: InstallationStatus,
  atWork: ReadonlySet<string>,
): readonly Need[] {
  const lost = hosts.flatMap(({ host, state, presence, remark }): readonly Need[] => {
    if (presence?.state === "dead") {
      const how = presence.powerIsOff === true ? "Its power is off" : "The other hosts have declared it dead";
      const then = atWork.has(host) ? "what ran there is being looked after" : "nothing that ran there waits for it";
      return [
        { key: `host/${host}`, title: `Host ${host} is lost`, reason: `${how}; ${then}.`, command: `cells status` },
      ];
    }
    if (state === "unreachable")
      return [
        {
          key: `host/${host}`,
          title: `Host ${host} does not answer`,
          reason: "The other hosts still hear it, or nothing is known yet.",
          command: "cells status",
        },
      ];
    return remark === undefined
      ? []
      : [{ key: `host/${host}`, title: `Host ${host} says something`, reason: remark, command: null }];
  });
  const servers_ = servers.flatMap(({ server, state, freeMiB, totalMiB }): readonly Need[] => {
    if (state === "unreachable")
      return [
        {
          key: `server/${server}`,
          title: `Storage server ${server} does not answer`,
          reason: "Volumes there can be neither read nor written until it does.",
          command: "cells status",
        },
      ];
    return totalMiB > 0 && freeMiB < totalMiB / 20
      ? [
          {
            key: `server/${server}`,
            title: `Storage server ${server} is almost full`,
            reason: `${freeMiB} MiB of ${totalMiB} MiB are free.`,
            command: "cells bin list",
          },
        ]
      : [];
  });
  const down = services
    .filter(({ running }) => !running)
    .map(({ name, lastEnd }) => ({
      key: `service/${name}`,
      title: `Service ${name} does not run`,
      reason: lastEnd ?? null,
      command: "cells status",
    }));
  const stranded =
    loss === undefined || loss.stranded.length === 0
      ? []
      : [
          {
            key: "loss",
            title: `If host ${loss.host} were lost, ${loss.stranded.length} of its machines had no place elsewhere`,
            reason: loss.stranded.slice(0, 5).join(", "),
            command: "cells status",
          },
        ];
  const warned = warnings.map((reason) => ({
    key: `warning/${reason}`,
    title: "The gateway says something of itself",
    reason,
    command: "cells gateway certificate",
  }));
  return [...lost, ...servers_, ...down, ...stranded, ...warned];
}

function standingOfCell({ cell, phases, waiting = [] }: CellSummary): Standing {
  const failed = waiting.filter(({ phase }) => phase === "failed");
  const rest = (phases.failed ?? 0) - failed.length;
  const unreachable =
    phases.unreachable === undefined
      ? []
      : [
          {
            key: `cell/${cell}`,
            title: `The controller of the cell ${cell} does not answer`,
            command: "cells status",
            reason: "What is there goes on; nothing can be changed until it answers.",
          },
        ];
  return {
    needs: [
      ...unreachable,
      ...failed.map(({ path, reason }) => ({
        key: `failed/${cell}/${path}`,
        title: `${path} has failed`,
        reason,
        command: commandOf("cells why", path),
      })),
      ...(rest > 0
        ? [
            {
              key: `failed/${cell}`,
              title: `${rest} more elements of ${cell} have failed`,
              reason: null,
              command: commandOf("cells list --filter", `cell=${cell}`),
            },
          ]
        : []),
    ],
    doing: waiting
      .filter(({ phase }) => phase !== "failed")
      .map(({ path, phase, reason }) => ({
        key: `waits/${cell}/${path}`,
        title: path,
        step: phase,
        reason,
        since: null,
      })),
  };
}
