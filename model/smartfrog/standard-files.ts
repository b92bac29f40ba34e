import { functionPackage } from "./phases/functions.ts";

/**
 * The include files of HP's distribution whose templates mean something without Java, under the names by which
 * documents include them: the functions, and the types of schemas. They are in scope where a document includes them and
 * not otherwise, beside the document rather than in it, so that they are no part of a cell. One of our own is beside them.
 */
const functionTemplates: Readonly<Record<string, string>> = {
  vector: "Vector",
  append: "Append",
  concat: "Concatenate",
  formatString: "Format",
  sum: "Sum",
  plus: "Sum",
  product: "Product",
  minus: "Minus",
  divide: "Divide",
  mod: "Mod",
  implies: "Implies",
  xor: "Xor",
  and: "And",
  or: "Or",
  not: "Not",
  GE: "GE",
  LE: "LE",
  GT: "GT",
  LT: "LT",
  EQ: "EQ",
  NE: "NE",
  ifThenElse: "IfThenElse",
  next: "Next",
  random: "Random",
  date: "Date",
  userinput: "UserInput",
  ref: "Ref",
  Ref: "Ref",
  Array: "Array",
  Constraint: "Constraint",
  Aggregator: "Aggregator",
  nsum: "NSumProduct",
  nproduct: "NSumProduct",
  System: "SystemComponent",
  PolicyRef: "Ref",
  RawRef: "Ref",
  LazyConstraint: "Constraint",
  DynamicPolicyEvaluation: "DynamicPolicyEvaluation",
  PolicyEffects: "ApplyEffects",
  alldifferent: "AllDifferent",
  PrettyPrint: "PrettyPrint",
  ApplyEffects: "ApplyEffects",
};
const common = "org.smartfrog.sfcore.";
/** Each type is there twice, with and without `Optional` before it. */
const schemaTypes: Readonly<Record<string, readonly string[]>> = {
  Integer: ["java.lang.Integer"],
  Long: ["java.lang.Long", "java.lang.Integer"],
  Float: ["java.lang.Float", "java.lang.Integer"],
  Double: ["java.lang.Double", "java.lang.Float", "java.lang.Long", "java.lang.Integer"],
  String: ["java.lang.String"],
  Boolean: ["java.lang.Boolean"],
  Vector: ["java.util.Vector"],
  CD: [`${common}componentdescription.ComponentDescription`],
  Reference: ["SFReference", "SFApplyReference"].map((name) => `${common}languages.sf.sfreference.${name}`),
  Null: [`${common}common.SFNull`],
};

const functionsText = (): string => {
  const templates = Object.entries(functionTemplates).map(
    ([name, simple]) => `${name} extends Function { sfFunctionClass "${functionPackage}${simple}"; }`,
  );
  return `Function extends { phase.function "${common}languages.sf.ConstructFunction"; sfFunctionClass ""; }
${templates.join("\n")}`;
};

const predicatesText = (): string => {
  const types = Object.entries(schemaTypes).flatMap(([name, classes]) => {
    const quoted = classes.map((each) => `"${each}"`);
    const value = quoted.length === 1 ? quoted[0] : `[|${quoted.join(", ")}|]`;
    return [`${name} extends Compulsory { class ${value}; }`, `Optional${name} extends Optional { class ${value}; }`];
  });
  const construct = (name: string): string => `phase.function "${common}languages.sf.${name}";`;
  return `Assertions extends { ${construct("ConstructAssertions")} }
Schema extends { ${construct("ConstructSchema")} }
SchemaElement extends {
  ${construct("ConstructFunction")} sfFunctionClass "${functionPackage}CheckSchemaElement";
  name TBD; optional false; binding "anyBinding"; class "anyClass";
}
Compulsory extends SchemaElement {}
Optional extends SchemaElement { optional true; }
${types.join("\n")}`;
};

/**
 * What nearly every machine is, for documents of cells: a VM that boots from a copy of `image` and has a card in `subnet`.
 * The parts are elements of the cell like any others: `vm:x.cpus 2;` in the machine says more of one. An `Egress` is one that
 * leads others outside by a second card in the external subnet `front`, under the address of that; it opens nothing by itself.
 */
const machineText = (): string => `
Machine extends {
  image TBD; subnet TBD; memory 128;
  boot extends VolumeCopy { x.image image; }
  vm extends VM { x.memory memory; x.restartOnFailure true; }
  disk extends VolumeConnection { x.vm "<ref:../vm>"; x.volume "<ref:../boot>"; x.bootOrder 0; }
  card extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet subnet; }
}
Egress extends Machine {
  front TBD;
  vm:x.data extends { serve extends { masquerade "eth1"; } }
  card:x.forwards ["internet"];
  outside extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet front; }
}
`;

export const standardFiles: ReadonlyMap<string, () => string> = new Map([
  ["/org/smartfrog/functions.sf", functionsText],
  ["/org/smartfrog/predicates.sf", predicatesText],
  ["/cells/machine.sf", machineText],
]);

/** The standard include file that has a template of that name; undefined: none has. */
export function standardFileWith(name: string): string | undefined {
  for (const [path, text] of standardFiles) if (text().includes(`\n${name} extends `)) return path;
  return undefined;
}
