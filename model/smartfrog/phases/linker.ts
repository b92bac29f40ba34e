import { attributeSchema, isElementType } from "../../cell/schema.ts";
import { closestName, didYouMean, truthMeant } from "../../diagnostics/closest-name.ts";
import type { Position } from "../../diagnostics/diagnostic.ts";
import type { Diagnostics } from "../../diagnostics/diagnostics.ts";
import { limits } from "../../limits.ts";
import { type Attribute, type Component, isLeftUnlinked, type Value } from "../component.ts";
import { checkSchemaElement } from "../schema-element.ts";
import { wordMeant } from "../text/expressions.ts";
import { isStandardInclude } from "../text/parser.ts";
import { expressionText, functionText, lazyText, leftUnlinked } from "../text/print.ts";
import { type Expression, type Reference, type ReferencePart, referenceText } from "../text/syntax.ts";
import { usesOf } from "./applied-where.ts";
import { constantOrigin } from "./copies.ts";
import { applyFunction, type FunctionState, refusal, standardClass } from "./functions.ts";
import { Budget, budgetSpent, OperationError, operate, vectorOf } from "./operations.ts";
import { enclosing, limitPassed, type Resolver, rootOf, visibleNames } from "./resolver.ts";
import { missingValue } from "./templates.ts";

/** Thrown when a value cannot be had; the fault is already reported. */
const unlinked = Symbol("unlinked");

/**
 * Link phase: finds the value of every attribute below `component`. A reference leads from the component that holds the
 * attribute; what it leads to is shared, not copied. All faults are reported, each once. `resolver` builds the parameters
 * of an `APPLY` inside an expression. Answers whether something got larger by that: a component, vector or text that
 * stands elsewhere or was made here.
 */
export function link(component: Component, resolver: Resolver, diagnostics: Diagnostics): boolean {
  return new Linker(resolver, diagnostics).link(component);
}

/** The same of single attributes, which stand outside of what is linked as a whole. */
export function linkAttributes(
  attributes: Iterable<{ readonly holder: Component; readonly attribute: Attribute }>,
  resolver: Resolver,
  diagnostics: Diagnostics,
): void {
  const linker = new Linker(resolver, diagnostics);
  for (const { holder, attribute } of attributes) linker.attribute(holder, attribute);
}

/** Parameters that are the function's own business. */
const reservedParameters: ReadonlySet<string> = new Set(["sfFunctionClass", "sfFunctionLazy", "sfAssertionPhase"]);
const growing: ReadonlySet<Value["kind"]> = new Set(["component", "vector", "string", "bytes"]);
type Lazy = Extract<Value, { kind: "lazy" }>;
const isLazy = (value: Value): value is Lazy => value.kind === "lazy" && value.when === "LAZY";

class Linker {
  readonly #diagnostics: Diagnostics;
  readonly #resolver: Resolver;
  readonly #budget = new Budget();
  readonly #functions: FunctionState = { last: -1, budget: this.#budget };
  #following = 0;
  #depth = 0;
  #grew = false;
  readonly #seen = new Set<Component>();
  /** Components that something links to, which must be linked as well, wherever they stand. */
  readonly #shared: Component[] = [];
  /** Whose attributes are being linked: what a fault in a template is about. */
  #linking: Component | null = null;
  /** Where faults were found: in a template they are found again for each of its copies. */
  readonly #faulty = new Set<Position>();

  constructor(resolver: Resolver, diagnostics: Diagnostics) {
    this.#resolver = resolver;
    this.#diagnostics = diagnostics;
  }

  link(component: Component): boolean {
    this.#all(component);
    for (let shared = this.#shared.pop(); shared; shared = this.#shared.pop()) this.#all(shared);
    return this.#grew;
  }

  attribute(holder: Component, attribute: Attribute): void {
    this.#linking = holder;
    const value = this.#told(holder, attribute);
    if (value?.kind === "component") this.link(value);
  }

  #all(component: Component): void {
    if (this.#seen.has(component) || constantOrigin(component)) return;
    this.#seen.add(component);
    this.#linking = component;
    // There is nothing to link in a template of plain values.
    for (const attribute of (component.template ? component.own : component.attributes).values()) {
      if (attribute.content.kind === "scalar" && attribute.link.state === "done") continue;
      if (isLeftUnlinked(attribute)) continue;
      if (this.#diagnostics.full) return;
      const value = this.#told(component, attribute);
      if (!value) continue;
      this.#grew ||= value !== attribute.content && growing.has(value.kind);
      if (value.kind !== "component") continue;
      if (value === attribute.content) this.#all(value);
      else this.#shared.push(value);
    }
    this.#linking = component.parent;
  }

  /** Null if there is no value, which has been told. */
  #told(holder: Component, attribute: Attribute): Value | null {
    try {
      return this.#settle(holder, attribute);
    } catch (thrown) {
      if (thrown === budgetSpent) this.#tooMuch(attribute.position);
      if (thrown !== unlinked) throw thrown;
      return null;
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
  #fail(code: string, message: string, at: Position, more: { readonly hint?: string } = {}): never {
    const position = this.#shown(at);
    const uses = this.#linking && !this.#faulty.has(position) ? usesOf(this.#linking, position) : {};
    this.#faulty.add(position);
    this.#diagnostics.add({ code, message, position, ...more, ...uses });
    throw unlinked;
  }

  /** What is missing in a template of HP's include files is missing where that is used: nobody has those files. */
  #shown(position: Position): Position {
    if (!isStandardInclude(position.file)) return position;
    for (let user = this.#linking; user; user = user.parent)
      if (!isStandardInclude(user.position.file)) return user.position;
    return position;
  }

  /**
   * The value of an attribute, however far its references lead: what lies too deep for the stack is found first, with a
   * stack of its own, and remembered.
   */
  #settle(holder: Component, attribute: Attribute): Value {
    const open: Postponed[] = [new Postponed(holder, attribute, attribute.position, 0)];
    for (;;) {
      const next = open.at(-1);
      if (!next) throw new Error("the attribute itself is settled last");
      this.#following = 0;
      this.#depth = 0;
      try {
        const value = this.#value(next.holder, next.attribute, next.from);
        if (open.length === 1) return value;
        open.pop();
      } catch (thrown) {
        if (!(thrown instanceof Postponed)) {
          for (const each of open) each.attribute.link = { state: "failed" };
          throw thrown;
        }
        open.push(thrown);
        this.#boundChain(open);
      }
    }
  }

  #boundChain(open: readonly Postponed[]): void {
    const last = open.at(-1);
    const again = open.some(({ attribute }, index) => attribute === last?.attribute && index < open.length - 1);
    const followed = open.reduce((sum, each) => sum + each.followed, 0);
    if (!last || (!again && followed <= limits.references)) return;
    for (const { attribute } of open) attribute.link = { state: "failed" };
    if (again) this.#cycle(last.from);
    this.#diagnostics.add({
      code: "limit/references",
      message: `More than ${limits.references} references follow one another here`,
      hint: "Let them lead to where the value stands more directly.",
      position: last.from,
    });
    throw limitPassed;
  }
  #cycle(from: Position): never {
    this.#fail("link/cycle", "This reference leads back to itself", from, {
      hint: "Give one attribute of the circle a value.",
    });
  }

  #value(holder: Component, attribute: Attribute, from: Position): Value {
    const { content, link: found } = attribute;
    if (content.kind === "component" && content.role === "plain") return content;
    if (found.state === "done") return found.value;
    // Told already, where it was found.
    if (found.state === "failed") throw unlinked;
    if (found.state === "busy") this.#cycle(from);
    if (this.#following >= segment.references || this.#depth >= segment.depth)
      throw new Postponed(holder, attribute, from, this.#following);
    this.#following++;
    attribute.link = { state: "busy" };
    try {
      const value = content.kind === "component" ? this.#apply(content) : this.#evaluate(holder, content);
      attribute.link = { state: "done", value };
      return value;
    } catch (thrown) {
      attribute.link = { state: thrown === unlinked ? "failed" : "open" };
      throw thrown;
    } finally {
      this.#following--;
    }
  }

  #evaluate(holder: Component, expression: Expression): Value {
    const depth = this.#depth;
    this.#depth++;
    let value: Value;
    if (expression.kind !== "scalar") this.#budget.spend(1);
    if (expression.kind === "reference") value = this.#reference(holder, expression);
    else if (expression.kind === "scalar") value = expression.scalar;
    else if (expression.kind === "apply") value = this.#inlineFunction(holder, expression);
    else if (expression.kind === "tbd") this.#toBeDefined(holder, expression.position);
    else value = this.#combine(holder, expression);
    this.#depth = depth;
    return value;
  }

  /** Copies of one template all lack the same value: it is told of the first. */
  #toBeDefined(holder: Component, position: Position): never {
    if (this.#diagnostics.told("link/tbd", position)) throw unlinked;
    const wanted = this.#diagnostics.wants("link/tbd") ? missingValue(holder, position) : null;
    this.#fail("link/tbd", wanted?.message ?? "`TBD`", position, wanted ? { hint: wanted.hint } : {});
  }

  /** A value made of others. All of them are evaluated, so that every fault is told, before the first fault ends it. */
  #combine(holder: Component, expression: Expression): Value {
    const parts = partsOf(expression);
    const values: Value[] = [];
    const depth = this.#depth;
    for (const part of parts) {
      try {
        values.push(this.#evaluate(holder, part));
      } catch (thrown) {
        if (thrown !== unlinked) throw thrown;
        this.#depth = depth;
      }
    }
    if (values.length < parts.length) throw unlinked;
    if (values.some(isLazy)) return lazy(expressionText(expression), "APPLY");
    this.#budget.spend(values.length);
    if (expression.kind === "vector") return this.#checked(vectorOf(values), expression.position);
    if (expression.kind === "choice") return this.#choose(expression, values);
    if (expression.kind === "operation")
      return this.#checked(operate(expression.operator, values, this.#budget), expression.position);
    throw new Error(`the parser lets no ${expression.kind} into an expression`);
  }

  #inlineFunction(holder: Component, expression: Extract<Expression, { kind: "apply" }>): Value {
    const component = this.#resolver.parameters(expression, holder);
    if (expression.when === "eager") return this.#apply(component);
    if (expression.when === "LAZY") return lazy(functionText(component), expression.form);
    return { kind: "lazy", when: "DATA", text: `DATA ${functionText(component)}`, form: expression.form };
  }

  #checked(outcome: Value | OperationError, position: Position): Value {
    if (outcome instanceof OperationError) this.#fail(outcome.code, outcome.message, position, { hint: outcome.hint });
    return outcome;
  }

  /** The value of a function, or of an assertion once that holds. */
  #apply(component: Component): Value {
    const role = component.role === "ASSERT" ? "ASSERT" : "APPLY";
    const className = this.#textOf(component, "sfFunctionClass");
    if (className === null)
      this.#fail("link/function", "This function does not say its `sfFunctionClass`", component.position, {
        hint: "Extend one of the functions of `/org/smartfrog/functions.sf`.",
      });
    const reason = refusal(className);
    if (reason !== null)
      this.#fail("link/needs-java", `\`${className}\` cannot be applied: ${reason}`, component.position, {
        hint: "Use one of the standard functions, or write the value itself.",
      });
    const parameters = this.#parameters(component);
    const flag = component.attributes.get("sfFunctionLazy");
    const chosen = flag && this.#value(component, flag, flag.position);
    const waits = [...parameters.values()].some(isLazy) || (chosen?.kind === "boolean" && chosen.value);
    if (role === "ASSERT") return this.#assert(component, className, parameters, waits);
    if (waits) return lazy(functionText(component), role);
    if (standardClass(className) === "CheckSchemaElement") return this.#schemaElement(component, parameters);
    return this.#checked(applyFunction(className, parameters, this.#functions), component.position);
  }

  #parameters(component: Component): ReadonlyMap<string, Value> {
    const parameters = new Map<string, Value>();
    const depth = this.#depth;
    let failed = false;
    for (const [name, attribute] of component.attributes) {
      if (reservedParameters.has(name) || name.startsWith("phase.")) continue;
      try {
        const value = leftUnlinked(attribute) ?? this.#value(component, attribute, attribute.position);
        if (value.kind === "component") this.#shared.push(value);
        if (value.kind !== "nothing") parameters.set(name, value);
      } catch (thrown) {
        if (thrown !== unlinked) throw thrown;
        this.#depth = depth;
        failed = true;
      }
    }
    if (failed) throw unlinked;
    return parameters;
  }

  /**
   * A dynamic assertion, the usual, is checked and stays in the tree, to be checked again at run time; a static one is
   * checked and gone. What depends on a lazy reference can be checked at run time only.
   */
  #assert(component: Component, className: string, parameters: ReadonlyMap<string, Value>, waits: boolean): Value {
    const phase = this.#textOf(component, "sfAssertionPhase") ?? "dynamic";
    if (phase !== "dynamic" && phase !== "static" && phase !== "staticLazy")
      this.#fail("link/assertion", `\`${phase}\` is no phase of an assertion`, component.position, {
        hint: 'Write "static", "staticLazy" or "dynamic".',
      });
    if (waits && phase === "static")
      this.#fail("link/assertion", "A static assertion cannot depend on a lazy reference", component.position, {
        hint: "Make the assertion dynamic, or the reference eager.",
      });
    if (!waits) {
      const outcome = this.#checked(applyFunction(className, parameters, this.#functions), component.position);
      if (outcome.kind !== "boolean" || !outcome.value)
        this.#fail("link/assertion", "This assertion does not hold", component.position, {
          hint: "Change what it speaks of, or the assertion.",
        });
    }
    return phase === "dynamic" ? lazy(functionText(component), "ASSERT") : { kind: "nothing" };
  }

  /** An attribute of a schema speaks of the attribute of that name beside the schema. */
  #schemaElement(component: Component, parameters: ReadonlyMap<string, Value>): Value {
    const holder = component.parent?.parent;
    const name = this.#textOf(component, "name") ?? "";
    const attribute = holder?.attributes.get(name);
    const value = holder && attribute ? this.#value(holder, attribute, attribute.position) : null;
    // The fault is where the attribute was written; a missing one where its component was.
    return this.#checked(
      checkSchemaElement(parameters, value),
      attribute?.position ?? holder?.position ?? component.position,
    );
  }

  /** A parameter that is a string, or null if it is none. */
  #textOf(component: Component, name: string): string | null {
    const attribute = component.attributes.get(name);
    const value = attribute && this.#value(component, attribute, attribute.position);
    return value?.kind === "string" ? value.value : null;
  }

  /** Among values that are all known: a fault in the branch not taken is a fault, as for any other function. */
  #choose({ cases, otherwise, position }: Extract<Expression, { kind: "choice" }>, values: readonly Value[]): Value {
    for (const [index, { condition }] of cases.entries()) {
      const [decided, value] = [values[2 * index], values[2 * index + 1]];
      if (decided?.kind !== "boolean" || !value)
        return this.#fail("link/operand", "A condition must be true or false", condition.position, {
          hint: "Compare values: `(a == 1)`.",
        });
      if (decided.value) return value;
    }
    const last = otherwise ? values.at(-1) : undefined;
    return (
      last ??
      this.#fail("link/switch", "No case of this `SWITCH` fits", position, { hint: "End it with `IF true THEN …`." })
    );
  }

  #reference(holder: Component, expression: Extract<Expression, { kind: "reference" }>): Value {
    const { reference, when, otherwise } = expression;
    if (when !== "eager") return { kind: "lazy", when, text: lazyText(reference, when, otherwise), form: "reference" };
    const found = this.#follow(holder, reference, otherwise !== null);
    // What leads to or through a lazy reference can be followed only when that can.
    if (found && isLazy(found)) return lazy(lazyText(reference, "LAZY", otherwise).slice("LAZY ".length), "reference");
    if (found) return found;
    if (otherwise) return this.#evaluate(holder, otherwise);
    throw unlinked;
  }

  /** Null only if there is nothing and that is `permitted`. */
  #follow(holder: Component, reference: Reference, permitted: boolean): Value | null {
    let current: Value = holder;
    for (const [index, part] of reference.parts.entries()) {
      if (isLazy(current)) return current;
      if (current.kind !== "component") {
        if (permitted) return null;
        this.#fail(
          "link/not-a-component",
          `\`${referenceText(reference)}\` leads through a value that is not a component`,
          reference.position,
          { hint: "A value has nothing inside: end the reference at it, or refer to a component." },
        );
      }
      const next = this.#step(current, part, { reference, first: index === 0, permitted });
      if (!next) return null;
      current = next.attribute ? this.#value(next.component, next.attribute, reference.position) : next.component;
    }
    return current;
  }

  /** To a component, or to an attribute of one. */
  #step(
    from: Component,
    part: ReferencePart,
    on: { readonly reference: Reference; readonly first: boolean; readonly permitted: boolean },
  ): { readonly component: Component; readonly attribute?: Attribute } | null {
    const { reference, first, permitted } = on;
    if (part.kind === "ROOT") return { component: rootOf(from) };
    if (part.kind === "THIS") return { component: from };
    if (part.kind === "PARENT") {
      if (from.parent) return { component: from.parent };
      if (permitted) return null;
      this.#fail("link/unknown", `\`${referenceText(reference)}\` leads above the document`, reference.position, {
        hint: "Leave out a `PARENT`, or begin with `ROOT`, which is the document.",
      });
    }
    if (part.kind !== "ATTRIB" && part.kind !== "HERE") {
      if (permitted) return null;
      this.#fail("link/needs-java", `\`${part.kind}\` is answered by HP's Java runtime only`, reference.position, {
        hint: "Write the value into the document, give a default with `OPTIONAL(…)`, or leave it `LAZY`.",
      });
    }
    const owner = part.kind === "HERE" ? from : enclosing(from, part.name);
    const attribute = owner?.attributes.get(part.name);
    if (!owner || !attribute) {
      if (permitted) return null;
      // Copies of one template all miss the same name: it is looked for once.
      if (this.#diagnostics.told("link/unknown", reference.position)) throw unlinked;
      const lost = part.kind === "HERE" ? this.#resolver.isIncomplete(from) : this.#resolver.mayHaveLost(from);
      if (lost) throw unlinked;
      const where = part.kind === "HERE" && !first ? `in \`${from.name || "the document"}\`` : "here or further out";
      const wanted = this.#diagnostics.wants("link/unknown");
      const known = part.kind === "HERE" || !wanted ? from.attributes.keys() : visibleNames(from);
      this.#fail(
        "link/unknown",
        `There is no \`${part.name}\` ${where}`,
        reference.position,
        wanted ? (choiceHint(from, reference, part.name) ?? unknownHint(part.name, known)) : {},
      );
    }
    if (part.kind === "HERE" && !first && attribute.tags.includes("sfLocal")) {
      if (permitted) return null;
      this.#fail(
        "link/local",
        `\`${part.name}\` is tagged \`sfLocal\`: only its own component sees it`,
        reference.position,
        {
          hint: "Remove the tag there, or refer to something else.",
        },
      );
    }
    return { component: owner, attribute };
  }
}

/** Where one of a few texts is wanted, a bare word is surely meant as one of them. */
function choiceHint(holder: Component, reference: Reference, word: string): { readonly hint: string } | null {
  const type = holder.attributes.get("x.type")?.content;
  const named = type?.kind === "scalar" && type.scalar.kind === "string" ? type.scalar.value : "";
  if (reference.parts.length !== 1 || (named !== "Cell" && !isElementType(named))) return null;
  for (const [name, { content }] of holder.attributes) {
    if (content.kind !== "reference" || content.reference !== reference) continue;
    const kind = attributeSchema(named, name)?.kind;
    const truth = kind?.kind === "boolean" ? truthMeant(word) : undefined;
    if (truth !== undefined) return { hint: `Did you mean \`${truth}\`?` };
    if (kind?.kind !== "choice") return null;
    const same = kind.values.find((value) => value === word.toLowerCase());
    const meant = same ?? closestName(word, kind.values);
    if (meant === undefined) return null;
    const choices = kind.values.map((value) => `"${value}"`).join(" or ");
    return { hint: `Did you mean \`"${meant}"\`? \`${name}\` is a text, in double quotes: ${choices}.` };
  }
  return null;
}

function unknownHint(name: string, known: Iterable<string>): { readonly hint: string } {
  const meant = wordMeant(name);
  const [, operand, operator] = /^([A-Za-z_$][A-Za-z0-9._]*)(\+\+|[-+%])./.exec(name) ?? [];
  const names = [...known];
  if (operand !== undefined && names.includes(operand))
    return { hint: `\`${name}\` is one name: put spaces around \`${operator}\`.` };
  const hint = meant ? `Did you mean \`${meant}\`?` : didYouMean(name, names).hint;
  return { hint: hint ?? `If it is meant as a text, write it in double quotes: "${name}".` };
}

/** References followed, and expressions inside one another, for which a stack must do. */
const segment = { references: 100, depth: 300 } as const;

/** Thrown to settle `attribute` first, `followed` references away from where it was needed. */
class Postponed {
  readonly holder: Component;
  readonly attribute: Attribute;
  readonly from: Position;
  readonly followed: number;
  constructor(holder: Component, attribute: Attribute, from: Position, followed: number) {
    this.holder = holder;
    this.attribute = attribute;
    this.from = from;
    this.followed = followed;
  }
}

const lazy = (text: string, form: Lazy["form"]): Value => ({ kind: "lazy", when: "LAZY", text: `LAZY ${text}`, form });

/** The expressions that a value is made of, in their order. */
function partsOf(expression: Expression): readonly Expression[] {
  if (expression.kind === "vector") return expression.items;
  if (expression.kind === "operation") return expression.operands;
  if (expression.kind !== "choice") return [];
  const parts = expression.cases.flatMap(({ condition, value }) => [condition, value]);
  return expression.otherwise ? [...parts, expression.otherwise] : parts;
}
