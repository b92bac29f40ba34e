import type { Asker } from "../../core/controller/model/audited.ts";
import type { Lacks } from "../../core/controller/requests/credentials/strict.ts";
import type { Within } from "../../core/controller/requests/credentials/within.ts";
import type { Once } from "../../core/controller/requests/once.ts";
import { bundleMediaType, invalidSpecification, isYamlMediaType, type Refusal } from "../../model/api.ts";
import type { Bundle } from "../../model/cell/cell.ts";
import { read as readAs } from "../../model/contract/schema.ts";
import { bundleBody } from "../../model/contract/values.ts";
import type { Json } from "../../model/json/json.ts";
import { patchLimits } from "../../model/json/patch.ts";
import { Fault } from "../../model/json/reader.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import { sendJson, sendRefusal } from "../http/http.ts";
import { evaluate } from "../specification/evaluate.ts";
import { type Exchange, jsonIn, onceOf, relay, type TooLong, textBody } from "./exchange.ts";
import { askerOf } from "./tenants/audit.ts";
import { lacksOf, withinOf } from "./tenants/callers.ts";

/** A change of the model at a controller's edge: a specification in whatever language, a part of one, a patch, or nothing more. */

type Changes = "putModel" | "putElement" | "patchModel" | "deleteModel" | "deleteElement";
export async function change(exchange: Exchange<Changes>): Promise<void> {
  const { incoming, response, parameters, query } = exchange;
  const condition = incoming.headers["if-match"]?.trim() ?? "*";
  const version = /^"?(\d+)"?$/.exec(condition)?.[1];
  // What guards against a lost update is not to be overlooked for how it is written.
  if (version === undefined && condition !== "*") {
    const message = `If-Match is one version as ETag gave it, such as "7", or *; it was ${condition}`;
    sendRefusal(response, 400, "bad-request", message);
    return;
  }
  const common = {
    path: parameters.path ?? "",
    dryRun: query.dryRun === true,
    allowDestroy: query.allowDestroy ?? [],
    by: askerOf(exchange.caller, incoming),
    ...withinOf(exchange.caller),
    ...lacksOf(exchange.caller),
    ...(version === undefined ? {} : { ifMatch: Number(version) }),
  };
  if (incoming.method === "DELETE") {
    const more = "dropHeld" in query && query.dropHeld === true ? { dropHeld: true } : {};
    await relay(exchange, { method: "DELETE", ...common, ...more, ...onceOf(exchange) });
    return;
  }
  const isPatch = incoming.method === "PATCH";
  const text = isPatch ? await textBody(exchange, patchLimits.bytes, patchTooLong) : await textBody(exchange);
  if (text === null) return;
  const conditions = { ...common, ...onceOf(exchange, text) };
  if (!isPatch && isYamlMediaType(incoming.headers["content-type"])) {
    await changeByYaml(exchange, conditions, text);
    return;
  }
  const body = jsonIn(exchange, text);
  if (body === null) return;
  if (isPatch) {
    await relay(exchange, { method: "PATCH", ...conditions, patch: body });
    return;
  }
  const mediaType = incoming.headers["content-type"]?.split(";")[0]?.trim();
  if (mediaType !== bundleMediaType) {
    await relay(exchange, { method: "PUT", ...conditions, json: body });
    return;
  }
  const bundle = bundleOf(body);
  if (!bundle.ok) {
    sendRefusal(response, 400, "bad-request", bundle.error);
    return;
  }
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const evaluated = await evaluate(bundle.value, { signal: gone.signal });
  if (evaluated.ok) await relay(exchange, { method: "PUT", ...conditions, bundle: evaluated.value });
  else sendJson(response, 400, { error: invalidSpecification(evaluated.error) } satisfies Refusal);
}
const patchTooLong: TooLong = (most) => ({
  status: 400,
  code: "patch/invalid",
  message: `the patch is longer than ${most} bytes`,
});

/** What a change says beside the model. */
interface ChangeConditions {
  readonly path: string;
  readonly dryRun: boolean;
  readonly allowDestroy: readonly string[];
  readonly by: Asker;
  readonly within?: Within;
  readonly lacks?: Lacks;
  readonly ifMatch?: number;
  readonly once?: Once;
}

/** A whole model is read as a bundle, so that its faults have places; a part is its JSON. */
async function changeByYaml(exchange: Exchange, common: ChangeConditions, text: string): Promise<void> {
  const read = await evaluate({ main: "model.yaml", files: { "model.yaml": text } });
  if (!read.ok) sendJson(exchange.response, 400, { error: invalidSpecification(read.error) } satisfies Refusal);
  else if (common.path === "") await relay(exchange, { method: "PUT", ...common, bundle: read.value });
  else if (read.value.evaluated)
    await relay(exchange, { method: "PUT", ...common, json: read.value.evaluated.document });
}

function bundleOf(body: Json): Result<Bundle, string> {
  const bundle = readAs(bundleBody, body);
  if (bundle instanceof Fault) return fail(`a bundle is {"main": "<file>", "files": {"<file>": "<text>"}}; ${bundle}`);
  if (!Object.hasOwn(bundle.files, bundle.main))
    return fail(`the bundle's main file "${bundle.main}" is not among its files`);
  return ok({ main: bundle.main, files: bundle.files });
}
