import { replaceAt } from "../../../../model/cell/document.ts";
import { isSameOwner, ownerIn, ownerText } from "../../../../model/cell/tenants/dedication/dedication.ts";
import { dedicationElement, freeName, writtenIn } from "../../../../model/cell/tenants/dedication/written.ts";
import type { JoinsAs } from "../../../../model/contract/operator/host-join.ts";
import type { Diagnostic } from "../../../../model/diagnostics/diagnostic.ts";
import type { Json, JsonObject } from "../../../../model/json/json.ts";
import { fail, ok, type Result } from "../../../../model/result.ts";
import { rootCell } from "../../../documents/cells.ts";
import { sameJson, toJson } from "../../../outbox.ts";
import { placesOf } from "../../services/dedications.ts";
import { hostPath, isRoot, offersOf } from "../../services/hosts.ts";
import type { ControllerState } from "../../state.ts";
import { withPlaceFor } from "../root-model.ts";

/*
 * A machine that is let in as somebody's, or as one of a kind (decision 198). What it joins as stands in the root cell's model before the machine has its
 * token: Placers hear whose it is before they hear of it, and at no moment does a VM of somebody else find it open. Rejected: to keep it beside
 * the model until the machine is heard. Between that word and the model's a Placer places by what it knows, and a host of a flavour that
 * has a VM already is one no more.
 */
export interface JoiningHost extends JoinsAs {
  readonly host: string;
}

/**
 * The root cell's document with what the machine joins as. What stands there of it already counts: a token that says another thing is refused, and
 * one that says the same changes nothing.
 */
export function withJoining(
  state: ControllerState,
  { host, cluster, tags, flavor, domain, account }: JoiningHost,
): Result<JsonObject, readonly Diagnostic[]> {
  const path = hostPath(host);
  const { cell } = state;
  const { document } = state.model;
  const fault = (message: string): Result<never, readonly Diagnostic[]> => fail([{ code: "cell/host", message, path }]);
  if (!isRoot(state) || cell === null || document === null)
    return fault(`The cell \`${rootCell}\` has no model in which \`${path}\` could stand: apply its text first`);
  const wished = {
    ...(cluster === undefined ? {} : { "x.cluster": cluster }),
    ...(tags === undefined ? {} : { "x.tags": tags }),
    ...(flavor === undefined ? {} : { "x.flavor": flavor }),
  };
  const owner = domain === undefined ? null : ownerIn(domain, account);
  const there = cell.elements.get(path);
  const isHeard = (offersOf(state)?.hosts ?? []).some((each) => each.host === host);
  if (there !== undefined || isHeard) {
    const element = there?.type === "Host" ? there : undefined;
    const has: Readonly<Record<string, Json | undefined>> = {
      "x.cluster": element?.cluster,
      "x.tags": element?.tags,
      "x.flavor": element?.flavor,
    };
    const at = there?.position === undefined ? {} : { position: there.position };
    const told = (message: string, attribute?: string): Diagnostic => ({
      code: "cell/host",
      message,
      hint: whatCounts(path),
      path,
      ...at,
      ...(attribute === undefined ? {} : { attribute }),
    });
    const faults = Object.entries(wished).flatMap(([attribute, wish]): readonly Diagnostic[] => {
      if (sameJson(wish, has[attribute] ?? null)) return [];
      const says = has[attribute] === undefined ? "says nothing of it" : `has ${JSON.stringify(has[attribute])}`;
      const message = `${host} was to join with \`${attribute}\` ${JSON.stringify(wish)}, and \`${path}\` ${says}`;
      return [told(message, attribute)];
    });
    const before = placesOf(cell).dedications.get(host);
    if (owner !== null && (before === undefined || !isSameOwner(before, owner))) {
      const is = before === undefined ? "nobody's alone" : `dedicated to ${ownerText(before)}`;
      const message = `${host} was to join as a host of ${ownerText(owner)}, and is ${is}`;
      faults.push(told(message));
    }
    return faults.length > 0 ? fail(faults) : ok(document);
  }
  const elements: [path: string, element: JsonObject][] = [
    [path, toJson({ "x.type": "Host", ...wished }) as JsonObject],
  ];
  if (owner !== null) {
    const name = freeName(host, writtenIn(document));
    elements.push([`${rootCell}/dedications/${name}`, dedicationElement(host, owner)]);
  }
  let whole = document;
  for (const [at, element] of elements) {
    const replaced = replaceAt(withPlaceFor(state, whole, at), at, element);
    if (!replaced.ok) return fault(replaced.error.message);
    whole = replaced.value;
  }
  return ok(whole);
}
const whatCounts = (path: string): string =>
  `What stands there counts: change it there, or leave the option out. Where the machine has not joined yet, \`cells delete ${path}\` takes it back.`;
