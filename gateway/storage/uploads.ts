import { createHash, randomInt } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { PassThrough, type Readable } from "node:stream";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { isUpload, uploadImage } from "../../model/cell/image-name.ts";
import { json } from "../../model/contract/schema.ts";
import { allows } from "../../model/contract/tenancy/rules.ts";
import type { WhoAmI } from "../../model/contract/tenancy/tenancy.ts";
import {
  type Rest,
  restIn,
  type Upload,
  type UploadPart,
  uploadIdPattern,
} from "../../model/contract/tenancy/volumes/uploads.ts";
import { parseJson } from "../../runtime/http/http.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { userHeader } from "../../runtime/observation/asked-by.ts";
import { pageFor } from "../requests/paging.ts";
import { Counts } from "../requests/places.ts";
import { refused } from "../requests/refused.ts";
import { leaves, serveRoute, withoutBodies } from "../requests/serve.ts";
import { askTenancy, refusalOfTenancy } from "../tenancy/tenants.ts";
import { type FetchMeans, fetchOutside } from "./fetched.ts";
import {
  answerTimeoutMs,
  createImageServers,
  type Failure,
  failed,
  type ServerImage,
  type ServerPart,
  stagedImage,
  type Told,
} from "./image-servers.ts";
import { drained } from "./spread.ts";

/*
 * Bytes of users, for persistent volumes. At a storage server they are an image like those of the operator, taken in, looked at and converted
 * behind the same walls, but of one server alone, under a name that says whose it is, and for a day. Nobody but the cell of the persistent
 * volumes makes anything of them. They are there as a whole or not at all. Of what broke off its server keeps what came, for a while: it alone
 * knows how far that is, and a gateway that starts again asks it.
 */
export interface UploadLimits {
  /** `atServer`: as many of users as one storage server takes. */
  readonly underWay: { readonly inAll: number; readonly ofAccount: number; readonly atServer: number };
  /** With those that are under way. */
  readonly kept: { readonly inAll: number; readonly ofAccount: number };
  /** Of a body that is not there yet: so many octets in each period at least. */
  readonly pace: { readonly least: number; readonly periodMs: number };
  /** Of a whole one: so long, and for each of its octets so much more. */
  readonly lasts: { readonly leastMs: number; readonly octetsPerS: number; readonly mostMs: number };
}
export const uploadLimits: UploadLimits = {
  underWay: { inAll: 12, ofAccount: 2, atServer: 3 },
  kept: { inAll: 64, ofAccount: 4 },
  pace: { least: 16 * 1024, periodMs: 15_000 },
  lasts: { leastMs: 30 * 60_000, octetsPerS: 512 * 1024, mostMs: 6 * 60 * 60_000 },
};
/** Whoever announces little does not hold a place for as long as somebody who has much to send. */
const lastsMs = ({ leastMs, octetsPerS, mostMs }: UploadLimits["lasts"], length: number): number =>
  Math.min(mostMs, leastMs + (length / octetsPerS) * 1000);
export interface UploadMeans extends FetchMeans {
  readonly configuration: ProcessConfiguration;
  readonly isOperator: (authorization: string) => boolean;
  readonly limits?: Partial<UploadLimits>;
}
interface Person {
  /** In names of images. */
  readonly owner: string;
  /** The domain below `ROOT` that his account is in; absent: of the operator. */
  readonly part?: string;
  /** Absent: the operator. */
  readonly user?: string;
}
interface Asked {
  readonly person: Person;
  readonly id: string;
  readonly format: "raw" | "qcow2";
  readonly sha256?: string | undefined;
  /** What comes of it stays for a while where it breaks off, and may be the beginning already. */
  readonly goesOn?: boolean;
}
interface Found {
  readonly server: string;
  readonly image: ServerImage;
}

export function registerUploads(app: FastifyInstance, means: UploadMeans): void {
  const uploads = new Uploads(means);
  const askedBy = async (request: FastifyRequest, verb: string): Promise<Person> => whoAsks(means, request, verb);
  serveRoute(app, "listUploads", async ({ request, query }, reply) =>
    pageFor("listUploads", await uploads.list(await askedBy(request, "cell.read")), query, reply),
  );
  serveRoute(app, "readUpload", async ({ request, parameters }) =>
    uploads.part(await askedBy(request, "cell.change"), idIn(parameters.id)),
  );
  serveRoute(app, "fetchUpload", async ({ request, parameters, body }, reply) => {
    if (body === null) throw refused(400, "bad-request", "a URL is needed");
    const over = leaves(reply);
    const asked = { ...body, person: await askedBy(request, "cell.change"), id: idIn(parameters.id) };
    return uploads.fetch(body.url, asked, over);
  });
  serveRoute(app, "removeUpload", async ({ request, parameters }) => {
    const id = idIn(parameters.id);
    await uploads.remove(await askedBy(request, "cell.change"), id);
    return { removed: id };
  });
  withoutBodies(app, (scope) => {
    serveRoute(scope, "putUpload", async ({ request, parameters, query }) => {
      const asked = { ...query, person: await askedBy(request, "cell.change"), id: idIn(parameters.id) };
      return uploads.take(request.raw, asked);
    });
  });
}

function idIn(id: string): string {
  if (uploadIdPattern.test(id)) return id;
  throw refused(400, "bad-request", "an upload has 32 hexadecimal digits, chosen at random");
}

/** By what the service `tenancy` says, each time anew. Rejects where he may not. */
async function whoAsks(
  { configuration, isOperator }: UploadMeans,
  { headers: { authorization = "" } }: FastifyRequest,
  verb: string,
): Promise<Person> {
  const ownerOf = (account: string) => createHash("sha256").update(account).digest("hex").slice(0, 16);
  if (isOperator(authorization)) return { owner: ownerOf("") };
  const answer = await askTenancy(configuration, {
    method: "GET",
    path: "/whoami",
    headers: { authorization },
    body: null,
  });
  if (answer.status !== 200) throw refusalOfTenancy(answer);
  const read = parseJson(answer.text);
  const { user = null, rules = [] } = ((read.ok ? read.value : null) ?? {}) as unknown as Partial<WhoAmI>;
  // By the operator's credential, which `tenancy` alone knows in some installations.
  if (user === null) return { owner: ownerOf("") };
  if (!allows(rules, verb)) throw refused(403, "forbidden", "your role does not let you change persistent volumes");
  const part = user.account.split("/").slice(0, 2).join("/");
  return { owner: ownerOf(user.account), part, user: `${user.name}@${user.domain}` };
}

class Uploads {
  readonly #at;
  readonly #means: UploadMeans;
  readonly #limits: UploadLimits;
  /** By owner. */
  readonly #underWay = new Counts();
  readonly #names = new Set<string>();
  /** By storage server, and of each part by `SERVER PART`. */
  readonly #atServers = new Counts();

  constructor(means: UploadMeans) {
    this.#at = createImageServers(means.configuration);
    this.#means = means;
    this.#limits = { ...uploadLimits, ...means.limits };
  }

  async list({ owner }: Person): Promise<readonly Upload[]> {
    const its = (await this.#there()).filter(({ image: { name } }) => name.startsWith(uploadImage(owner, "")));
    return its.map(shown);
  }

  async remove({ owner, user }: Person, id: string): Promise<void> {
    const name = uploadImage(owner, id);
    const [whole, parts] = await Promise.all([this.#there(), this.#at.parts(name)]);
    const having = [...whole.filter(({ image }) => image.name === name), ...partsIn(parts)].map(({ server }) => server);
    if (having.length === 0) throw refused(404, "not-found", `there is no upload ${id}`);
    const headers = userOf(user);
    const told = await Promise.all(
      [...new Set(having)].map((server) =>
        this.#at.ask(server, { method: "DELETE", path: `/images/${name}`, headers }, json),
      ),
    );
    const failure = told.filter(failed).find(({ code }) => code !== "image/unknown");
    if (failure !== undefined) throw refusalOf(failure);
  }

  /** What has come of one that broke off. */
  async part({ owner }: Person, id: string): Promise<UploadPart> {
    const name = uploadImage(owner, id);
    if (this.#names.has(name)) throw isUnderWay();
    const told = await this.#at.parts(name);
    // It does not know yet that it broke off.
    if (told.filter(failed).some(({ code }) => code === "image/under-way")) throw isUnderWay();
    const [most] = partsIn(told);
    if (most === undefined)
      throw refused(404, "not-found", `nothing is kept of an upload ${id} that broke off: send it from its beginning`);
    const { format, length, received, digest } = most.part;
    return { id, format, length, offset: received, sha256: digest };
  }

  /** The body of a request. */
  take(body: IncomingMessage, asked: Asked): Promise<Upload> {
    const length = Number(body.headers["content-length"] ?? Number.NaN);
    if (!Number.isSafeInteger(length) || length < 0)
      throw refused(411, "image/length", "an upload announces its length: Content-Length is missing");
    const range = body.headers["content-range"];
    const rest = range === undefined ? { from: 0, length } : restIn(range);
    if (rest === null || rest.length - rest.from !== length)
      throw refused(
        400,
        "bad-request",
        "the `Content-Range` of a rest is `bytes FROM-LAST/LENGTH` up to the end, and its `Content-Length` that of the rest",
      );
    return this.#add({ ...asked, goesOn: true }, async (add) => add(body, rest), body);
  }

  fetch(url: string, asked: Asked, gone: AbortSignal): Promise<Upload> {
    const over = AbortSignal.any([gone, AbortSignal.timeout(this.#limits.lasts.mostMs)]);
    return this.#add(asked, async (add) => {
      const { body, length } = await fetchOutside(url, this.#means, over);
      try {
        return await add(body, { from: 0, length });
      } finally {
        body.destroy();
      }
    });
  }

  async #there(): Promise<readonly Found[]> {
    const lists = await this.#at.lists();
    if (lists.length > 0 && lists.every(failed)) throw refusalOf(lists.filter(failed)[0]);
    return foundIn(lists.flatMap((told) => (failed(told) ? [] : [told])));
  }

  /** With one of the places that there are. @param unread of whom the rest is of no use if nothing is taken */
  async #add(
    { person, ...asked }: Asked,
    work: (add: (body: Readable, rest: Rest) => Promise<Upload>) => Promise<Upload>,
    unread?: IncomingMessage,
  ): Promise<Upload> {
    const { underWay, kept } = this.#limits;
    const { owner } = person;
    const name = uploadImage(owner, asked.id);
    if (this.#names.has(name)) throw isUnderWay();
    if (this.#underWay.all >= underWay.inAll || this.#underWay.of(owner) >= underWay.ofAccount)
      throw refused(
        503,
        "busy",
        `${underWay.ofAccount} uploads of your account, or ${underWay.inAll} in all, are under way already; try again when one is done`,
      );
    this.#names.add(name);
    this.#underWay.add(owner, 1);
    try {
      const [lists, parts] = await Promise.all([this.#at.lists(), asked.goesOn === true ? this.#at.parts(name) : []]);
      const servers = lists.flatMap((told) => (failed(told) ? [] : [told]));
      if (servers.length === 0) throw refusalOf(lists.filter(failed)[0]);
      const there = foundIn(servers).filter(({ image }) => isUpload(image.name));
      const same = there.find(({ image }) => image.name === name);
      if (same !== undefined && same.image.digest === asked.sha256) {
        unread?.resume();
        return shown(same);
      }
      const its = there.filter(({ image }) => image.name !== name && image.name.startsWith(uploadImage(owner, "")));
      if (its.length + this.#underWay.of(owner) > kept.ofAccount)
        throw refused(
          409,
          "conflict",
          `${kept.ofAccount} uploads of your account are there or under way, which is as many as may: each goes a day after it came, or as its volume is made, or by DELETE /uploads/<id>`,
        );
      if (there.length + this.#underWay.all > kept.inAll)
        throw refused(503, "busy", "too many uploads wait for their volumes");
      // The one that has it says whether it is the same: elsewhere it would be there twice, and which one a volume is made of, chance.
      const having = same ?? partsIn(parts)[0];
      const possible = having === undefined ? servers.map(({ server }) => server) : [having.server];
      const { server, leave } = this.#placeAt(possible, person);
      const part = partsIn(parts).find((each) => each.server === server)?.part;
      return await work(async (body, rest) => {
        // A server of a version before would take the rest for the whole.
        if (rest.from !== 0 && rest.from !== part?.received) throw isOtherPart();
        return this.#bring({ ...asked, person, name, server }, body, rest);
      }).finally(leave);
    } finally {
      this.#names.delete(name);
      this.#underWay.add(owner, -1);
    }
  }

  /**
   * At the server with the fewest under way, by chance among these. One that has some of a part of the installation takes more of it only
   * while it has as many places left for others: so nobody's slow senders, however many accounts they have, keep all others from it.
   */
  #placeAt(servers: readonly string[], { part }: Person): { readonly server: string; readonly leave: () => void } {
    const { atServer } = this.#limits.underWay;
    const free = (server: string): number => atServer - this.#atServers.of(server);
    const own = (server: string): number => (part === undefined ? 0 : this.#atServers.of(`${server} ${part}`));
    const open = servers.filter((server) => part === undefined || (free(server) > 0 && own(server) < free(server)));
    const most = Math.max(...open.map(free));
    const best = open.filter((server) => free(server) === most);
    const server = best[best.length === 0 ? 0 : randomInt(best.length)];
    if (server === undefined)
      throw refused(
        503,
        "busy",
        "each storage server takes as many uploads of your domain as it has places left for others, and these are taken; try again when one is done",
      );
    const count = (change: 1 | -1): void => {
      this.#atServers.add(server, change);
      if (part !== undefined) this.#atServers.add(`${server} ${part}`, change);
    };
    count(1);
    return { server, leave: () => count(-1) };
  }

  /** To one server, which takes them as a whole or not at all. */
  async #bring(
    { person, name, server, format, sha256, goesOn }: Asked & { readonly name: string; readonly server: string },
    body: Readable,
    { from, length }: Rest,
  ): Promise<Upload> {
    const user = userOf(person.user);
    const way = new PassThrough();
    way.on("error", () => undefined);
    // `keep-alive`: an answer that comes before the body's end must not be lost with a connection closed behind it.
    const headers = { ...user, "content-length": length - from, connection: "keep-alive" };
    const path = `/images/${name}?format=${format}${goesOn === true ? "&keep=true" : ""}${from > 0 ? `&from=${from}&of=${length}` : ""}`;
    const answer = this.#at.ask(server, { method: "PUT", path, body: way, headers }, stagedImage).then((told) => {
      way.destroy();
      return told;
    });
    try {
      const { pace, lasts } = this.#limits;
      const carried = carry(body, way, { pace, lastsMs: lastsMs(lasts, length - from) });
      // A refusal does not wait for a sender that is silent meanwhile.
      await Promise.race([carried, answer]);
      if (way.destroyed) carried.catch(() => undefined);
      else await carried;
    } finally {
      // A server that waits for the rest learns that there is none.
      if (!way.writableEnded) way.destroy();
    }
    const staged = await answer;
    if (failed(staged)) throw refusalOf(staged);
    const { id, digest, sizeMiB } = staged.value;
    const discard = (): Promise<unknown> =>
      this.#at.ask(
        server,
        { method: "DELETE", path: `/images/${name}?staged=${id}`, headers: user, timeoutMs: answerTimeoutMs },
        json,
      );
    if (sha256 !== undefined && digest !== sha256) {
      if (id !== null) await discard();
      throw refused(
        400,
        "upload/sha256",
        `the bytes that came have the SHA-256 ${digest}, and not ${sha256}: nothing of them is kept`,
      );
    }
    if (id !== null) {
      const accepted = await this.#at.ask(
        server,
        { method: "POST", path: `/images/${name}?staged=${id}`, headers: user },
        json,
      );
      if (failed(accepted)) {
        await discard();
        throw refusalOf(accepted);
      }
    }
    return shown({ image: { name, digest, sizeMiB } });
  }
}

const foundIn = (
  servers: readonly { readonly server: string; readonly value: readonly ServerImage[] }[],
): readonly Found[] => servers.flatMap(({ server, value }) => value.map((image) => ({ server, image })));
/** The longest first. */
const partsIn = (told: readonly Told<ServerPart>[]) =>
  told
    .flatMap((each) => (failed(each) ? [] : [{ server: each.server, part: each.value }]))
    .sort((one, other) => other.part.received - one.part.received);
const userOf = (user: string | undefined): Readonly<Record<string, string>> =>
  user === undefined ? {} : { [userHeader]: user };
const shown = ({ image: { name, digest, sizeMiB } }: { readonly image: Omit<ServerImage, "provided"> }): Upload => ({
  id: name.slice(-32),
  sha256: digest,
  sizeMiB,
  image: name,
});
const isOtherPart = () =>
  refused(
    409,
    "image/offset",
    "no storage server says that it keeps as much of this upload as the rest is behind; ask how far it is",
  );
const isUnderWay = () => refused(409, "image/under-way", "this upload is under way already");
const refusalOf = (failure: Failure | undefined) =>
  failure === undefined
    ? refused(503, "image/unreachable", "no storage server is reachable")
    : refused(failure.status, failure.code, failure.message.replace(/image "upload-[0-9a-f-]+"/, "the upload"));

/** As fast as they are taken. Rejects where the sender breaks off or is slower than the pace; whoever takes no more ends it without an error. */
async function carry(
  body: Readable,
  way: PassThrough,
  { pace: { least, periodMs }, lastsMs: most }: Pick<UploadLimits, "pace"> & { readonly lastsMs: number },
): Promise<void> {
  let came = 0;
  let before = 0;
  let isRead = true;
  const late = setTimeout(() => body.destroy(new Error(`it lasts longer than ${Math.round(most / 1000)} s`)), most);
  const timer = setInterval(() => {
    if (isRead && came - before < least)
      body.destroy(new Error(`it sends slower than ${least} octets in ${periodMs} ms`));
    before = came;
  }, periodMs);
  try {
    for await (const chunk of body.iterator({ destroyOnReturn: false })) {
      came += (chunk as Buffer).length;
      if (way.destroyed) break;
      isRead = false;
      if (!way.write(chunk)) await drained(way);
      isRead = true;
    }
  } catch (error) {
    throw refused(400, "upload/broken", `the bytes ended before their announced end: ${(error as Error).message}`);
  } finally {
    clearTimeout(late);
    clearInterval(timer);
  }
  body.resume();
  if (!way.destroyed) way.end();
}
