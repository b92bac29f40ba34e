import type { ServerResponse } from "node:http";
import type { AuditActor } from "../../../model/contract/audit/audit.ts";
import { BackupFault } from "../../backup/frames.ts";
import { keepReturned } from "../../backup/returned-store.ts";
import { sendJson, sendRefusal } from "../../http/http.ts";
import type { PeerRequest } from "../../http/peer-handler.ts";
import type { ProcessConfiguration } from "../../installation.ts";

export interface Returning {
  /** Others know that this process' store was lost or is older. */
  readonly isForked: () => Promise<boolean>;
  /** Ends the process in order; it is started again. */
  readonly restart: () => void;
}

/**
 * `PUT /cells/<cell>/store`: a copy of this controller's store, for one that has lost its own. A store that nobody doubts is
 * never replaced. Answers before the process ends.
 */
export const returnStore = async (
  { directory, controller }: ProcessConfiguration,
  { isForked, restart }: Returning,
  { body, by }: Pick<PeerRequest, "body"> & { readonly by: AuditActor },
  response: ServerResponse,
): Promise<void> => {
  const cellUid = controller?.cellUid ?? "";
  if (!(await isForked())) {
    const message = "nobody says that the store of this cell's controller was lost or is older, so it stays as it is";
    return sendRefusal(response, 409, "store/whole", message);
  }
  try {
    await keepReturned(directory, body, { cellUid, from: "a backup, by the operator's hand", by });
  } catch (error) {
    if (!(error instanceof BackupFault)) throw error;
    return sendRefusal(
      response,
      400,
      "store/unfit",
      `this cannot be the store of this cell's controller: ${error.message}`,
    );
  }
  // Whoever asked may have gone. What is taken comes into its place now: at some later start it would replace a store that counts again.
  if (response.destroyed) return restart();
  response.once("close", restart);
  sendJson(response, 200, { returned: cellUid });
};
