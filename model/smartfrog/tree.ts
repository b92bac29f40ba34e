import type { Bundle } from "../cell/cell.ts";
import type { Diagnostic } from "../diagnostics/diagnostic.ts";
import { Diagnostics } from "../diagnostics/diagnostics.ts";
import type { Json } from "../json/json.ts";
import type { Component, Value } from "./component.ts";
import { boundExpansion } from "./phases/expansion.ts";
import { link } from "./phases/linker.ts";
import { guarded, type Phase, runPhases } from "./phases/phases.ts";
import { limitPassed } from "./phases/resolver.ts";
import { javaDouble, javaFloat } from "./text/java-number.ts";
import { leftUnlinked } from "./text/print.ts";

/** What SmartFrog makes of a bundle, as recorded outcomes have it: `sfConfig` resolved, or the phase that refused. */
export type TreeOutcome =
  | { readonly ok: true; readonly sfConfig: Json }
  | { readonly ok: false; readonly phase: Phase; readonly errors: readonly Diagnostic[] };

/**
 * Runs all phases and encodes the component `sfConfig`: an ordered component as `{"$cd": [[name, value, tags?]…]}`, with
 * `"$data": true` if it is DATA; what stays unresolved as `{"$ref", eager, data}`; `{"$null": true}`; `{"$long"}`,
 * `{"$float"}` and `{"$double"}` numbers; bytes as `{"$class", text}`; plain JSON for the rest. `standard` are types that
 * are always in scope.
 */
export function smartFrogTree(bundle: Bundle, standard: readonly string[]): TreeOutcome {
  const diagnostics = new Diagnostics();
  const refused = (phase: Phase): TreeOutcome => ({ ok: false, phase, errors: diagnostics.list });
  const phases = runPhases(bundle, standard, diagnostics);
  if (typeof phases === "string") return refused(phases);
  const { root, resolver } = phases;
  const attribute = root.attributes.get("sfConfig");
  if (attribute?.content.kind !== "component" || attribute.content.role !== "plain") {
    diagnostics.add({
      code: "tree/no-component",
      message: attribute ? "`sfConfig` is not a component" : "The document has no component `sfConfig`",
      hint: "It is what is shown: write `sfConfig extends { … }`.",
      position: attribute?.position ?? root.position,
    });
    return refused("sfConfig");
  }
  const configuration = attribute.content;
  const sfConfig = guarded(diagnostics, () => {
    link(configuration, resolver, diagnostics);
    if (diagnostics.none) boundExpansion(configuration, diagnostics, () => true);
    return diagnostics.none ? new Encoder(diagnostics).component(configuration) : null;
  });
  return sfConfig === null ? refused("link") : { ok: true, sfConfig };
}

/** Written out digit by digit where a number of JavaScript would lose some (the proposal JSON.parse source text access). */
const { rawJSON } = JSON as unknown as { rawJSON(text: string): Json };
export const longJson = (value: bigint): Json =>
  Number.isSafeInteger(Number(value)) ? Number(value) : rawJSON(value.toString());

class Encoder {
  readonly #diagnostics: Diagnostics;
  readonly #open = new Set<Component>();

  constructor(diagnostics: Diagnostics) {
    this.#diagnostics = diagnostics;
  }

  component(component: Component): Json {
    if (this.#open.has(component)) {
      this.#diagnostics.add({
        code: "link/cycle",
        message: `\`${component.name}\` would contain itself: something in it links to it`,
        hint: "Link to a part of it, or make the reference `LAZY`.",
        position: component.position,
      });
      throw limitPassed;
    }
    this.#open.add(component);
    const pairs: Json[] = [];
    for (const [name, attribute] of component.attributes) {
      const { content, link: found, tags } = attribute;
      const value =
        leftUnlinked(attribute) ??
        (found.state === "done" ? found.value : content.kind === "component" ? content : null);
      if (value === null || value.kind === "nothing" || tags.includes("sfTemp")) continue;
      const json = this.#value(value);
      pairs.push(tags.length === 0 ? [name, json] : [name, json, [...tags].sort()]);
    }
    this.#open.delete(component);
    return component.data ? { $cd: pairs, $data: true } : { $cd: pairs };
  }

  #value(value: Value): Json {
    switch (value.kind) {
      case "component":
        return this.component(value);
      case "vector":
        return value.items.map((item) => this.#value(item));
      case "null":
      case "nothing":
        return { $null: true };
      case "bytes":
        return { $class: "org.smartfrog.sfcore.common.SFByteArray", text: `#HEX#${value.value}#` };
      case "lazy":
        return { $ref: value.text, eager: value.when !== "LAZY", data: value.when === "DATA" };
      case "number":
        if (value.type === "float") return { $float: javaFloat(value.value) };
        if (value.type === "double") return { $double: javaDouble(value.value) };
        return value.type === "long" ? { $long: longJson(value.value) } : value.value;
      default:
        return value.value;
    }
  }
}
