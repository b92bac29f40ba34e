import { may } from "../route.ts";
import { askedTime, integer, oneOf, text } from "../schema.ts";
import { mostAnswered, outcomes, rings } from "./audit.ts";
import { lengths } from "./chain.ts";

/** Which records of an audit are asked for. */
export const audited = {
  since: may(askedTime, "Without what happened before this time, ISO 8601."),
  until: may(askedTime, "Without what happened from this time on, ISO 8601."),
  who: may(text(lengths.who), "What this one asked for, as records name him: `ann@ROOT/acme`."),
  verb: may(text(lengths.verb), "Of this request alone, by its name here: `putModel`."),
  outcome: may(oneOf(...outcomes), "What was done, or what was refused."),
  target: may(text(lengths.target), "About this, and what is below it."),
  after: may(
    integer(0),
    "Those that come after this number, oldest first, instead of the newest. For whoever sees all, one of the chain of changes if `chain` is absent.",
  ),
  chain: may(
    oneOf(...rings),
    "Of this chain of a service alone, for whoever sees all. Absent: of both, with `after` of that of changes.",
  ),
  limit: may(integer(1, mostAnswered), "At most so many (200 if absent)."),
};
