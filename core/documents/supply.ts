import type { Supply } from "../../model/check/check-supply.ts";
import type { AddressOffer } from "../../model/check/network/check-addresses.ts";
import type { Json } from "../../model/json/json.ts";
import { isObject } from "../outbox.ts";
import type { HostOffers, StorageOffers } from "./vocabulary.ts";

/** The request that a Placer, a Storage Manager or an IP Address Manager answers with what it could ever give. */
export const offersRequest: Json = { kind: "offers" };
export const isOffersRequest = (request: Json): boolean => isObject(request) && request.kind === "offers";

/** What the three said, as far as they were heard, as one; what is not known as a whole is null. */
export function supplyOf(said: {
  readonly hosts: HostOffers | undefined;
  readonly storage: StorageOffers | undefined;
  readonly addresses: AddressOffer | undefined;
}): Supply {
  const { hosts, storage, addresses } = said;
  return {
    hosts: hosts?.complete === true ? hosts.hosts : null,
    storage: storage?.complete === true ? storage : null,
    addresses: addresses ?? null,
    ...(hosts?.complete === true && hosts.marks !== undefined ? { marks: hosts.marks } : {}),
    ...(hosts?.offerings === undefined ? {} : { offerings: hosts.offerings }),
  };
}
