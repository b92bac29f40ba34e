import type { Death } from "../../core/documents/declaration.ts";
import type { ActualPresenceMissed } from "../../core/documents/presence.ts";
import { type HostPublication, ownLife, reportsOf } from "../../core/presence/group/host-publications.ts";
import type { SwimInput, SwimOutput, SwimState, VerdictChange } from "../../core/presence/swim/types.ts";
import { viewFromJson, viewToJson } from "../../core/presence/view.ts";
import type { HostName, PeerName } from "../../model/cell/identifiers.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { DoubtsRequest } from "../heartbeat/beats-state.ts";
import type { SuccessionRequest } from "../root-vm/succession.ts";
import type { PresenceRequest } from "./presence-state.ts";

/**
 * What joins a host's participant in Presence with the Host Manager's service and its state distribution, whatever carries
 * datagrams, full views and requests: generations that are durable before they are used, what this host says of itself and
 * others, and declared deaths, from the group or by broadcast.
 */
export interface PresencePartEffects<Participant extends PartParticipant> {
  /** Of the Host Manager's service; rejects when it stops. */
  request(request: PresenceRequest | SuccessionRequest | DoubtsRequest): Promise<Json>;
  /** What this host says from now on is of that life. */
  beginLife(generation: number): void;
  /** To this host's state distribution. */
  declaredDead(peer: PeerName, life: number): void;
  /** A full view over the reliable channel, which may fail. */
  sendView(to: HostName, view: Json): void;
  /** Begins to take part. */
  participate(options: {
    readonly generation: number;
    readonly output: (output: SwimOutput, state: SwimState) => void;
    readonly died: (death: Death) => void;
  }): Promise<Participant>;
}
export interface PartParticipant {
  readonly state: SwimState;
  input(input: SwimInput): void;
}
export interface PresencePart<Participant> {
  readonly participant: Participant;
  /** All hosts, and all members of the Presence group, as far as they are known now. */
  found(hosts: readonly HostName[], members: readonly PeerName[]): void;
  /** A member of the Presence group says so. */
  declared(host: HostName, generation: number): void;
  /** A member of the Presence group does not hear that host, and says which life to look for. */
  missed(said: ActualPresenceMissed): void;
  /** A full view of another host. False: it is none. */
  view(from: HostName, view: Json): boolean;
}

/** Rejects when the service stops first, or the participant cannot begin. */
export const createPresencePart = async <Participant extends PartParticipant>(
  effects: PresencePartEffects<Participant>,
): Promise<PresencePart<Participant>> => {
  // A service that is stopping answers nobody; then this host is silent soon anyway.
  const tell = (request: PresenceRequest | SuccessionRequest | DoubtsRequest): void =>
    void effects.request(request).catch(() => undefined);
  const reported = new Set<string>();
  let doubts = false;
  const carryOut = ({ verdicts, syncs, above, incarnated }: SwimOutput, state: SwimState): void => {
    if (state.localHealth >= doubting !== doubts) {
      doubts = !doubts;
      tell({ kind: "presence-doubts", doubts });
    }
    const publications: HostPublication[] = [];
    if (verdicts.length > 0) tell({ kind: "presence-heard", hosts: verdicts.map(heardIn) });
    for (const change of verdicts) {
      // Nothing is to be taken back of whom was never reported, as of a thousand that one meets.
      for (const report of reportsOf(change)) {
        const wasReported = reported.delete(report.key);
        if (report.value !== null) reported.add(report.key);
        if (report.value !== null || wasReported) publications.push(report);
      }
    }
    if (incarnated) publications.push(ownLife(state));
    if (publications.length > 0) tell({ kind: "presence-said", publications });
    for (const { to, updates, answer } of syncs) effects.sendView(to, viewToJson({ updates, answer }));
    if (above !== null) void enter(above);
  };
  // Many hosts tell of the same death at once, and one new generation is enough for all of them.
  let over = -1;
  let isEntering = false;
  const enter = async (above: number): Promise<void> => {
    over = Math.max(over, above);
    if (isEntering) return;
    isEntering = true;
    while (participant.state.self.generation <= over) {
      const next = await effects.request({ kind: "presence-enter", above: over }).catch(() => null);
      if (typeof next !== "number") break;
      participant.input({ kind: "enter", generation: next });
      effects.beginLife(next);
    }
    isEntering = false;
  };

  const generation = Number(await effects.request({ kind: "presence-enter", above: 0 }));
  effects.beginLife(generation);
  const participant = await effects.participate({
    generation,
    output: carryOut,
    died: ({ host, generation: life }) => {
      effects.declaredDead(peerName(`host.${host}`), life);
      tell({ kind: "presence-died", host, generation: life });
    },
  });
  tell({ kind: "presence-said", publications: [ownLife(participant.state)] });
  let known = "";
  return {
    participant,
    found: (hosts, members) => {
      const names = [...hosts, "", ...members].join(" ");
      if (names === known) return;
      known = names;
      participant.input({ kind: "peers", hosts });
      tell({ kind: "presence-follow", members });
      tell({ kind: "presence-hosts", hosts });
    },
    declared: (host, of) => participant.input({ kind: "declared", host, generation: of }),
    missed: ({ host, generation, incarnation }) => participant.input({ kind: "missed", host, generation, incarnation }),
    view: (from, json) => {
      const view = viewFromJson(json);
      if (view !== null) participant.input({ kind: "sync", from, ...view });
      return view !== null;
    },
  };
};

/**
 * More of this host's own last questions were not answered than were, whomever they went to: then it is the one that is cut off. A
 * host that is away alone, or many of a thousand, changes that little.
 */
const doubting = 3;

/** One that is suspected may answer yet. */
const heardIn = ({ host, generation, verdict }: VerdictChange): readonly [HostName, number | null] => [
  host,
  verdict === "alive" || verdict === "suspect" || verdict === "doubted" ? generation : null,
];
