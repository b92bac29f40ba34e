import type { JsonObject } from "../json/json.ts";
import { publishedPath, type Route } from "./route.ts";
import { routeNames, routeOf } from "./routes.ts";
import { rightOf } from "./schema.ts";

const groups: readonly (readonly [title: string, holds: (path: string) => boolean])[] = [
  ["Cells", (path) => path.startsWith("/cells") && !path.startsWith("/cells/root/")],
  ["Machines", (path) => path.startsWith("/cells/root/hosts")],
  ["Storage, and what was lost", (path) => /^\/(?:bin|servers|orphans)/.test(path)],
  ["Backups of the management", (path) => /^\/(?:management|cells\/root\/backup)/.test(path)],
  ["The installation", () => true],
];

/** `docs/rest.md`. */
export function restPage(): string {
  const all = routeNames.map((name) => ({ name, route: routeOf(name), path: publishedPath(routeOf(name)) }));
  const groupOf = (path: string): string => groups.find(([, holds]) => holds(path))?.[0] ?? "";
  const sections = groups.map(([title]) => {
    const rows = all.filter(({ path }) => groupOf(path) === title);
    return `## ${title}\n\n${rows.map(({ name, route, path }) => sectionOf(name, path, route)).join("\n")}`;
  });
  return `${head}\n${sections.join("\n")}`;
}

const head = `# The REST interface

All that a client can ask an installation, at the address of its gateway. \`cells api reference\` prints this page from the
table by which the gateway and the controllers serve (\`model/contract/routes.ts\`); \`cells api openapi\` and
\`GET /openapi.json\` give the same as an OpenAPI 3.1 document. What the fields of bodies and answers mean stands at the
interfaces of the same names in \`model/api.ts\`.

- Every request has \`Authorization: Bearer <credential>\`. The operator's credential opens everything, one of a cell what
  is below \`/cells/<cell>\`, and in \`GET /cells\` that cell alone.
- An answer that is no success has a body \`{"error": {"code", "message", "diagnostics"}}\`: 400 for what is wrong with the
  request, with its place; 401 without a valid credential, 403 for what it does not open; 404 for what is not there; 502 and
  503 where somebody who would have to answer does not, the latter with \`Retry-After\`. \`cells explain\` has a page for each code.
- A \`reason\` is for people. \`causes\` beside it is the same as data: each a \`kind\` with its facts, and in \`because\` what is
  behind it. Go by kinds and never by words. Later versions have more kinds; for one that you do not know there is the sentence.
- A program that changes part of a model names what its change rests on, and nothing else:
  \`[{"op": "test", "path": "/shop/web/x.memory", "value": 256}, {"op": "replace", "path": "/shop/web/x.memory", "value": 512}]\`
  as a \`PATCH\` (\`cells patch FILE\`). Others may change the rest meanwhile. After 412 it reads the model and decides anew.
- A change whose answer is lost is asked for again under its \`Idempotency-Key\`. Who takes none refuses it.
- Parameters and fields that are not named here are passed over.
- \`{path*}\` stands for one part of a path or several.
`;

function sectionOf(
  name: string,
  path: string,
  { method, doc, more, who, query, headers = {}, body, answer }: Route,
): string {
  const lines = [
    `### \`${method} ${path}\``,
    "",
    `${doc}${more === undefined ? "" : ` ${more}`}`,
    "",
    `- \`${name}\`, ${audience[who]}`,
  ];
  const parameters = Object.entries(query).map(([parameter, { schema, doc, required, repeated }]) => {
    const needed = required ? ", needed" : "";
    return `- \`?${parameter}=\` ${kindOf(schema)}${needed}${repeated ? ", any number of times" : ""}: ${doc}`;
  });
  lines.push(...parameters, ...Object.entries(headers).map(([header, { doc }]) => `- header \`${header}\`: ${doc}`));
  if (body !== null)
    lines.push(`- body: ${nameOf(body.schema)}; ${body.types.map((type) => `\`${type}\``).join(", ")}`);
  const given =
    answer.type === "text/event-stream" ? `a stream of events, each ${nameOf(answer.schema)}` : nameOf(answer.schema);
  lines.push(`- answer: ${answer.status}${answer.type === null ? ", a WebSocket" : `, ${given}; \`${answer.type}\``}`);
  const told = Object.entries(answer.headers ?? {});
  lines.push(...told.map(([header, { doc }]) => `- header \`${header}\` of the answer: ${doc}`));
  return `${lines.join("\n")}\n`;
}
const audience = {
  operator: "for the operator",
  cell: "for the operator and the cell's users",
  tenant: "for the operator and users whose roles allow it",
  capability: "for whoever has the capability",
  anyone: "for anybody",
} as const;

/** Of a value in a query. */
const kindOf = (schema: JsonObject): string =>
  schema.type === "boolean" ? "`true` or `false`" : rightOf(schema).replaceAll(/"(\w+)"/g, "`$1`");
const nameOf = (schema: JsonObject | null): string => {
  if (schema === null) return "bytes";
  if (typeof schema.title === "string") return `\`${schema.title}\``;
  if (schema.type === "array") return `a list of ${nameOf(schema.items as JsonObject)}`;
  if (Array.isArray(schema.anyOf)) return (schema.anyOf as readonly JsonObject[]).map(nameOf).join(" or ");
  const { properties } = schema as { readonly properties?: JsonObject };
  return properties === undefined ? "JSON" : `\`{${Object.keys(properties).join(", ")}}\``;
};
