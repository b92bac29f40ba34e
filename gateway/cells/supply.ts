import { supplyOf } from "../../core/documents/supply.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Supply } from "../../model/check/check-supply.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { offersQuestion } from "../../runtime/process/asked.ts";

/** A service that says nothing for longer leaves its part unknown; the new cell's controller checks that then. */
const answerTimeoutMs = 1_500;

/**
 * What the installation could ever give, asked of those who know it: for the first model of a cell, which has no
 * controller that would have been told.
 */
export async function installationSupply(configuration: ProcessConfiguration): Promise<Supply> {
  const ask = async <Offers>(service: string): Promise<Offers | undefined> => {
    try {
      const signal = AbortSignal.timeout(answerTimeoutMs);
      const answer = await peerRequest(configuration, peerName(service), {
        method: "GET",
        path: offersQuestion.path,
        signal,
      });
      const text = await answer.text();
      return answer.status === 200 ? (JSON.parse(text) as Offers) : undefined;
    } catch {
      return undefined;
    }
  };
  type Said = Parameters<typeof supplyOf>[0];
  const [hosts, storage, addresses] = await Promise.all([
    ask<NonNullable<Said["hosts"]>>("placer"),
    ask<NonNullable<Said["storage"]>>("storage-manager"),
    ask<NonNullable<Said["addresses"]>>("address-manager"),
  ]);
  return supplyOf({ hosts, storage, addresses });
}
