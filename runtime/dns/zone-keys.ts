import { text } from "node:stream/consumers";
import { mostKeys, type ZoneKeyGiven, type ZoneKeyTaken, type ZoneState } from "../../core/dns/zone-keys.ts";
import { mayAsk } from "../../core/documents/permissions.ts";
import { toJson } from "../../core/outbox.ts";
import { type ZoneKeyWord, type ZoneReport, zoneKeyWord } from "../../model/contract/operator/zone.ts";
import { read } from "../../model/contract/schema.ts";
import { Fault } from "../../model/json/reader.ts";
import { zoneKeyName } from "../../model/limits.ts";
import { sendJson, sendRefusal } from "../http/http.ts";
import { openSeal, type Seal } from "../identity/own/seal.ts";
import { askedBy } from "../observation/asked-by.ts";
import type { Asked, Further } from "../process/asked.ts";
import type { TsigKey } from "./tsig.ts";

/*
 * Keys of transfers at the DNS Manager's edge. A secret comes through the gateway once, is sealed with a key of this process' own
 * directory before the service has it, and is opened for the moment in which a message is signed or looked at.
 */
const path = /^\/zone\/keys\/([^/]+)$/;
const longestBody = 1024;

export const openZoneSeal = (directory: string): Promise<Seal> => openSeal(directory, "zone.key", "zone-key");

/** The one key that counts now: that which the root cell names, if its secret is here. */
export interface ZoneKeys {
  /** Null: none counts. "missing": one does, and its secret is not here. */
  current(): Promise<TsigKey | "missing" | null>;
}
export const zoneKeysOf = (request: (request: { zone: "state" }) => Promise<unknown>, seal: Seal): ZoneKeys => ({
  current: async () => {
    const { declared, keys } = (await request({ zone: "state" })) as ZoneState;
    if (declared === null) return null;
    const sealed = keys.find(({ name }) => name === declared)?.sealed;
    const secret = sealed === undefined ? null : seal.open(sealed);
    return secret === null ? "missing" : { name: declared, secret: Buffer.from(secret, "base64") };
  },
});

/** `GET /zone`, `PUT /zone/keys/<name>` and `DELETE` of it. Nothing shows a secret again. */
export const zoneQuestions = (seal: Seal): Further => ({
  answers: (url) => url === "/zone" || path.test(url),
  handler: (asked: Asked) => async (incoming, response) => {
    const { method, url, peer } = incoming;
    const { service } = asked;
    const json = (status: number, content: object): void => sendJson(response, status, content);
    const refuse = (status: number, code: string, message: string): void =>
      sendRefusal(response, status, code, message);
    if (!mayAsk("dns-manager", peer, method, url))
      return refuse(403, "forbidden", `only the gateway may ask about zones, and this is "${peer}"`);
    if (service === null) return refuse(503, "busy", "the service is starting: ask again in a moment");
    const name = path.exec(url)?.[1];
    if (name === undefined) return json(200, reportOf((await service.request({ zone: "state" })) as never, seal));
    if (!zoneKeyName.test(name))
      return refuse(400, "bad-request", `"${name}" is no name of a key: small letters, digits and hyphens, 63 at most`);
    let sealed: string | null = null;
    if (method === "PUT") {
      const sent = await text(incoming.body).catch(() => "");
      const word = sent.length > longestBody ? null : readWord(sent);
      if (word === null) return refuse(400, "bad-request", "the body is {secret}, from 32 to 64 bytes in base64");
      sealed = seal.seal(word.secret);
    }
    const given: ZoneKeyGiven = { zone: "key", name, sealed };
    const by = askedBy(incoming, { verb: sealed === null ? "forgetZoneKey" : "giveZoneKey", target: name });
    const taken = (await service.request(toJson(given), by)) as unknown as ZoneKeyTaken;
    if (taken.full)
      return refuse(409, "zone/keys", `there are ${mostKeys} keys already: remove one that nobody uses any more`);
    json(200, { name, wasThere: taken.wasThere, declared: taken.declared });
  },
});

const readWord = (sent: string): ZoneKeyWord | null => {
  try {
    const said = read(zoneKeyWord, JSON.parse(sent));
    return said instanceof Fault ? null : said;
  } catch {
    return null;
  }
};

const reportOf = ({ number, declared, keys }: ZoneState, seal: Seal): ZoneReport => ({
  zones: number?.zones ?? [],
  serial: number?.serial ?? null,
  secondaries: number?.secondaries ?? [],
  key: declared,
  keys: keys.map(({ name, sealed }) => ({ name, ...(seal.open(sealed) === null ? { lost: true as const } : {}) })),
});
