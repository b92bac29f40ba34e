import { type Cause, said } from "../../../model/cause/cause.ts";
import { sentenceOf } from "../../../model/cause/sentence.ts";
import { type ElementPath, type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { Phase, Progress } from "../../documents/vocabulary.ts";
import type { Standing } from "../records.ts";
import type { ControllerState } from "../state.ts";

export const standing = (phase: Phase, ...causes: readonly Cause[]): Standing => ({ phase, causes });

/** What another service says of something, in its own words. */
export const asSaid = (by: PeerName, { phase, reason }: Progress): Standing => ({ phase, causes: said(by, reason) });

/** Whoever may enable it again is told by `cells account list`. */
export const accountIsOff: Cause = {
  kind: "said",
  by: peerName("cell-manager"),
  sentence:
    "the account that the cell is of, or a domain above it, is disabled: its machines are off until it is enabled",
};

/** With what is behind it, if anything is known of that. */
export const because = (causes: readonly Cause[]): { readonly because?: readonly Cause[] } =>
  causes.length === 0 ? {} : { because: causes };

/** Said of a document that its receiver has not answered. */
export const unanswered = ({ reachable }: ControllerState, service: PeerName): Standing =>
  standing("waiting", { kind: reachable.get(service) === false ? "service-unreachable" : "service-asked", service });

/** What a service says of a document of this controller's. */
export const answerOf = (state: ControllerState, service: PeerName, actual: Progress | undefined): Standing =>
  actual === undefined ? unanswered(state, service) : asSaid(service, actual);

/** For people in words, and as data, as far as there is anything to say. */
export const told = (
  causes: readonly Cause[],
): { readonly reason: string | null; readonly causes?: readonly Cause[] } =>
  causes.length === 0 ? { reason: null } : { reason: sentenceOf(causes), causes };

/** An element as commands name it: a child cell has its whole name in front. */
export const target = ({ options }: ControllerState, path: ElementPath): string =>
  [options.cell, ...path.split("/").slice(1)].join("/");
