import { type EndAnswer, readEndAnswer } from "../../core/presence/group/end.ts";
import type { HostName, PeerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { peerRequest } from "../http/https.ts";
import type { ProcessConfiguration } from "../installation.ts";

const patienceMs = 8000;

/**
 * Asks members of the Presence group whether anything speaks against the certain end of a host (`end` null), or says it to them: `host-end.ts`
 * is the other side. @returns what those answer that do, which one on the very host that is gone does not
 */
export const askEnds = async (
  configuration: ProcessConfiguration,
  members: readonly PeerName[],
  host: HostName,
  end: { readonly generation: number; readonly boot: number } | null,
): Promise<readonly EndAnswer[]> =>
  (await Promise.all(members.map((member) => askMember(configuration, member, host, end)))).filter(
    (answer) => answer !== null,
  );

const askMember = async (
  configuration: ProcessConfiguration,
  member: PeerName,
  host: HostName,
  end: { readonly generation: number; readonly boot: number } | null,
): Promise<EndAnswer | null> => {
  try {
    const answer = await peerRequest(configuration, member, {
      method: end === null ? "GET" : "PUT",
      path: `/hosts/${host}/end`,
      idleTimeoutMs: patienceMs,
      ...(end === null ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(end) }),
    });
    const text = await answer.text();
    return answer.status === 200 ? readEndAnswer(JSON.parse(text) as Json) : null;
  } catch {
    return null;
  }
};
