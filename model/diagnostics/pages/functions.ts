import { type DiagnosticPage, smartFrogPage } from "../diagnostic-page.ts";

const cell = "shop extends Cell {\n  vm extends VM { x.memory 128; }\n}\n";
const functions = '#include "/org/smartfrog/functions.sf"\n';
const predicates = '#include "/org/smartfrog/predicates.sf"\n';

/** SmartFrog's tags, functions, schemas and assertions. */
export const functionPages: Readonly<Record<string, DiagnosticPage>> = {
  "type/final": smartFrogPage(
    "another value for a final attribute",
    "A template says with the tag `sfFinal` that nobody who extends it gives the attribute another value.",
    "Small extends VM { [sfFinal] x.memory 128; }\nshop extends Cell {\n  vm extends Small { x.memory 256; }\n}\n",
    "Small extends VM { [sfFinal] x.memory 128; }\nshop extends Cell {\n  vm extends Small { x.cpus 2; }\n}\n",
  ),
  "type/override": smartFrogPage(
    "nothing to override",
    "The tag `sfOverride` says that the attribute replaces one of a supertype. There is none of this name, so it is misspelt or the tag is too much.",
    "Small extends VM { x.memory memory; memory 128; }\nshop extends Cell {\n  vm extends Small { [sfOverride] memroy 256; }\n}\n",
    "Small extends VM { x.memory memory; memory 128; }\nshop extends Cell {\n  vm extends Small { [sfOverride] memory 256; }\n}\n",
  ),
  "place/final": smartFrogPage(
    "a placement onto a final attribute",
    "The component that `a:b value;` puts something into has tagged that attribute `sfFinal`.",
    "shop extends Cell {\n  vm extends VM { [sfFinal] x.memory 128; }\n  vm:x.memory 256;\n}\n",
    "shop extends Cell {\n  vm extends VM { [sfFinal] x.memory 128; }\n  vm:x.cpus 2;\n}\n",
  ),
  "function/needs-java": smartFrogPage(
    "a component built by a Java class",
    "`phase.function` names a Java class that is to build the component. Only the functions, assertions and schemas of SmartFrog's own include files are known here.",
    `a extends { phase.function "com.example.Build"; }\n${cell}`,
    `${functions}a extends sum { -- 1; -- 2; }\n${cell}`,
  ),
  "function/class-missing": smartFrogPage(
    "a function without its class",
    "A function says in `sfFunctionClass` what it computes; the templates of `/org/smartfrog/functions.sf` do.",
    `a extends { phase.function "org.smartfrog.sfcore.languages.sf.ConstructFunction"; }\n${cell}`,
    `${functions}a extends sum { -- 1; -- 2; }\n${cell}`,
  ),
  "function/schema": smartFrogPage(
    "a schema that says nothing of an attribute",
    "Each attribute of a schema is one of the types of `/org/smartfrog/predicates.sf`, such as `Integer` or `OptionalString`.",
    `${predicates}s extends Schema { port 80; }\n${cell}`,
    `${predicates}s extends Schema { port extends OptionalInteger; }\n${cell}`,
  ),
  "link/function": smartFrogPage(
    "APPLY without a function",
    "`APPLY` needs the class of the function in `sfFunctionClass`. An expression in parentheses says the same in less.",
    "shop extends Cell {\n  a APPLY { l 1; r 2; };\n}\n",
    "shop extends Cell {\n  a (1 + 2);\n}\n",
  ),
  "link/needs-java": smartFrogPage(
    "a value that only Java could give",
    "`PROPERTY`, `CONSTANT`, `HOST`, `PROCESS` and functions of other classes are answered by a running Java system, and there is none here. They can be left `LAZY`, or have a default with `OPTIONAL(…)`.",
    "shop extends Cell {\n  a PROPERTY user.home;\n}\n",
    'shop extends Cell {\n  a OPTIONAL("/root") PROPERTY user.home;\n}\n',
  ),
  "link/assertion": smartFrogPage(
    "an assertion that cannot be checked",
    'A static assertion is checked once, so it cannot depend on a lazy reference. `sfAssertionPhase` is "static", "staticLazy" or "dynamic".',
    `${predicates}shop extends Cell {\n  a LAZY b;\n  v extends Assertions { sfAssertionPhase "static"; ok (a == 1); }\n}\n`,
    `${predicates}shop extends Cell {\n  a 1;\n  v extends Assertions { sfAssertionPhase "static"; ok (a == 1); }\n}\n`,
  ),
  "link/local": smartFrogPage(
    "a reference to another component's local attribute",
    "An attribute tagged `sfLocal` is seen from inside its component only.",
    "shop extends Cell {\n  a extends { [sfLocal] b 1; }\n  c a:b;\n}\n",
    "shop extends Cell {\n  a extends { b 1; }\n  c a:b;\n}\n",
  ),
};
