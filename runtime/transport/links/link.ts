import type { X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import { countsOnSilence } from "../../../core/presence/counted-on.ts";
import type { PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { outsideLives } from "../../life/role-life.ts";
import { channelHead, createFrameReader, createPieceReader, type Piece, type StreamReader } from "../frame-codec.ts";
import type { Late, Life, Pulse } from "../pulse.ts";
import { type Control, type Proof, readControl, type Served, shortened } from "./control.ts";
import { provenCertificate, sessionSecret } from "./proof.ts";

/**
 * One TLS connection between two processes. Its first channel is of the two services that made it, whom TLS itself has
 * authenticated. Others of the same processes take channels of their own on it, each with a proof of its own key, instead of
 * a connection each: signs of life, handshakes and buffers are the link's.
 *
 * One end may not know links (`shared` false): the connection then has that one channel, and its frames as they were before.
 */
export interface Link {
  /** Address of the other end. */
  readonly host: string;
  readonly shared: boolean;
  /** This end made the connection. */
  readonly dialled: boolean;
  /** The channel of the two services that TLS authenticated. Once. */
  first(events: ChannelEvents): Channel;
  /**
   * Asks for a channel. `outcome` is called once: with why it cannot be had, or with the answer, which is to be taken or
   * refused at once, since more may follow it.
   */
  open(asking: Asking, outcome: (outcome: Answered | string) => void): void;
  /** Whether that service, listening at that port, says that it is at the other end. */
  serves(peer: PeerName, port: number): boolean;
  /** Whether that service says that it is at the other end, at whatever port. */
  names(peer: PeerName): boolean;
  say(control: Control): void;
  /** Resolves when the other end has said which services are there, or nothing more will come. */
  readonly introduced: Promise<void>;
}
export interface ChannelEvents {
  frame(frame: Json): void;
  /** After a `send` that was not free. */
  sendable(): void;
  /** Once, whoever ends it. */
  ended(): void;
}
export interface Channel {
  /** False: more only after `sendable`. The bytes are frames with their length. */
  send(frames: readonly Buffer[]): boolean;
  /** Ends after what was sent; resolves when that has left, or was given up. */
  end(): Promise<void>;
  destroy(): void;
}
export interface Asking {
  readonly from: PeerName;
  readonly to: PeerName;
  readonly prove: (secret: Buffer, channel: number) => Proof;
  readonly waitMs: number;
}
export interface Answered {
  /** Null: the answer does not show that its key is there. */
  readonly proven: X509Certificate | null;
  /** Takes it. Once, or `refuse`. */
  take(events: ChannelEvents): Channel;
  refuse(): void;
}
/** A service of the other end asks for one of this. */
export interface Opening {
  readonly host: string;
  readonly from: PeerName;
  readonly to: PeerName;
  readonly proven: X509Certificate | null;
  /** What the answer has to sign, with the channel. */
  readonly secret: Buffer;
  readonly channel: number;
  take(proof: Proof, events: ChannelEvents): Channel;
  refuse(why: string): void;
}
/** What the other end did or did not do. */
export type LinkFault = Exclude<Late, "silent"> | "no frame";
export type Pair = readonly [PeerName, PeerName];
export interface LinkOptions {
  readonly shared: boolean;
  /** This end made the connection. */
  readonly dialled: boolean;
  /** The two services that made it. */
  readonly ends: Pair;
  /** After which a channel needs its first frame: to get that far costs what a handshake does. */
  readonly handshakeMs: number;
  readonly pulse: Pulse;
  readonly opening: (opening: Opening) => void;
  /** The other end has said which services are there. */
  readonly served: () => void;
  /** It is ended for what the other end did or did not do. */
  readonly refuse: (reason: LinkFault, why: string) => void;
  readonly ended: () => void;
}

const limits = {
  channels: 256,
  /** Proofs in a row that do not hold, until the whole link is refused. Who has the key has made none. */
  unproven: 64,
  /** Bytes about the link itself that wait for the other end to read: it could ask for ever, and never listen. */
  unreadBytes: 1_048_576,
  endMs: 2000,
} as const;
const firstChannel = 1;
const full = `a link has at most ${limits.channels} channels`;

interface Open {
  readonly channel: number;
  readonly events: ChannelEvents;
  /** Its silence says something to somebody. */
  readonly counted: boolean;
  /** Its first frame is late at its end; null: it has come. */
  greeting: NodeJS.Timeout | null;
}
interface State {
  readonly socket: TLSSocket;
  readonly options: LinkOptions;
  readonly channels: Map<number, Open>;
  /** Channels that the other end was asked for, and how it answers. */
  readonly asked: Map<number, (answer: Control | null) => void>;
  /** Those whose last `send` was not free. */
  readonly waiting: Set<Open>;
  services: readonly Served[];
  /** The next channel that this end asks for, and the least that the other may. */
  next: number;
  least: number;
  unproven: number;
  unreadBytes: number;
  /** Channels whose silence says something. */
  counted: number;
  /** Nobody here needs it any more. */
  ending: Promise<void> | null;
  ended: boolean;
  life: Life | null;
}

export const createLink = (socket: TLSSocket, options: LinkOptions): Link => {
  const [odd, even] = [firstChannel + 2, firstChannel + 1];
  const state: State = {
    socket,
    options,
    channels: new Map(),
    asked: new Map(),
    waiting: new Set(),
    services: [],
    next: options.dialled ? odd : even,
    least: options.dialled ? even : odd,
    unproven: 0,
    unreadBytes: 0,
    counted: 0,
    ending: null,
    ended: false,
    life: null,
  };
  const { shared } = options;
  const introduced = Promise.withResolvers<void>();
  const reader: StreamReader<Piece> = shared ? createPieceReader() : ofFirst();
  const late = (why: Late): void => {
    if (why !== "silent") options.refuse(why, `${reader.waiting} bytes of a frame have come`);
    socket.destroy();
  };
  const life = options.pulse.watch(socket, reader, late, () => state.counted > 0);
  state.life = life;
  const ended = (): void => {
    if (state.ended) return;
    state.ended = true;
    life.end();
    introduced.resolve();
    for (const answer of [...state.asked.values()]) answer(null);
    for (const each of [...state.channels.values()]) forget(state, each);
    options.ended();
  };
  const read = (chunk: Buffer): void => {
    try {
      const pieces = reader.read(chunk);
      for (const { channel, frame } of pieces) {
        if (state.ended || socket.destroyed) return;
        if (channel !== 0) deliver(state, channel, frame);
        else {
          hear(state, frame);
          introduced.resolve();
        }
      }
      life.heard(pieces.length > 0);
    } catch (error) {
      options.refuse("no frame", (error as Error).message);
      socket.destroy();
    }
  };
  // A role that made the connection may fail while others use it.
  socket.on("data", (chunk: Buffer) => outsideLives(() => read(chunk)));
  socket.on("drain", () => outsideLives(() => drained(state)));
  socket.on("end", () => socket.end());
  socket.on("close", () => outsideLives(ended));
  if (!shared) introduced.resolve();
  return {
    host: hostOf(socket),
    shared,
    dialled: options.dialled,
    introduced: introduced.promise,
    first: (events) => take(state, firstChannel, events, options.ends),
    open: (asking, outcome) => open(state, asking, outcome),
    serves: (peer, port) => isUsable(state) && state.services.some((one) => one.name === peer && one.port === port),
    names: (peer) => isUsable(state) && state.services.some(({ name }) => name === peer),
    say: (control) => say(state, control),
  };
};

const isUsable = ({ options, ended, ending, socket }: State): boolean =>
  options.shared && !ended && ending === null && socket.writable;

/** All that comes is of the first channel. */
const ofFirst = (): StreamReader<Piece> => {
  const frames = createFrameReader();
  return {
    alive: frames.alive,
    read: (chunk) => frames.read(chunk).map((frame) => ({ channel: firstChannel, frame })),
    get cut() {
      return frames.cut;
    },
    get waiting() {
      return frames.waiting;
    },
  };
};

const hostOf = ({ remoteAddress = "" }: TLSSocket): string => remoteAddress.replace(/^::ffff:/, "");

const bytesOf = (value: Json): Buffer => {
  const text = Buffer.from(JSON.stringify(value));
  const head = Buffer.allocUnsafe(4);
  head.writeUInt32BE(text.length);
  return Buffer.concat([head, text]);
};

/** Returns false when more should wait. */
const write = (
  { socket, options, life }: State,
  channel: number,
  frames: readonly Buffer[],
  gone?: () => void,
): boolean => {
  if (!socket.writable) return true;
  life?.said();
  const head = channelHead(channel);
  const pieces = options.shared ? frames.flatMap((frame) => [head, frame]) : frames;
  const [only] = pieces;
  return socket.write(pieces.length === 1 && only !== undefined ? only : Buffer.concat(pieces), gone);
};

const say = (state: State, control: Control, gone?: () => void): void => {
  if (!state.options.shared || !state.socket.writable) {
    gone?.();
    return;
  }
  const bytes = bytesOf(control as unknown as Json);
  state.unreadBytes += bytes.length;
  write(state, 0, [bytes], () => {
    state.unreadBytes -= bytes.length;
    gone?.();
  });
};

const refuseLink = ({ options, socket }: State, why: string): void => {
  options.refuse("no frame", why);
  socket.destroy();
};

const drained = (state: State): void => {
  const waiting = [...state.waiting];
  state.waiting.clear();
  for (const { events } of waiting) events.sendable();
};

const take = (state: State, channel: number, events: ChannelEvents, ends: Pair): Channel => {
  const own: Open = { channel, events, counted: countsOnSilence(...ends), greeting: null };
  state.channels.set(channel, own);
  if (own.counted) state.counted += 1;
  // Of a connection that is no link, the pulse looks.
  if (state.options.shared) own.greeting = greetingOf(state, own);
  const isOpen = (): boolean => state.channels.get(channel) === own;
  const destroy = (): void => {
    if (!isOpen()) return;
    say(state, { say: "closed", channel });
    forget(state, own);
    if (isIdle(state)) state.socket.destroy();
  };
  return {
    send: (frames) => {
      if (!isOpen()) return true;
      const free = write(state, channel, frames);
      if (!free) state.waiting.add(own);
      return free;
    },
    end: async () => {
      if (!isOpen()) return;
      const told = left(state, { say: "closed", channel });
      forget(state, own);
      await (isIdle(state) ? endLink(state) : told);
    },
    destroy,
  };
};

/** A sign of life of the link is none of a channel: somebody may hold places and say nothing. */
const greetingOf = (state: State, own: Open): NodeJS.Timeout => {
  const { handshakeMs, refuse } = state.options;
  const late = (): void => {
    if (own.greeting === null || state.channels.get(own.channel) !== own) return;
    refuse("no first frame", `nothing came on channel ${own.channel}`);
    say(state, { say: "closed", channel: own.channel });
    forget(state, own);
    if (isIdle(state)) state.socket.destroy();
  };
  // If this process itself stood still, it reads first what has come meanwhile.
  return setTimeout(() => setImmediate(() => outsideLives(late)), handshakeMs).unref();
};

const deliver = (state: State, channel: number, frame: Json): void => {
  const own = state.channels.get(channel);
  if (own === undefined) return;
  if (own.greeting !== null) clearTimeout(own.greeting);
  own.greeting = null;
  own.events.frame(frame);
};

const isIdle = ({ channels, asked }: State): boolean => channels.size === 0 && asked.size === 0;

const forget = (state: State, own: Open): void => {
  if (state.channels.get(own.channel) !== own) return;
  if (own.greeting !== null) clearTimeout(own.greeting);
  state.channels.delete(own.channel);
  if (own.counted) state.counted -= 1;
  state.waiting.delete(own);
  own.events.ended();
};

/** Nobody here needs it any more. */
const endLink = (state: State): Promise<void> => {
  state.ending ??= inTime(
    (done) => {
      state.socket.once("close", done);
      if (state.socket.closed) done();
      else state.socket.end();
    },
    // A peer that never reads would keep it open.
    () => state.socket.destroy(),
  );
  return state.ending;
};

/** Resolves when this, and so all that was said before, has left for the kernel. */
const left = (state: State, control: Control): Promise<void> =>
  inTime(
    (done) => say(state, control, done),
    () => undefined,
  );

const inTime = async (begin: (done: () => void) => void, late: () => void): Promise<void> => {
  const over = Promise.withResolvers<void>();
  const deadline = setTimeout(() => {
    late();
    over.resolve();
  }, limits.endMs);
  deadline.unref();
  begin(() => over.resolve());
  await over.promise;
  clearTimeout(deadline);
};

const open = (state: State, asking: Asking, outcome: (outcome: Answered | string) => void): void => {
  const { from, to, prove, waitMs } = asking;
  const usable = isUsable(state);
  if (!usable || state.channels.size + state.asked.size >= limits.channels) {
    outcome(usable ? full : "the link has ended");
    return;
  }
  const channel = state.next;
  state.next += 2;
  const secret = sessionSecret(state.socket);
  const proof = prove(secret, channel);
  const answered = (answer: Control | null): void => {
    if (!state.asked.delete(channel)) return;
    clearTimeout(deadline);
    const refuse = (): void => {
      say(state, { say: "closed", channel });
      if (isIdle(state)) void endLink(state);
    };
    if (answer?.say === "opened") {
      const proven = provenCertificate(answer, secret, { channel, by: "answers", self: to, other: from });
      outcome({ proven, take: (events) => take(state, channel, events, [from, to]), refuse });
    } else {
      if (answer === null) refuse();
      else if (isIdle(state)) void endLink(state);
      outcome(answer === null ? unanswered() : answer.say === "refused" ? answer.why : "it closed the channel");
    }
  };
  const unanswered = (): string =>
    state.ended ? "the link ended before it answered" : `no answer within ${waitMs} ms`;
  const deadline = setTimeout(() => outsideLives(() => answered(null)), waitMs).unref();
  state.asked.set(channel, answered);
  say(state, { say: "open", channel, from, to, ...proof });
};

/** Throws on what makes no sense. */
const hear = (state: State, value: Json): void => {
  const control = readControl(value);
  if (control === null) throw new Error("what the other end says of the link itself makes no sense");
  const { say: what } = control;
  if (what === "serves") {
    state.services = control.services;
    state.options.served();
  } else if (what === "open") asked(state, control);
  else if (what === "closed") {
    state.asked.get(control.channel)?.(control);
    const own = state.channels.get(control.channel);
    if (own !== undefined) forget(state, own);
    if (own !== undefined && isIdle(state)) void endLink(state);
  } else state.asked.get(control.channel)?.(control);
};

const asked = (state: State, control: Control & { readonly say: "open" }): void => {
  const { channel, from, to } = control;
  if (channel < state.least || channel % 2 !== state.least % 2)
    throw new Error(`channel ${channel} is not the other end's to ask for`);
  state.least = channel + 2;
  if (state.unreadBytes > limits.unreadBytes) {
    refuseLink(state, `it asks, and has not read ${state.unreadBytes} bytes of what was answered`);
    return;
  }
  const refuse = (why: string): void => say(state, { say: "refused", channel, why: shortened(why) });
  if (state.channels.size >= limits.channels) {
    refuse(full);
    return;
  }
  const secret = sessionSecret(state.socket);
  const proven = provenCertificate(control, secret, { channel, by: "asks", self: from, other: to });
  state.unproven = proven === null ? state.unproven + 1 : 0;
  if (state.unproven >= limits.unproven) {
    refuseLink(state, `${limits.unproven} proofs in a row do not hold, the last of "${from}"`);
    return;
  }
  state.options.opening({
    host: hostOf(state.socket),
    from,
    to,
    proven,
    secret,
    channel,
    refuse,
    take: (proof, events) => {
      const own = take(state, channel, events, [from, to]);
      say(state, { say: "opened", channel, ...proof });
      return own;
    },
  });
};
