import { didYouMean } from "../closest-name.ts";
import type { Position } from "../diagnostic.ts";
import type { Diagnostics } from "../diagnostics.ts";
import { limits } from "../limits.ts";
import type { Attribute, Component, Value } from "./component.ts";
import { Budget, budgetSpent, OperationError, operate } from "./operations.ts";
import { constantOrigin, enclosing, limitPassed, rootOf, visibleNames } from "./resolver.ts";
import { type Expression, type Reference, referenceText } from "./syntax.ts";

/** Thrown when a value cannot be had; the fault is already reported. */
const unlinked = Symbol("unlinked");

/**
 * Link phase: finds the value of every attribute below `component`. A reference leads from the component that holds the
 * attribute; what it leads to is shared, not copied. All faults are reported, each once. Answers whether anything is shared.
 */
export function link(component: Component, diagnostics: Diagnostics): boolean {
  return new Linker(diagnostics).link(component);
}

class Linker {
  readonly #diagnostics: Diagnostics;
  readonly #budget = new Budget();
  #following = 0;
  #shares = false;
  readonly #seen = new Set<Component>();
  /** Components that something links to, which must be linked as well, wherever they stand. */
  readonly #shared: Component[] = [];

  constructor(diagnostics: Diagnostics) {
    this.#diagnostics = diagnostics;
  }

  link(component: Component): boolean {
    this.#all(component);
    for (let shared = this.#shared.pop(); shared; shared = this.#shared.pop()) this.#all(shared);
    return this.#shares;
  }

  #all(component: Component): void {
    if (this.#seen.has(component) || constantOrigin(component)) return;
    this.#seen.add(component);
    for (const attribute of component.attributes.values()) {
      if (attribute.content.kind === "scalar" && attribute.link.state === "done") continue;
      if (this.#diagnostics.full) return;
      try {
        const value = this.#value(component, attribute, attribute.position);
        if (attribute.content.kind === "component") this.#all(attribute.content);
        else if (value.kind === "component") this.#shared.push(value);
        if (attribute.content.kind !== "component" && (value.kind === "component" || value.kind === "vector"))
          this.#shares = true;
      } catch (thrown) {
        if (thrown === budgetSpent) this.#tooMuch(attribute.position);
        if (thrown !== unlinked) throw thrown;
      }
    }
  }

  #tooMuch(position: Position): never {
    this.#diagnostics.add({
      code: "limit/evaluation",
      message: "The expressions of this document are too much to work out; the limit is reached here",
      hint: "Vectors and texts made of others may have doubled too often.",
      position,
    });
    throw limitPassed;
  }
  #fail(code: string, message: string, position: Position, more: { readonly hint?: string } = {}): never {
    this.#diagnostics.add({ code, message, position, ...more });
    throw unlinked;
  }

  #value(holder: Component, attribute: Attribute, from: Position): Value {
    const { content, link: found } = attribute;
    if (content.kind === "component") return content;
    if (found.state === "done") return found.value;
    if (found.state === "busy")
      this.#fail("link/cycle", "This reference leads back to itself", from, {
        hint: "Give one attribute of the circle a value.",
      });
    if (++this.#following > limits.references) {
      const message = `More than ${limits.references} references follow one another here`;
      this.#diagnostics.add({ code: "limit/references", message, position: from });
      throw limitPassed;
    }
    attribute.link = { state: "busy" };
    try {
      const value = this.#evaluate(holder, content);
      attribute.link = { state: "done", value };
      return value;
    } finally {
      if (attribute.link.state === "busy") attribute.link = { state: "open" };
      this.#following--;
    }
  }

  #evaluate(holder: Component, expression: Expression): Value {
    if (expression.kind !== "scalar") this.#budget.spend(1);
    switch (expression.kind) {
      case "scalar":
        return expression.scalar;
      case "vector":
        this.#budget.spend(expression.items.length);
        return { kind: "vector", items: expression.items.map((item) => this.#evaluate(holder, item)) };
      case "reference":
        return this.#reference(holder, expression);
      case "choice":
        return this.#choice(holder, expression);
      case "operation": {
        const operands = expression.operands.map((operand) => this.#evaluate(holder, operand));
        const outcome = operate(expression.operator, operands, this.#budget);
        if (outcome instanceof OperationError)
          this.#fail("link/operand", outcome.message, expression.position, { hint: outcome.hint });
        return outcome;
      }
      case "tbd":
        return this.#fail("link/tbd", "`TBD` has not been given a value", expression.position, {
          hint: "Override this attribute where the template is used.",
        });
      case "component":
        return this.#fail(
          "syntax/not-supported",
          "A component inside an expression is not supported yet",
          expression.position,
          {
            hint: "Give it a name of its own and refer to it.",
          },
        );
    }
  }

  #choice(holder: Component, choice: Extract<Expression, { kind: "choice" }>): Value {
    for (const { condition, value } of choice.cases) {
      const decided = this.#evaluate(holder, condition);
      if (decided.kind !== "boolean")
        this.#fail("link/operand", "A condition must be true or false", condition.position, {
          hint: "Compare values: `(a == 1)`.",
        });
      if (decided.value) return this.#evaluate(holder, value);
    }
    if (choice.otherwise) return this.#evaluate(holder, choice.otherwise);
    return this.#fail("link/switch", "No case of this `SWITCH` fits", choice.position, {
      hint: "End it with `IF true THEN …`.",
    });
  }

  #reference(holder: Component, expression: Extract<Expression, { kind: "reference" }>): Value {
    const { reference, when, otherwise } = expression;
    if (when !== "eager") return { kind: "lazy", text: `${when} ${referenceText(reference)}` };
    const found = this.#follow(holder, reference, otherwise !== null);
    if (found) return found;
    if (otherwise) return this.#evaluate(holder, otherwise);
    throw unlinked;
  }

  /** Null only if there is nothing and that is `permitted`. */
  #follow(holder: Component, reference: Reference, permitted: boolean): Value | null {
    let current: Value = holder;
    for (const [index, part] of reference.parts.entries()) {
      if (current.kind !== "component") {
        if (permitted) return null;
        this.#fail(
          "link/not-a-component",
          `\`${referenceText(reference)}\` leads through a value that is not a component`,
          reference.position,
        );
      }
      const from: Component = current;
      if (part.kind === "ROOT") current = rootOf(from);
      else if (part.kind === "THIS") current = from;
      else if (part.kind === "PARENT") {
        if (!from.parent) {
          if (permitted) return null;
          this.#fail("link/unknown", `\`${referenceText(reference)}\` leads above the document`, reference.position);
        }
        current = from.parent;
      } else {
        const owner =
          part.kind === "HERE" ? (from.attributes.has(part.name) ? from : null) : enclosing(from, part.name);
        const attribute = owner?.attributes.get(part.name);
        if (!owner || !attribute) {
          if (permitted) return null;
          // Copies of one template all miss the same name: it is looked for once.
          if (this.#diagnostics.told("link/unknown", reference.position)) throw unlinked;
          const where =
            part.kind === "HERE" && index > 0 ? `in \`${from.name || "the document"}\`` : "here or further out";
          const known =
            part.kind === "HERE" || !this.#diagnostics.wants("link/unknown")
              ? from.attributes.keys()
              : visibleNames(from);
          this.#fail(
            "link/unknown",
            `There is no \`${part.name}\` ${where}`,
            reference.position,
            this.#diagnostics.wants("link/unknown") ? didYouMean(part.name, known) : {},
          );
        }
        current = this.#value(owner, attribute, reference.position);
      }
    }
    return current;
  }
}
