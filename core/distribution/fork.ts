import type { PeerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { contains, type Mark } from "./marks.ts";
import type { HelloFrame } from "./node/frames.ts";
import { mayBeBehind } from "./node/hello.ts";
import { historyOf, writeTarget } from "./node/history.ts";
import { countRefusal, readDocument, refuse } from "./node/refuse.ts";
import { shareOf } from "./node/share/share.ts";
import { type StoredDocument, storeKey } from "./node/stored.ts";
import type { Client, ClientLink, Distribution, ServerLink, Target, Turn } from "./node/types.ts";

/*
 * What follows where one of the two stores of a connection has forked (`history.ts`).
 *
 * A client that forked may add documents, and may change and take back what it added since. What its receiver took before stays
 * as it is, per document, and of what the client found in its store nothing is added: the client is told so, a tombstone for
 * what is kept is never acknowledged as taken, and later frames pass. That lasts, over restarts of both, until somebody releases it: an operator, or the client itself where
 * all that it desires follows from what others say.
 *
 * No document of its former life is needed at a receiver that has none of it: then there is nothing to protect, and no fork. The
 * service is told (`set-back`): it may keep something of what ended, as files in a bin.
 * Nor is a client with another `instance` a fork: it is another one under the same name, and its predecessor's documents
 * are orphans.
 */

/** Is what greets under a name another one than what did before? One that never said what it is may be the same. */
export const isAnother = (before: string | null | undefined, now: string | undefined): boolean =>
  now !== undefined && before !== undefined && before !== null && before !== now;

export const isKept = ({ mark }: Client, { generation }: StoredDocument): boolean =>
  mark?.keptUpTo !== undefined && generation <= mark.keptUpTo;
export const hasForked = ({ mark }: Client): boolean => mark?.keptUpTo !== undefined;

const writeMark = (turn: Turn, client: Client): void => {
  const value = client.mark === null ? null : (client.mark as unknown as Json);
  turn.writes.push({ key: storeKey.clientMark(client.peer), value });
};

/** A client greets, before its generation is noted. What it knew of this store says whether this one is older itself. */
export const judgeClient = (node: Distribution, turn: Turn, client: Client, hello: HelloFrame): void => {
  const { history, instance, knew } = hello;
  if (knew !== undefined && !contains(historyOf(node), knew)) turn.inbox.push({ kind: "behind", peer: client.peer });
  const head = history?.at(-1);
  // One of the previous version; or a store without a commit, which has never desired anything.
  if (history === undefined || head === undefined) return;
  const { mark, documents, peer } = client;
  const now = { ...head, ...(instance === undefined ? {} : { instance }) };
  const isOther = mark !== null && isAnother(mark.instance, instance);
  const isSetBack = mark !== null && !isOther && documents.size === 0 && !contains(history, mark);
  if (isSetBack) turn.inbox.push({ kind: "set-back", peer });
  // Until it has said so: its answer may be lost, and the mark is the present store's by then.
  const hasSeenLater = isSetBack || (mark?.seenLater === true && !isOther);
  if (mark === null || documents.size === 0 || isOther) client.mark = hasSeenLater ? { ...now, seenLater: true } : now;
  else if (mark.lost !== undefined && contains(history, mark.lost)) {
    client.mark = now;
    turn.logs.push({ event: "distribution/reunited", fields: { peer, documents: documents.size } });
  } else if (contains(history, mark)) client.mark = { ...mark, ...now };
  else {
    const { start, count } = mark;
    client.mark = { ...now, lost: mark.lost ?? { start, count }, keptUpTo: client.generation };
    turn.logs.push({ event: "distribution/forked", fields: { peer, side: "client", documents: documents.size } });
  }
  writeMark(turn, client);
};

/** How far a client is by its last document. */
export const advanceClient = (turn: Turn, client: Client, at: Mark | undefined): void => {
  if (at === undefined || client.mark === null) return;
  client.mark = { ...client.mark, start: at.start, count: at.count };
  writeMark(turn, client);
};

/** Whatever store the client comes with next is taken for its own. */
export const forgetMark = (turn: Turn, client: Client): void => {
  if (client.mark === null) return;
  const forked = hasForked(client);
  client.mark = null;
  writeMark(turn, client);
  if (forked) logReleased(turn, client, "operator");
};

/** A document that is not taken, since what is here is kept. Its sender is told so, before its acknowledgement. */
export const keep = (node: Distribution, turn: Turn, link: ServerLink, key: string, seq: number): void => {
  refuse(node, turn, link.peer, "kept as it is", key);
  if (link.speaksHistory) link.telling.set(key, seq);
};

/**
 * Of a client that has forked, what it found in its store and what is not here. It was taken back since, or moved: the older store
 * of a controller would have a machine start at the host that it has left. It is said again after a release.
 */
export const keepOut = (node: Distribution, turn: Turn, link: ServerLink, key: string, seq: number): void => {
  refuse(node, turn, link.peer, "kept as it is", key);
  tellWithinShare(link, key, seq);
};

/**
 * What is said of a key that is not here. Beyond the peer's share the acknowledgement of its frame alone has to do, or who reads nothing
 * would fill the memory.
 */
export const tellWithinShare = (link: ServerLink, key: string, seq: number): void => {
  if (link.speaksHistory && link.telling.size < shareOf(link.peer).documents) link.telling.set(key, seq);
};

/** What a client says counts again. It repeats all of it, on a new connection. @returns connections to close */
export const releaseClient = (turn: Turn, client: Client, by: "operator" | "client"): void => {
  if (client.mark === null || !hasForked(client)) return;
  const { start, count, instance } = client.mark;
  client.mark = { start, count, ...(instance === undefined ? {} : { instance }) };
  writeMark(turn, client);
  logReleased(turn, client, by);
};
const logReleased = (turn: Turn, { peer, orphans }: Client, by: string): void => {
  turn.logs.push({ event: "distribution/released", fields: { peer, by, orphans: orphans.size } });
};

// --- the client's side ---------------------------------------------------------------------------------------------

const tell = (turn: Turn, { peer, forked, itForked }: Target): void => {
  turn.inbox.push({ kind: "forked", peer, forked, itForked });
};

/**
 * A receiver greets: says whether this store has forked, and is looked at itself. Its silence about a fork ends none: it might
 * have said things in between that it had no business to. A newer store that comes back has no such note of a fork in it.
 */
export const judgeServer = (node: Distribution, turn: Turn, target: Target, hello: HelloFrame): void => {
  const { history, instance } = hello;
  if (history === undefined) return;
  const head = history.at(-1) ?? null;
  const isSame = target.at !== null && contains(history, target.at);
  if (!isSame && isAnother(target.instance, instance)) forgetFormer(node, turn, target);
  const forked = target.forked || hello.forked === true;
  const forksNow = target.at !== null && !contains(history, target.at);
  const itForked = target.itForked || forksNow;
  const isNews = forked !== target.forked || forksNow;
  const isSetBack = hello.seenLater === true && !target.seenLater;
  if (isSetBack) target.seenLater = true;
  if (forked && !target.forked) logFork(turn, target.peer, "client");
  if (itForked && !target.itForked) logFork(turn, target.peer, "receiver");
  target.forked = forked;
  target.itForked = itForked;
  const hasStarted = head !== null && head.start !== target.at?.start;
  if (head !== null) target.at = head;
  const isNamed = instance !== undefined && instance !== target.instance;
  if (isNamed) target.instance = instance;
  if (isNews || hasStarted || isNamed || isSetBack) writeTarget(turn, target);
  if (isNews) tell(turn, target);
  if (isSetBack) turn.inbox.push({ kind: "seen-later", peer: target.peer });
};

/**
 * Another one has the receiver's name: nothing that is known of the former one's store is about it. What that one said of this
 * store stays: whoever invents an `instance` would release it otherwise.
 */
const forgetFormer = (node: Distribution, turn: Turn, target: Target): void => {
  const { peer, itForked } = target;
  target.at = null;
  target.itForked = false;
  target.orphans.clear();
  const count = countRefusal(node.refusalsLogged, `${peer} another`, turn.now.ms);
  const fields = { peer, documents: target.documents.size, count };
  if (count !== null) turn.logs.push({ event: "distribution/another", fields });
  if (itForked) tell(turn, target);
  turn.inbox.push({ kind: "another", peer });
};
const logFork = (turn: Turn, peer: PeerName, side: string): void => {
  turn.logs.push({ event: "distribution/forked", fields: { peer, side } });
};

/**
 * A receiver keeps a document as it is, or has one that is not known here. One that makes no sense is no news to the service; and a
 * receiver that lies names no more of the second kind than this service could have desired there.
 */
export const takeKept = (
  node: Distribution,
  turn: Turn,
  link: ClientLink,
  { key, seq, value }: { readonly key: string; readonly seq?: number; readonly value: Json },
): void => {
  const { target } = link;
  const known = target.documents.has(key);
  if (seq !== undefined && seq <= link.recoveredAt && target.documents.get(key)?.seq === seq) {
    sayAgain(node, turn, link, key);
    return;
  }
  if (seq !== undefined) {
    if (known) link.kept.set(key, seq);
    const count = countRefusal(node.refusalsLogged, `${target.peer} kept`, turn.now.ms);
    if (count !== null) turn.logs.push({ event: "distribution/kept", fields: { peer: target.peer, key, count } });
  }
  const document = value === null ? null : readDocument(node, turn, "kept", target.peer, key, value);
  if (document === null && value !== null) return;
  if (!known && !target.orphans.has(key)) {
    if (target.orphans.size >= shareOf(node.self).documents) {
      refuse(node, turn, target.peer, "too many documents", key);
      return;
    }
    target.orphans.add(key);
  }
  turn.inbox.push({ kind: "kept", peer: target.peer, key, value: document });
};

/** An operator lets this service's store count, wherever it has forked. Its receivers hear of it themselves. */
export const releaseSelf = (node: Distribution, turn: Turn): void => {
  mayBeBehind(node, turn);
  for (const target of node.targets.values()) {
    if (!target.forked) continue;
    target.forked = false;
    writeTarget(turn, target);
    tell(turn, target);
  }
};

/** This service knows again all that it desires at a peer, or a person says that it does. */
export const recovered = (node: Distribution, turn: Turn, target: Target): void => {
  if (!target.forked && !target.itForked) {
    tell(turn, target);
    return;
  }
  const wasForked = target.forked;
  target.forked = false;
  target.itForked = false;
  writeTarget(turn, target);
  tell(turn, target);
  if (!wasForked || target.link === null) return;
  target.link.control.push({ frame: "recovered" });
  // What is on its way is still kept where it arrives before that, and the answer comes later.
  target.link.recoveredAt = node.seq;
  for (const key of target.link.kept.keys()) sayAgain(node, turn, target.link, key);
  target.link.kept.clear();
  turn.dirty.add(target.link.connection);
};

/** A document that was not taken, and would be now. */
const sayAgain = (node: Distribution, turn: Turn, { target, pending, connection }: ClientLink, key: string): void => {
  const document = target.documents.get(key);
  if (document === undefined) return;
  node.seq += 1;
  target.documents.set(key, { ...document, seq: node.seq });
  // Behind what is pending already, so that `seq` grows from frame to frame.
  pending.delete(key);
  pending.add(key);
  turn.dirty.add(connection);
};
