import { document, list, nullable, object, optional, secret, text, wallMs } from "../../../model/json/reader.ts";
import type { Entrance } from "../cells.ts";
import type { ActualEnrolment, ActualPin, DesiredEnrolment, IdentityGrant } from "../identity.ts";
import { address, cellText, peerText, port, progressFields, sha256, uidText, word } from "./values.ts";

/** Readers of what is said between controllers, hosts and the authority. */

const mostOfGrant = 16;

const grant = object<IdentityGrant>({
  name: peerText,
  role: word,
  addresses: list(address, mostOfGrant),
  ports: optional(object({ distribution: port, http: port })),
  cellUid: optional(uidText),
});
export const desiredEnrolment = document(
  object<DesiredEnrolment>({
    hash: secret(sha256),
    cell: cellText,
    grants: list(grant, mostOfGrant),
    endsAtMs: wallMs,
  }),
);
export const actualEnrolment = document(object<ActualEnrolment>({ ...progressFields, key: nullable(sha256) }));
export const actualPin = document(object<ActualPin>({ key: sha256 }));
export const entrance = document(object<Entrance>({ address, zone: optional(text(253)) }));
