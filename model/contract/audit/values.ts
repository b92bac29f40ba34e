import { integer, list, oneOf, optional, record, text } from "../schema.ts";
import {
  type AuditHead,
  type AuditPart,
  type AuditRecord,
  type AuditSource,
  type AuditView,
  outcomes,
  type ServiceAuditRecord,
} from "./audit.ts";

/* What answers about the audit carry: a schema for each interface of `audit.ts` beside this. */

const recordFields = {
  who: text(),
  account: optional(text()),
  by: optional(text()),
  door: text(),
  source: optional(text()),
  via: optional(text()),
  verb: text(),
  target: text(),
  what: optional(text()),
  outcome: oneOf(...outcomes),
  why: optional(text()),
  before: optional(integer()),
  after: optional(integer()),
  within: optional(list(text())),
  leftOut: optional(integer()),
  n: integer(1),
  behind: optional(integer(0)),
  time: text(),
  previous: text(),
  hash: text(),
};
const chainFields = { first: integer(1), next: integer(1), hash: text() };
const headFields = {
  ...chainFields,
  refusals: optional(record<Omit<AuditHead, "refusals">>(chainFields, "AuditRefusals")),
};
export const auditHead = record<AuditHead>(headFields);
export const auditPart = record<AuditPart>({
  ...headFields,
  records: list(record<AuditRecord>(recordFields, "AuditRecord")),
});
export const auditView = record<AuditView>({
  sources: list(record<AuditSource>({ ...headFields, service: text() })),
  records: list(record<ServiceAuditRecord>({ ...recordFields, service: text() }, "ServiceAuditRecord")),
  silent: list(text()),
});
