import { addressOffer } from "../../core/documents/readers/network.ts";
import { hostOffers } from "../../core/documents/readers/placement.ts";
import { storageOffers } from "../../core/documents/readers/storage.ts";
import { supplyOf } from "../../core/documents/supply.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Supply } from "../../model/check/check-supply.ts";
import type { Json } from "../../model/json/json.ts";
import type { Document } from "../../model/json/reader.ts";
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
  const ask = async <Offers>(service: string, kind: Document<Offers>): Promise<Offers | undefined> => {
    try {
      const signal = AbortSignal.timeout(answerTimeoutMs);
      const answer = await peerRequest(configuration, peerName(service), {
        method: "GET",
        path: offersQuestion.path,
        signal,
      });
      const text = await answer.text();
      return answer.status === 200 ? (kind.of(JSON.parse(text) as Json) ?? undefined) : undefined;
    } catch {
      return undefined;
    }
  };
  const [hosts, storage, addresses] = await Promise.all([
    ask("placer", hostOffers),
    ask("storage-manager", storageOffers),
    ask("address-manager", addressOffer),
  ]);
  return supplyOf({ hosts, storage, addresses });
}
