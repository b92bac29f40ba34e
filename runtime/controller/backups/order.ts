import type { ServerResponse } from "node:http";
import { rootCell } from "../../../core/documents/cells.ts";
import { peerName } from "../../../model/cell/identifiers.ts";
import { isAuthorized } from "../../http/bearer.ts";
import { readBody, sendRefusal } from "../../http/http.ts";
import { peerRequest } from "../../http/https.ts";
import type { PeerRequest } from "../../http/peer-handler.ts";
import type { ProcessConfiguration } from "../../installation.ts";

const longestBody = 4096;

/**
 * `POST /cells/root/backup`, body {recipient}: an order for a backup of the management (`runtime/backup/order.ts`). The root
 * cell's controller alone knows the operator's credential, and is alone let ask the authority to sign one.
 */
export const orderBackup = async (
  configuration: ProcessConfiguration,
  { headers, body }: PeerRequest,
  response: ServerResponse,
): Promise<void> => {
  const { controller } = configuration;
  if (controller?.cell !== rootCell || controller.root === undefined)
    return sendRefusal(
      response,
      404,
      "not-found",
      "the management is backed up through the root cell, and this is another",
    );
  if (!isAuthorized(headers.authorization, controller.credentialHashes))
    return sendRefusal(response, 403, "forbidden", "a backup of the management is the operator's alone");
  const text = await readBody(body, longestBody);
  const asked = { method: "POST", path: "/backup-order", body: text.ok ? text.value : "" };
  const answer = await peerRequest(configuration, peerName("authority"), asked).catch((error: Error) => error);
  if (answer instanceof Error)
    return sendRefusal(response, 502, "unreachable", `the authority does not answer: ${answer.message}`);
  response.writeHead(answer.status, { "content-type": "application/json" });
  response.end(await answer.text());
};
