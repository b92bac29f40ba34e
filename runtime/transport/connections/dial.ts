import { connect as connectTcp, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";
import type { PeerName } from "../../../model/cell/identifiers.ts";
import { boundToLife } from "../../life/role-life.ts";
import type { Answered, Link } from "../links/link.ts";
import { linkProtocol, type Reaching } from "../links/links.ts";
import { prove } from "../links/proof.ts";
import { expectPeer, secureContextOf, tlsFault } from "../mutual-tls.ts";
import { findPeer, type PeerAddress } from "../peers.ts";
import {
  adopt,
  type Dialer,
  hasPins,
  judge,
  makeLink,
  noted,
  type TransportLimits,
  type TransportState,
  track,
  transportLimits,
} from "./connection.ts";

/** A connection that ends sooner counts as an attempt that failed. */
const lastingMs = 2000;

/** Before the n-th attempt in a row: doubling up to the limit, and half of it by chance, so that many do not come at once. */
export const backoffMs = (
  attempt: number,
  random: number,
  { first, last }: TransportLimits["retryMs"] = transportLimits.retryMs,
): number => {
  const most = Math.min(last, first * 2 ** Math.min(attempt, 16));
  return most / 2 + (most / 2) * random;
};

const retry = (transport: TransportState, dialer: Dialer): void => {
  if (transport.stopping || dialer.timer !== null) return;
  dialer.timer = setTimeout(
    () => {
      dialer.timer = null;
      void dial(transport, dialer);
    },
    backoffMs(dialer.attempts, Math.random(), transport.limits.retryMs),
  );
  dialer.attempts += 1;
};

const failed = (transport: TransportState, dialer: Dialer, why: string): void => {
  if (transport.stopping) return;
  // The first of a row and then ever more seldom: a peer that is away for a day does not fill the log.
  if ((dialer.attempts & (dialer.attempts - 1)) === 0) {
    transport.events.log("transport/unreachable", { peer: dialer.peer, attempts: dialer.attempts + 1, why });
  }
  transport.events.input({ kind: "unreachable", peer: dialer.peer });
  retry(transport, dialer);
};

/** Begins a handshake with the present certificate; a sentence when that cannot be read. */
const open = ({ configuration }: TransportState, peer: PeerName, reached: Socket): TLSSocket | string => {
  try {
    return connect({
      secureContext: secureContextOf(configuration),
      minVersion: "TLSv1.3",
      socket: reached,
      rejectUnauthorized: !hasPins(configuration),
      checkServerIdentity: expectPeer(peer),
      ALPNProtocols: [linkProtocol],
    });
  } catch (error) {
    return `the own certificate cannot be used: ${(error as Error).message}`;
  }
};

export const dial = async (transport: TransportState, dialer: Dialer): Promise<void> => {
  const { peer } = dialer;
  const { links } = transport;
  const address = await findPeer(transport.configuration, peer);
  if (transport.stopping) return;
  if (!address.ok) {
    failed(transport, dialer, address.error);
    return;
  }
  const { host, distributionPort } = address.value;
  dialer.host = host;
  if (!dialer.alone) {
    // Who reaches that machine first may make the link for this peer too. It is waited for once: there may be several
    // processes.
    const reached = links.reached(host);
    if (reached !== null) {
      const found = new Promise<void>((resolve) => {
        dialer.goOn = resolve;
      });
      await Promise.race([reached, found, sleep(transport.limits.othersMs, null, { ref: false })]);
      dialer.goOn = null;
    }
    if (transport.stopping) return;
    const there = links.to(host, peer, distributionPort);
    if (there !== null) {
      ask(transport, dialer, there);
      return;
    }
  }
  const { alone } = dialer;
  dialer.alone = false;
  reach(transport, dialer, address.value, alone);
};

/**
 * A link has come whose other end says that it leads to these peers: from a machine that has just started, and was tried in vain
 * until then. Who waits for the next attempt, or for an answer of that machine's kernel, goes on at once. It is a hint, which
 * nobody has proved, so it counts once for each link, and only from where the peer is said to be.
 */
export const linkFound = (transport: TransportState, link: Link): void => {
  if (transport.stopping) return;
  for (const { made } of transport.dialers.values()) if (made?.link === link) made.introduced();
  for (const dialer of transport.dialers.values()) {
    const isThere = dialer.host === null || dialer.host === link.host;
    if (!isThere || dialer.told.has(link) || !link.names(dialer.peer)) continue;
    dialer.told.add(link);
    dialer.alone = false;
    if (dialer.timer !== null) {
      clearTimeout(dialer.timer);
      dialer.timer = null;
      void dial(transport, dialer);
    } else dialer.goOn?.();
  }
};

/** Asks for a channel of a link that is there. */
const ask = (transport: TransportState, dialer: Dialer, there: Link): void => {
  const { configuration, limits } = transport;
  const { peer } = dialer;
  const fail = (why: string): void => {
    dialer.alone = true;
    failed(transport, dialer, why);
  };
  const outcome = (answer: Answered | string): void => {
    if (typeof answer === "string") {
      fail(answer);
      return;
    }
    const judged = {};
    const verdict = transport.judge.ofProven(judged, answer.proven, peer);
    if (transport.stopping || !verdict.ok) {
      answer.refuse();
      if (!verdict.ok) fail(verdict.why);
      return;
    }
    noted(transport, verdict);
    adopt(transport, judged, peer, "client", (events) => answer.take(events), dialled(transport, dialer));
  };
  try {
    there.open(
      {
        from: configuration.name,
        to: peer,
        waitMs: limits.handshakeMs,
        prove: (secret, channel) => prove(configuration, secret, { channel, by: "asks", other: peer }),
      },
      boundToLife(outcome),
    );
  } catch (error) {
    fail(`the own certificate cannot be used: ${(error as Error).message}`);
  }
};

/** What follows the end of a connection that was dialled. */
const dialled = (transport: TransportState, dialer: Dialer): (() => void) => {
  const since = performance.now();
  return () => {
    // With TLS 1.3 a server refuses a client's certificate only after this, and either side may not like what the other
    // says: only a connection that lasted was a success, and the next attempt comes at once.
    if (performance.now() - since > lastingMs) dialer.attempts = 0;
    retry(transport, dialer);
  };
};

/**
 * TLS begins once the other end is there: while a machine starts, everybody tries it again and again, and what TLS needs
 * for a connection costs some five times of what it costs to be refused.
 */
const reach = (transport: TransportState, dialer: Dialer, address: PeerAddress, alone: boolean): void => {
  const { host, distributionPort: port } = address;
  const { reachMs } = transport.limits;
  let why = `${host}:${port} does not answer`;
  const reaching = transport.links.reach(host);
  const socket = connectTcp({ host, port });
  track(transport, socket);
  const deadline = setTimeout(() => {
    why = `${host}:${port} did not answer within ${reachMs} ms`;
    socket.destroy();
  }, reachMs);
  socket.on("error", (error) => {
    why = error.message;
  });
  let goesOn = false;
  dialer.goOn = () => {
    goesOn = true;
    socket.destroy();
  };
  const unreached = (): void => {
    clearTimeout(deadline);
    dialer.goOn = null;
    reaching.failed();
    if (goesOn && !transport.stopping) void dial(transport, dialer);
    else failed(transport, dialer, why);
  };
  socket.once("close", unreached);
  socket.once("connect", () => {
    clearTimeout(deadline);
    dialer.goOn = null;
    socket.off("close", unreached);
    greet(transport, dialer, socket, { reaching, port, alone });
  });
};

interface Greeting {
  readonly reaching: Reaching;
  readonly port: number;
  /** No other link leads there, as has been tried. */
  readonly alone: boolean;
}

/**
 * Others of this process may have reached the other one at the same time, which happens where a handshake takes longer than
 * they wait for each other: with emulated processors at every start. Every link is three frames in two seconds for as long as
 * it lasts. So once the other end has said who is there, the one that was there first is used, and this one is ended unused.
 * Only links that this end has made count: if both ends gave up the other's, there would be none.
 */
const greet = (
  transport: TransportState,
  dialer: Dialer,
  reached: Socket,
  { reaching, port, alone }: Greeting,
): void => {
  const { peer } = dialer;
  const socket = open(transport, peer, reached);
  if (typeof socket === "string") {
    reached.destroy();
    reaching.failed();
    failed(transport, dialer, socket);
    return;
  }
  // From here on it is the other's, which ends it too.
  transport.sockets.delete(reached);
  track(transport, socket);
  let why = "the connection ended before it was authenticated";
  let adopted = false;
  let isSpare = false;
  const { handshakeMs } = transport.limits;
  const within = (late: string): NodeJS.Timeout =>
    setTimeout(() => {
      why = `${late} within ${handshakeMs} ms`;
      socket.destroy();
    }, handshakeMs);
  let deadline = within("no answer");
  socket.on("error", (error) => {
    why = tlsFault(error);
  });
  socket.once("secureConnect", () => {
    clearTimeout(deadline);
    const verdict = judge(transport, socket, peer);
    if (transport.stopping || !verdict.ok) {
      if (!verdict.ok) why = verdict.why;
      socket.destroy();
      return;
    }
    const link = makeLink(transport, socket, peer, true);
    const take = (): void => {
      clearTimeout(deadline);
      adopted = true;
      dialer.made = null;
      transport.sockets.delete(socket);
      reaching.linked(link);
      adopt(transport, socket, peer, "client", link.first, dialled(transport, dialer));
    };
    const introduced = (): void => {
      isSpare = transport.links.beside(link, peer, port) !== null;
      if (isSpare) socket.destroy();
      else take();
    };
    if (alone || !link.shared) {
      take();
      return;
    }
    why = "it did not say which services are there";
    // Signs of life keep the link, and would keep whoever waits for this.
    deadline = within(why);
    transport.sockets.add(socket);
    dialer.made = { link, introduced };
  });
  socket.once("close", () => {
    clearTimeout(deadline);
    if (adopted) return;
    dialer.made = null;
    reaching.failed();
    if (isSpare && !transport.stopping) void dial(transport, dialer);
    else failed(transport, dialer, why);
  });
};
