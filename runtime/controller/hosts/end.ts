import { mergeEnds } from "../../../core/presence/group/end.ts";
import type { HostEnd, HostPowerOff } from "../../../model/api.ts";
import type { HostName, PeerName } from "../../../model/cell/identifiers.ts";
import { read as readAs } from "../../../model/contract/schema.ts";
import { hostPowerOff } from "../../../model/contract/values.ts";
import { Fault } from "../../../model/json/reader.ts";
import { parseJson, readBody } from "../../http/http.ts";
import type { PeerRequest } from "../../http/peer-handler.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { askEnds } from "../../presence/ask-ends.ts";
import { listPeers } from "../../transport/peers.ts";
import { Refused } from "./refused.ts";

/**
 * The operator's word that the power of a host is off (decision 36). It is said to all members of the Presence group, after
 * all of them were asked whether anything speaks against it; it stands when one has made it durable, since members take it
 * over from each other. Rejects with `Refused`.
 */
export const answerHostEnd = async (
  configuration: ProcessConfiguration,
  incoming: PeerRequest,
  host: HostName,
): Promise<HostEnd> => {
  const word = incoming.method === "PUT" ? await readWord(incoming) : null;
  if (word === null && incoming.method !== "GET")
    throw new Refused(404, "not-found", `there is no ${incoming.method} of a host's end: GET and PUT`);
  const members = await listPeers(configuration, "presence.");
  const before = await askAll(configuration, members, host, null);
  if (word === null) return before;
  if (before.against !== null) throw new Refused(409, "conflict", before.against);
  const { generation, boot } = word;
  if (before.generation !== generation || before.boot !== boot)
    throw new Refused(
      409,
      "conflict",
      `host ${host} has been in another life since: look at it, and say it anew if its power is off now`,
    );
  const after = await askAll(configuration, members, host, { generation, boot });
  if (after.ended === null || after.ended < boot)
    throw new Refused(409, "conflict", after.against ?? `no member of the Presence group took it: try again`);
  return after;
};

const shape = '{"powerIsOff": true, "generation": <number>, "boot": <number>}';
const longestBody = 1024;

const readWord = async ({ body }: PeerRequest): Promise<HostPowerOff> => {
  const text = await readBody(body, longestBody);
  const json = text.ok ? parseJson(text.value) : text;
  const word = json.ok ? readAs(hostPowerOff, json.value) : json.error;
  if (typeof word !== "string" && !(word instanceof Fault)) return word;
  const why = word instanceof Fault ? `; ${word}` : "";
  throw new Refused(400, "bad-request", `the body is ${shape}, with the numbers that GET of the same path gave${why}`);
};

const askAll = async (
  configuration: ProcessConfiguration,
  members: readonly PeerName[],
  host: HostName,
  end: { readonly generation: number; readonly boot: number } | null,
): Promise<HostEnd> => {
  const answers = await askEnds(configuration, members, host, end);
  if (answers.length === 0)
    throw new Refused(
      502,
      "unreachable",
      members.length === 0
        ? "this installation has no Presence group, which is who tells everybody"
        : `no member of the Presence group answers: ${members.join(", ")}`,
    );
  const { known, against, ended } = mergeEnds(host, answers);
  return { host, generation: known?.generation ?? null, boot: known?.boot ?? null, against, ended };
};
