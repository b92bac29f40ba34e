import { type Changed, type FailedElement, invalidSpecification, type Refusal } from "../../../model/api.ts";
import type { Bundle, Cell, Element } from "../../../model/cell/cell.ts";
import { removeAt, replaceAt } from "../../../model/cell/document.ts";
import type { ElementPath, PeerName } from "../../../model/cell/identifiers.ts";
import { shortages, type Usage } from "../../../model/check/check-limits.ts";
import { unknownSupply } from "../../../model/check/check-supply.ts";
import { headOf } from "../../../model/contract/audit/rings.ts";
import { closestName } from "../../../model/diagnostics/closest-name.ts";
import type { Diagnostic } from "../../../model/diagnostics/diagnostic.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { type PatchFault, patchedInSlices, readPatch } from "../../../model/json/patch.ts";
import { destroysDataRefusal, unnamedLosses } from "../../../model/plan/data-loss.ts";
import { isEmptyPlan } from "../../../model/plan/plan.ts";
import type { Plan } from "../../../model/plan/plan-types.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import type { InSlices } from "../../../model/slices.ts";
import { checkDocumentInSlices, readSpecificationInSlices } from "../../../model/specification/specification.ts";
import { isObject, sameJson, toJson } from "../../outbox.ts";
import { beginEnding, hasChildren, whyClosed } from "../cells/life.ts";
import { inSlices, lookedAt } from "../changes/slices.ts";
import { told } from "../changes/standing.ts";
import { summary } from "../explain/summary.ts";
import { whyElement } from "../explain/why-element.ts";
import { whyPart } from "../explain/why-part.ts";
import { forkReason } from "../histories/fork.ts";
import { machinesOf } from "../histories/machines.ts";
import { type Asked, type Asker, auditDone, auditRefused } from "../model/audited.ts";
import { type JoiningHost, withJoining } from "../model/hosts/joining.ts";
import { executePlan, planFor, refusalsOf, wrongInPlan } from "../model/model-change.ts";
import { childrenNamed } from "../model/owners.ts";
import { limitFaults, roomNeeded } from "../model/quota.ts";
import { replacesGrown, withGrown, withPlaceFor, withPlacesFor } from "../model/root-model.ts";
import { keepText, sourceOf, textOf, versionsOf } from "../model/versions/versions.ts";
import { whyStaysOpen } from "../network/entrance.ts";
import { withoutBelow } from "../services/dedications.ts";
import { holdingsFor } from "../services/pools/listed.ts";
import { type ControllerState, offersOf, recordAt } from "../state.ts";
import { upgradedBy } from "../upgrade/upgrade.ts";
import { offeringsSaid } from "../vm/places/offering.ts";
import { dropHeld, heldBelow, nothingHeld, planOfDropping } from "../volumes/drop-held.ts";
import { withSizes } from "../volumes/growth.ts";
import { whyEnds } from "./connection-ends.ts";
import { addCredential, credentialsOf, openedBy, revokeCredential } from "./credentials/credentials.ts";
import { type Lacks, whyNotStrict } from "./credentials/strict.ts";
import { saidWithin, shownWithin, type Within, whyNotWithin, whyPlanNotWithin } from "./credentials/within.ts";
import { type ElementsRequest, elementsPage } from "./elements.ts";
import { type ForceStopRequest, forceStop } from "./force-stop.ts";
import { foretold } from "./foretold.ts";
import { type MoveRequest, move } from "./move.ts";
import { answeredBefore, keepAnswer, type Once } from "./once.ts";
import { type RecordRequest, recorded } from "./recorded.ts";
import { execTarget, leavingAt, prefixesOf, recordOf, type Wanted } from "./session-requests.ts";
import { shownAt, shownWithState } from "./shown.ts";
import type { TicketRequest } from "./tickets.ts";

/**
 * What a controller's edge may ask. `path` counts from the document, without a leading slash; "" is the whole.
 */
export type ControllerRequest =
  | {
      readonly method: "GET" | "PUT" | "PATCH" | "DELETE";
      readonly path: string;
      /** Of PUT at the root cell, in place of a specification: a machine that is let in. */
      readonly joining?: JoiningHost;
      /** Of PATCH, as it came: what is wrong with it, is told with its place. */
      readonly patch?: Json;
      readonly bundle?: Bundle;
      readonly json?: Json;
      readonly dryRun?: boolean;
      /** Version that the model must have. */
      readonly ifMatch?: number;
      /** Paths of volumes whose data may be lost, or several with commas in between. */
      readonly allowDestroy?: readonly string[];
      /** Of DELETE: what has left the model there and is held, in place of what is in it. */
      readonly dropHeld?: boolean;
      readonly state?: boolean;
      /** Who changes it; absent: who made the cell gives it its first model. */
      readonly by?: Asker;
      readonly once?: Once;
      /** Whoever asks has this part of the cell alone; absent: all of it. */
      readonly within?: Within;
      readonly lacks?: Lacks;
    }
  | { readonly method: "SUMMARY" }
  /** How far the records go of who changed the cell. */
  | { readonly method: "AUDIT" }
  /** The members of the Presence group from now on. Of the edge itself, and answered before this. */
  | { readonly method: "PRESENCE"; readonly members: readonly PeerName[] }
  | { readonly method: "CREDENTIALS" }
  | { readonly method: "VERSIONS" }
  /** The text of a version; absent: the newest. */
  | { readonly method: "SOURCE"; readonly version?: number }
  | ElementsRequest
  | {
      readonly method: "CREDENTIAL-ADD";
      readonly id: string;
      readonly hash: string;
      readonly note: string;
      readonly within?: Within;
      readonly by?: Asker;
    }
  | { readonly method: "CREDENTIAL-REVOKE"; readonly id: string; readonly by?: Asker; readonly once?: Once }
  /** Is that the hash of a credential of this cell? `true`: of all of it; `{within}`: of that part alone; `false`: it is none. */
  | { readonly method: "CREDENTIAL-KNOWN"; readonly hash: string }
  /** Answered elsewhere, since it may have to wait: `tickets.ts`. */
  | TicketRequest
  | { readonly method: "WHY-ELEMENT"; readonly path: string; readonly within?: Within }
  | { readonly method: "WHY-ENDS"; readonly from: string; readonly to: string }
  | (Wanted & { readonly method: "EXEC-TARGET"; readonly vm: string })
  | (MoveRequest & { readonly by?: Asker; readonly once?: Once })
  | (ForceStopRequest & { readonly by?: Asker; readonly once?: Once })
  | RecordRequest
  /** Which child cells of the root cell have this name, and whose they are. */
  | { readonly method: "CHILDREN-NAMED"; readonly name: string }
  /** Names of machines, for whoever is not to tell them. */
  | { readonly method: "MACHINES" }
  /** Whole hosts, as this account may know of them; null: the operator. At the root controller. */
  | { readonly method: "HOLDINGS"; readonly account: string | null };
/** `status` is that of HTTP; `version` the model's after the request. */
export interface ControllerResponse {
  readonly status: number;
  readonly body: Json;
  readonly version: number;
  /** It was done before, and this is the answer of then. */
  readonly replayed?: true;
  /** It was refused only for want of room, and so much would have to be granted. Not part of what the edge is told. */
  readonly needed?: Usage;
}

interface Refused {
  readonly status: number;
  /** What a child cell's parent would have to grant first. */
  readonly needed?: Usage;
  readonly error: Refusal["error"];
}
const refused = (status: number, code: string, message: string): Refused => ({ status, error: { code, message } });
const notFound = (message: string): Refused => refused(404, "not-found", message);

/** Answers a request that changes no model. */
export function answer(state: ControllerState, request: Json): ControllerResponse {
  if (!isObject(request)) return responseOf(state, fail(refused(400, "bad-request", "a request is a JSON object")));
  const beyond = whyBeyond(request);
  const response = responseOf(
    state,
    beyond === null ? dispatch(state, request as unknown as OtherRequest) : fail(beyond),
  );
  return saidWithin(request as unknown as { within?: Within; path?: string }, response);
}
/** Of whoever has a part of the cell alone. */
function whyBeyond(request: Json): Refused | null {
  if (!isObject(request) || request.within === undefined) return null;
  // Of a credential that is made it is what that will open.
  if (request.method === "CREDENTIAL-ADD") return null;
  const why = whyNotWithin(request.within as unknown as Within, request as never);
  return why === null ? null : refused(403, "forbidden", why);
}
/** Does it ask for another model, or what that would do? */
export const isChange = (request: Json): request is JsonObject => isObject(request) && changes.has(request.method);
const changes: ReadonlySet<Json | undefined> = new Set(["PUT", "PATCH", "DELETE"]);

/** Answers any request, in slices; an accepted change is in the state when this returns, and nothing of it before. */
export function* answerInSlices(state: ControllerState, request: Json): Generator<void, ControllerResponse> {
  const before = answeredBefore(state, request);
  if (before !== null) return before;
  const beyond = whyBeyond(request);
  if (beyond !== null) return responseOf(state, fail(beyond));
  if (isChange(request)) {
    const changed = request as unknown as ChangeRequest;
    return saidWithin(changed, responseOf(state, yield* change(state, changed)));
  }
  const response = answer(state, request);
  if (response.status === 200) keepAnswer(state, request, response.body);
  return response;
}
function responseOf(state: ControllerState, result: Result<Json, Refused>): ControllerResponse {
  const { version } = state.model;
  if (result.ok) return { status: 200, body: result.value, version };
  const { status, error, needed } = result.error;
  return { status, body: toJson({ error }), version, ...(needed === undefined ? {} : { needed }) };
}

function dispatch(state: ControllerState, request: OtherRequest): Result<Json, Refused> {
  switch (request.method) {
    case "GET":
      return read(state, request.path, request.state === true);
    case "SUMMARY":
      return ok(toJson(summary(state)));
    case "AUDIT":
      return ok(toJson(headOf(state.outbox.audit)));
    case "ELEMENTS": {
      const page = elementsPage(state, request);
      return page.ok ? ok(toJson(page.value)) : fail(refused(400, "bad-request", page.error));
    }
    case "VERSIONS":
      return ok(toJson(versionsOf(state)));
    case "SOURCE": {
      const source = sourceOf(state, request.version);
      return source.ok ? ok(toJson(source.value)) : fail(notFound(source.error));
    }
    case "CREDENTIALS":
      return ok(toJson(credentialsOf(state)));
    case "CREDENTIAL-ADD":
      return session(audited(state, "addCredential", ofCredential(request), addCredential(state, request)));
    case "CREDENTIAL-REVOKE":
      return session(audited(state, "revokeCredential", ofCredential(request), revokeCredential(state, request.id)));
    case "CREDENTIAL-KNOWN":
      return ok(knownAs(openedBy(state, request.hash)));
    case "WHY-ELEMENT":
      return session(elementAnswer(state, request.path));
    case "WHY-ENDS":
      return session(whyEnds(state, request.from, request.to));
    case "EXEC-TARGET":
      return session(execTarget(state, request.vm, request));
    case "MOVE": {
      const moved = move(state, request);
      const of = { ...request, target: request.vm, what: `to ${request.to}` };
      return session(request.tentative ? moved : audited(state, "moveVm", of, moved));
    }
    case "FORCE-STOP": {
      const forced = forceStop(state, request);
      const what = forced.ok ? `without the word of ${forced.value.host}` : "";
      const of = { ...request, target: request.vm, ...(what === "" ? {} : { what }) };
      return session(request.tentative ? forced : audited(state, "forceStop", of, forced));
    }
    case "RECORD":
      return session(recorded(state, request));
    case "CHILDREN-NAMED":
      return ok(toJson(childrenNamed(state, request.name)));
    case "MACHINES":
      return ok(toJson(machinesOf(state)));
    case "HOLDINGS":
      return ok(toJson(holdingsFor(state, request.account)));
    default:
      return fail(refused(400, "bad-request", "the method is none of this controller's"));
  }
}

const knownAs = (opened: ReturnType<typeof openedBy>): Json =>
  opened?.within === undefined ? opened !== null : toJson(opened);
const ofCredential = ({
  id,
  by,
  within,
}: {
  readonly id: string;
  readonly by?: Asker;
  readonly within?: Within;
}): Omit<Asked, "verb"> => ({
  target: `credential ${id}`,
  ...(by === undefined ? {} : { by }),
  ...(within === undefined ? {} : { what: `${within.access === "read" ? "reading" : "writing"} ${within.path}` }),
});
function audited<T>(
  state: ControllerState,
  verb: string,
  { by, target, what }: Omit<Asked, "verb">,
  result: Result<T, { readonly status: number; readonly message: string }>,
): typeof result {
  const asked = { ...(by === undefined ? {} : { by }), verb, target, ...(what === undefined ? {} : { what }) };
  if (result.ok) auditDone(state, asked);
  else auditRefused(state, asked, result.error.message);
  return result;
}

const session = (
  result: Result<object, { readonly status: number; readonly message: string }>,
): Result<Json, Refused> =>
  result.ok
    ? ok(toJson(result.value))
    : fail(refused(result.error.status, sessionCodes[result.error.status] ?? "conflict", result.error.message));
const sessionCodes: Readonly<Record<number, string>> = { 403: "forbidden", 404: "not-found" };

/** What a change is called in the table of routes. */
export const askedIn = ({
  method,
  path,
  patch,
  dropHeld,
  by,
}: Pick<ChangeRequest, "method" | "path" | "patch" | "dropHeld" | "by">): Asked => ({
  ...(by === undefined ? {} : { by }),
  verb: `${method.toLowerCase()}${path === "" ? "Model" : "Element"}`,
  target: path,
  ...(Array.isArray(patch) ? { what: `${patch.length} operations` } : {}),
  ...(dropHeld === true ? { what: "what is held there" } : {}),
});

type ChangeRequest = Extract<ControllerRequest, { readonly dryRun?: boolean }> & {
  readonly method: "PUT" | "PATCH" | "DELETE";
};
type OtherRequest =
  | Exclude<ControllerRequest, { readonly dryRun?: boolean }>
  | (Extract<ControllerRequest, { readonly dryRun?: boolean }> & { readonly method: "GET" });

/**
 * Each part looks at the whole cell, and only the last one, which takes the model in, changes anything: it stops between them,
 * and whoever reads meanwhile sees the model of before.
 */
function* change(state: ControllerState, request: ChangeRequest): Generator<void, Result<Json, Refused>> {
  const { ifMatch, dryRun = false, allowDestroy = [], within } = request;
  const closed = whyClosed(state);
  if (closed !== null && !dryRun && !isOfHeld(request)) return fail(refused(409, "conflict", closed));
  if (ifMatch !== undefined && ifMatch !== state.model.version) {
    const message = `the model has version ${state.model.version}, not ${ifMatch}: somebody changed it meanwhile`;
    return fail(refused(412, "version-mismatch", message));
  }
  if (isOfHeld(request)) return giveUpHeld(state, request);
  const target = yield* inSlices(state, targetOf(state, request));
  if (!target.ok) return target;
  const cell = target.value;
  yield* lookedAt(state, cell);
  const plan = yield* inSlices(state, planFor(state, cell));
  yield* lookedAt(state, cell);
  const beyond = within === undefined ? null : whyPlanNotWithin(within, cell, plan);
  const no =
    beyond ??
    whyNotStrict(request.lacks, { before: state.cell, after: cell, plan, offerings: offeringsSaid(state) ?? [] });
  if (no !== null) return fail(refused(403, "forbidden", no));
  const sized = withSizes(state, plan);
  const shown = within === undefined ? sized : { ...sized, steps: shownWithin(within, sized.steps) };
  const failed = shownWithin(within, leftFailed(state, plan));
  yield* lookedAt(state, cell);
  const upgraded = within === undefined ? upgradedBy(state, plan.steps) : [];
  yield* lookedAt(state, cell);
  const refusals = cell === null ? [] : refusalsOf(state, cell, plan, request.joining?.host);
  yield* lookedAt(state, cell);
  const diagnostics = cell === null ? [] : [...refusals, ...limitFaults(state, cell, plan)];
  yield* lookedAt(state, cell);
  if (diagnostics.length > 0) return fail(invalid(diagnostics));
  const shut = whyStaysOpen(state, cell, plan);
  if (shut !== null) return fail(refused(409, "conflict", shut));
  const same = isEmptyPlan(plan) && sameJson(cell?.document ?? null, state.model.document);
  const more = {
    ...foretold(state, cell, plan, { dryRun, within }),
    ...(upgraded.length > 0 ? { upgraded } : {}),
    ...(failed.length > 0 ? { failed } : {}),
    ...(state.options.networkMode === undefined ? {} : { networkMode: state.options.networkMode }),
  };
  /** In the slice that has done it. */
  const done = (told: object): Json => {
    const body = toJson({ plan: shown, version: state.model.version, dryRun, ...told } satisfies Changed);
    keepAnswer(state, toJson(request), body);
    return body;
  };
  yield* lookedAt(state, cell);
  const text = textOf(request.method, request.path, request.bundle, request.json);
  if (!dryRun && same && text !== undefined) keepText(state, text, request.by);
  if (!dryRun && !same) {
    const losses = unnamedLosses(shown, allowDestroy);
    if (losses.length > 0) return fail({ status: 409, error: destroysDataRefusal(losses) });
    const needed = roomNeeded(state, cell, plan);
    if (needed !== null) return fail({ ...noRoomNow(state, needed), needed });
    if (cell === null && hasChildren(state)) {
      beginEnding(state);
      auditDone(state, askedIn(request), state.model.version);
      return ok(done({}));
    }
    const faults = yield* inSlices(state, wrongInPlan(state, cell, plan));
    if (faults.length > 0) return fail(refused(500, "internal", wrongPlan(faults)));
    yield* lookedAt(state, cell);
    yield* executePlan(state, cell, plan, { ...askedIn(request), ...(text === undefined ? {} : { text }) });
  }
  const body = done(more);
  yield* lookedAt(state, cell);
  return ok(body);
}

const isOfHeld = ({ method, dropHeld }: ChangeRequest): boolean => method === "DELETE" && dropHeld === true;
/** It takes nothing out of the model, and so makes no version; a cell that is closed for changes may wait for it. */
function giveUpHeld(state: ControllerState, request: ChangeRequest): Result<Json, Refused> {
  const { path, dryRun = false, allowDestroy = [] } = request;
  const held = heldBelow(state, path);
  if (held.length === 0) return fail(notFound(nothingHeld(state, path)));
  const plan = planOfDropping(state, held);
  const body = toJson({ plan, version: state.model.version, dryRun } satisfies Changed);
  if (dryRun) return ok(body);
  const forked = forkReason(state);
  if (forked !== null) return fail(refused(409, "conflict", forked));
  const losses = unnamedLosses(plan, allowDestroy);
  if (losses.length > 0) return fail({ status: 409, error: destroysDataRefusal(losses) });
  dropHeld(state, held);
  auditDone(state, askedIn(request));
  keepAnswer(state, toJson(request), body);
  return ok(body);
}

/** What has failed, and what the plan does not touch. */
const leftFailed = (state: ControllerState, { steps }: Plan): readonly FailedElement[] =>
  steps.flatMap(({ action, path, type, movedFrom }) => {
    const record = action === "none" ? recordAt(state, movedFrom ?? path) : undefined;
    return record?.phase === "failed" ? [{ path, type, ...told(record.causes) }] : [];
  });

const noRoomNow = (state: ControllerState, needed: Usage): Refused => {
  const [more = "more than it may have"] = shortages(needed, state.room.holds);
  const why = state.upRefusal?.by === "change" ? state.upRefusal.reason : "its parent has not granted that";
  return refused(400, "cell/limits", `the cell ${state.options.cell} would have ${more}: ${why}`);
};

const wrongPlan = (faults: readonly string[]): string =>
  [
    "nothing was changed: the plan of this change is not right, which is a mistake of the cloud and not of the specification.",
    ...faults.map((fault) => `  ${fault}`),
    "Please report it together with both models. A change in smaller steps may pass.",
  ].join("\n");

const invalid = (diagnostics: readonly Diagnostic[]): Refused => ({
  status: 400,
  error: invalidSpecification(diagnostics),
});
const checked = (result: Result<Cell, readonly Diagnostic[]>): Result<Cell, Refused> =>
  result.ok ? result : fail(invalid(result.error));

type Target<Of> = InSlices<Result<Of, Refused>>;

const targetOf = (state: ControllerState, request: ChangeRequest): Target<Cell | null> => {
  if (request.method === "PUT") return putTarget(state, request);
  return request.method === "PATCH" ? patchTarget(state, request.patch ?? null) : deleteTarget(state, request.path);
};

function* putTarget(state: ControllerState, { path, bundle, json, joining }: ChangeRequest): Target<Cell> {
  if (joining !== undefined) {
    const joined = withJoining(state, joining);
    return joined.ok
      ? checked(yield* checkDocumentInSlices(joined.value, offersOf(state)))
      : fail(invalid(joined.error));
  }
  if (bundle !== undefined) {
    if (path === "") return yield* fromBundle(state, bundle);
    return fail(refused(400, "bad-request", "a part of a model is replaced with JSON; a bundle is a whole model"));
  }
  if (json === undefined) return fail(refused(400, "bad-request", "the request has no specification"));
  if (path === "") {
    return isObject(json)
      ? checked(yield* checkDocumentInSlices(withGrown(state, json), offersOf(state)))
      : fail(refused(400, "bad-request", "a specification is a JSON object"));
  }
  const { document } = state.model;
  if (document === null) return fail(noModel(state));
  const replaced = replaceAt(withPlaceFor(state, document, path), path, json);
  return replaced.ok
    ? checked(yield* checkDocumentInSlices(withoutBelow(state, replaced.value, path), offersOf(state)))
    : fail(notFound(replaced.error.message));
}

function* fromBundle(state: ControllerState, bundle: Bundle): Target<Cell> {
  const read = yield* readSpecificationInSlices(bundle, offersOf(state));
  const whole = read.ok ? withGrown(state, read.value.document) : null;
  if (!read.ok || whole === read.value.document || whole === null) return checked(read);
  const merged = yield* checkDocumentInSlices(whole, offersOf(state));
  return checked(merged.ok ? ok(placedAs(merged.value, read.value)) : merged);
}

/** What was written stands where it was written, also beside what the model had already. */
function placedAs(cell: Cell, { elements }: Cell): Cell {
  const placed = [...cell.elements].map(([path, element]): readonly [ElementPath, Element] => {
    const position = elements.get(path)?.position;
    return [path, position === undefined ? element : Object.freeze({ ...element, position })];
  });
  return Object.freeze({ ...cell, elements: new Map(placed) });
}

function* patchTarget(state: ControllerState, json: Json): Target<Cell> {
  const { document } = state.model;
  if (document === null) return fail(noModel(state));
  const read = readPatch(json);
  if (!read.ok) return fail(ofPatch(read.error));
  const patched = yield* patchedInSlices(withPlacesFor(state, document, read.value), read.value);
  if (!patched.ok) return fail(ofPatch(patched.error));
  if (!isObject(patched.value))
    return fail(refused(400, "patch/invalid", "what the patch leaves as the document is no JSON object"));
  const whole = replacesGrown(read.value) ? withGrown(state, patched.value) : patched.value;
  // What is only taken away has nothing to wait for, as with a deletion.
  const takes = read.value.every(({ op }) => op === "remove" || op === "test");
  return checked(yield* checkDocumentInSlices(whole, takes ? unknownSupply : offersOf(state)));
}
const ofPatch = ({ kind, operation, path, message, wanted, found }: PatchFault): Refused => {
  const values = { ...(wanted === undefined ? {} : { wanted }), ...(found === undefined ? {} : { found }) };
  const patch = { operation, path, ...values };
  return kind === "test-failed"
    ? { status: 412, error: { code: "patch/test-failed", message, patch } }
    : { status: 400, error: { code: "patch/invalid", message, patch } };
};

function* deleteTarget(state: ControllerState, path: string): Target<Cell | null> {
  const { document } = state.model;
  if (document === null) return fail(noModel(state));
  if (path === "" || path === state.cell?.path) return ok(null);
  const removed = removeAt(document, path);
  return removed.ok
    ? checked(yield* checkDocumentInSlices(removed.value, unknownSupply))
    : fail(notFound(removed.error.message));
}

const noModel = (state: ControllerState): Refused => notFound(`the cell ${state.options.cell} has no model yet`);

function read(state: ControllerState, path: string, withState: boolean): Result<Json, Refused> {
  const shown = withState ? shownWithState(state, path) : shownAt(state, path);
  if (shown === null) return fail(noModel(state));
  return shown.ok ? shown : fail(notFound(shown.error.message));
}

function elementAnswer(state: ControllerState, path: string): ReturnType<typeof whyElement> {
  const record = recordOf(state, path) ?? leavingAt(state, path);
  if (record !== undefined) return whyElement(state, record);
  const forked = forkReason(state);
  if (forked !== null) return fail({ status: 409, message: `${path} is not known here: ${forked}` });
  const whole = whyPart(state, prefixesOf(state, path));
  if (whole !== null) return whole;
  const { cell } = state.options;
  const closest = closestName(
    path,
    Array.from(state.elements.values(), (each) => each.path),
  );
  const meant = closest === undefined ? `: \`cells get ${cell} --state\` lists them` : `. Did you mean ${closest}?`;
  return fail({ status: 404, message: `${path} is no element of the cell ${cell}${meant}` });
}
