import type { Position } from "../../diagnostics/diagnostic.ts";
import type { Diagnostics } from "../../diagnostics/diagnostics.ts";
import type { Attribute, Component } from "../component.ts";
import { constantOrigin } from "./copies.ts";
import { functionPackage } from "./functions.ts";

/**
 * Function phase: a component that has an attribute `phase.function` becomes what that says, a function or an assertion,
 * whose value the link phase finds out. Inner ones come first: a schema is made of functions.
 */
export function constructFunctions(root: Component, diagnostics: Diagnostics): void {
  for (const { content } of root.attributes.values())
    if (content.kind === "component" && !constantOrigin(content)) constructFunctions(content, diagnostics);
  const phase = root.attributes.get("phase.function");
  const made = phase?.content;
  if (!phase || !made || root.role !== "plain") return;
  const name = made.kind === "scalar" && made.scalar.kind === "string" ? made.scalar.value : null;
  if (name === `${constructors}ConstructFunction`) constructFunction(root, diagnostics);
  else if (name === `${constructors}ConstructAssertions`) constructAssertions(root);
  else if (name === `${constructors}ConstructSchema`) constructSchema(root, diagnostics);
  else
    diagnostics.add({
      code: "function/needs-java",
      message: "This component is to be built by a Java class, and there is no Java here",
      hint: "Extend one of the functions of `/org/smartfrog/functions.sf`.",
      position: phase.position,
    });
}

const constructors = "org.smartfrog.sfcore.languages.sf.";
const checkAssertions = `${functionPackage}CheckAssertions`;

function constructFunction(component: Component, diagnostics: Diagnostics): void {
  const { attributes } = component;
  const functionClass = attributes.get("sfFunctionClass");
  if (!functionClass) {
    diagnostics.add({
      code: "function/class-missing",
      message: "This function does not say its `sfFunctionClass`",
      hint: "Extend one of the functions of `/org/smartfrog/functions.sf`.",
      position: component.position,
    });
    return;
  }
  component.role = "APPLY";
  rebuild(component, [["sfFunctionClass", functionClass], ...attributes]);
}

function constructAssertions(component: Component): void {
  component.role = "ASSERT";
  rebuild(component, [["sfFunctionClass", text(checkAssertions, component.position)], ...component.attributes]);
}

/** Each attribute of a schema is a function that checks the attribute of that name beside the schema. */
function constructSchema(component: Component, diagnostics: Diagnostics): void {
  for (const [name, { content, namePosition }] of component.attributes) {
    if (name === "phase.function" || name === "sfAssertionPhase" || name === "sfSchemaDescription") continue;
    if (content.kind === "component" && content.role === "APPLY") {
      content.attributes.set("name", text(name, namePosition));
      continue;
    }
    diagnostics.add({
      code: "function/schema",
      message: `\`${name}\` in a schema says nothing about an attribute`,
      hint: `Write \`${name} extends Integer;\` or another type of \`/org/smartfrog/predicates.sf\`.`,
      position: namePosition,
    });
  }
  component.role = "ASSERT";
  component.attributes.delete("sfSchemaDescription");
  rebuild(component, [...component.attributes, ["sfFunctionClass", text(checkAssertions, component.position)]]);
}

function rebuild(component: Component, attributes: readonly (readonly [string, Attribute])[]): void {
  component.attributes.clear();
  for (const [name, attribute] of attributes)
    if (name !== "phase.function" && !component.attributes.has(name)) component.attributes.set(name, attribute);
}

function text(value: string, position: Position): Attribute {
  return {
    namePosition: position,
    position,
    tags: [],
    link: { state: "open" },
    content: { kind: "scalar", scalar: { kind: "string", value }, position },
  };
}
