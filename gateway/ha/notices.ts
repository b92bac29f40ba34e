import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { BlockList, isIP } from "node:net";
import { isObject } from "../../core/outbox.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { SignedNotice } from "../../runtime/ha/notices.ts";
import { keepConnection } from "../../runtime/http/https.ts";
import { network, type ProcessConfiguration } from "../../runtime/installation.ts";
import { askWaiting, whileThere } from "../requests/waited-on.ts";
import { byNameServers, type Resolve } from "./names-outside.ts";

/*
 * Carries notices of alerts outside, one after the other. Where a URL leads is looked at each time, and what was looked at is what is spoken to:
 * a name that means an address of the installation, of this machine, or of nobody in particular is refused, whoever made it mean that.
 * A redirect is an answer like any other that is not 2xx.
 */
const haManager = peerName("ha-manager");
const postMs = 10_000;
const noneMs = 30_000;

/** Addresses in any of the networks, each written as `a.b.c.d/n`. */
export function blockListOf(networks: readonly string[], family: "ipv4" | "ipv6"): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", length = family === "ipv4" ? "32" : "128"] = network.split("/");
    list.addSubnet(address, Number(length), family);
  }
  return list;
}
const nobodys = ["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4"];
// What another protocol's address is written into, so that the check of that one would be passed by.
const writtenIn = ["::ffff:0:0/96", "64:ff9b::/96", "2002::/16"];
const inside = {
  ipv4: blockListOf([network.underlay, ...nobodys], "ipv4"),
  ipv6: blockListOf(["::/127", "fe80::/10", "ff00::/8", ...writtenIn], "ipv6"),
} as const;

/** Whether an address may be posted to. */
export const isOutside = (address: string): boolean => {
  const family = isIP(address);
  if (family === 0) return false;
  return family === 4 ? !inside.ipv4.check(address) : !inside.ipv6.check(address, "ipv6");
};

/** An address of that name that may be spoken to. Rejects with a sentence where there is none. @param what of what kind it is: "a webhook" */
export const outsideAddress = async (
  name: string,
  what: string,
  allows: typeof isOutside = isOutside,
  resolve: Resolve = byNameServers(),
): Promise<string> => {
  const found = isIP(name) !== 0 ? [{ address: name }] : await resolve(name);
  const refused = found.find(({ address }) => !allows(address));
  if (refused !== undefined)
    throw new Error(
      `${name} leads to ${refused.address}, which is an address of the installation, of the gateway's own machine, or nobody's: ${what} is outside of them`,
    );
  const [first] = found;
  if (first === undefined) throw new Error(`${name} has no address`);
  return first.address;
};
export const outsideOf = (url: URL, allows: typeof isOutside = isOutside, resolve?: Resolve): Promise<string> =>
  outsideAddress(url.hostname.replace(/^\[|\]$/g, ""), "a webhook", allows, resolve);

/** A request of what a URL leads to, at the address that was looked at, by the name that was said. */
export const requestAt = (
  address: string,
  url: URL,
  { headers, ...options }: { readonly method: string; readonly headers: object; readonly signal: AbortSignal },
  answered: (response: IncomingMessage) => void,
): ClientRequest =>
  (url.protocol === "https:" ? httpsRequest : httpRequest)(
    {
      host: address,
      port: url.port === "" ? undefined : Number(url.port),
      path: `${url.pathname}${url.search}`,
      // By the name that was said, whatever address it has now.
      ...(isIP(url.hostname) === 0 ? { servername: url.hostname } : {}),
      agent: false,
      ...options,
      headers: { host: url.host, ...headers, connection: "close" },
    },
    answered,
  );

/** Null: it was taken; else why not, a sentence. */
export const postNotice = async (
  { url: text, body, signature, number }: SignedNotice,
  allows: typeof isOutside = isOutside,
  resolve?: Resolve,
): Promise<string | null> => {
  try {
    const url = new URL(text);
    const host = await outsideOf(url, allows, resolve);
    const status = await new Promise<number>((resolve, reject) => {
      const headers = {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
        "cells-signature": signature,
        "cells-notice": `${number}`,
      };
      const asked = { method: "POST", headers, signal: AbortSignal.timeout(postMs) };
      const request = requestAt(host, url, asked, (response) => {
        response.destroy();
        resolve(response.statusCode ?? 0);
      });
      request.once("error", reject);
      request.end(body);
    });
    return status >= 200 && status < 300 ? null : `${url.host} answered with ${status}, and only 2xx is an answer`;
  } catch (error) {
    return (error as Error).name === "TimeoutError"
      ? `no answer within ${postMs / 1000} s`
      : (error as Error).message.slice(0, 300);
  }
};

/** As long as the process lives. @returns what ends that */
export const followNotices = (
  configuration: ProcessConfiguration,
  allows: typeof isOutside = isOutside,
): (() => void) =>
  followDue(configuration, haManager, "/notice", (due) => postNotice(due as unknown as SignedNotice, allows));

interface Due {
  readonly number: number;
}
/**
 * Asks who has something to be told outside for the next of it, has it carried, and says what came of it, as long as the process lives.
 * @param carry null: it was taken; else why not, a sentence
 * @returns what ends that
 */
export const followDue = (
  configuration: ProcessConfiguration,
  at: PeerName,
  path: string,
  carry: (due: Due) => Promise<string | null>,
): (() => void) => {
  const over = new AbortController();
  const connection = keepConnection(configuration, at);
  const ask = askWaiting(configuration, connection, over.signal);
  const next = async (): Promise<void> => {
    const due = await ask("GET", path);
    if (!isObject(due) || typeof due.number !== "number") return;
    const reason = await carry(due as unknown as Due);
    await ask("POST", path, { number: due.number, taken: reason === null, reason });
  };
  void whileThere(configuration, at, { over: over.signal, noneMs }, next);
  return () => {
    over.abort();
    connection.agent.destroy();
  };
};
