import type { TLSSocket } from "node:tls";
import type { PeerName } from "../../../model/cell/identifiers.ts";
import type { Admission } from "../admission.ts";
import type { Proof } from "../links/control.ts";
import type { Channel, ChannelEvents, Opening } from "../links/link.ts";
import { prove } from "../links/proof.ts";
import { reasonOf } from "../refusals.ts";
import { adopt, judge, makeLink, noted, type TransportState, track } from "./connection.ts";

/** Ends what goes on with whoever is not any more the one that has its name. */
export const judgeAgain = (transport: TransportState): void => {
  for (const { channel, peer, judged } of [...transport.connections.values()]) {
    const verdict = transport.judge.again(judged);
    if (verdict.ok) continue;
    transport.refusals.refuse(peer, reasonOf(verdict), verdict.why);
    channel.destroy();
  }
};

export const accept = (transport: TransportState, admission: Admission, socket: TLSSocket): void => {
  track(transport, socket);
  socket.on("error", () => undefined);
  admission.arrived(socket);
  const verdict = judge(transport, socket, null);
  if (!verdict.ok) transport.refusals.refuse(socket.remoteAddress ?? "unknown", reasonOf(verdict), verdict.why);
  const taken =
    verdict.ok &&
    enter(transport, admission, verdict.name, socket, () => makeLink(transport, socket, verdict.name, false).first);
  if (!taken) socket.destroy();
};

/** The same of a channel of a link that is there. */
export const acceptChannel = (transport: TransportState, admission: Admission, opening: Opening): void => {
  const { configuration, judge: decide, refusals } = transport;
  const { host, from, proven, secret, channel } = opening;
  const judged = {};
  const verdict = decide.ofProven(judged, proven, from);
  if (!verdict.ok) {
    refusals.refuse(host, reasonOf(verdict), verdict.why);
    opening.refuse(verdict.why);
    return;
  }
  noted(transport, verdict);
  let answer: Proof;
  try {
    answer = prove(configuration, secret, { channel, by: "answers", other: from });
  } catch (error) {
    opening.refuse(`the certificate of "${configuration.name}" cannot be used: ${(error as Error).message}`);
    return;
  }
  if (!enter(transport, admission, from, judged, () => (events) => opening.take(answer, events)))
    opening.refuse(`"${configuration.name}" takes no more connections`);
};

/** A connection of this peer begins, if there is a place for it. */
const enter = (
  transport: TransportState,
  admission: Admission,
  peer: PeerName,
  judged: object,
  opens: () => (events: ChannelEvents) => Channel,
): boolean => {
  let channel: Channel | null = null;
  const leave = transport.stopping ? null : admission.admit(peer, () => channel?.destroy());
  if (leave === null) return false;
  channel = adopt(transport, judged, peer, "server", opens(), leave);
  return true;
};
