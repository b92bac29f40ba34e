import type { Json, JsonObject } from "../json/json.ts";
import { parametersIn, publishedPath, type Route } from "./route.ts";
import { parameterDocs, type RouteName, routeNames, routeOf } from "./routes.ts";
import { refusal } from "./values.ts";

/**
 * The table of routes as an OpenAPI 3.1 document, whose schemas are JSON Schemas as they are. What has a title stands once,
 * below `components`. A parameter of several parts (`{path*}`) is one of which OpenAPI cannot say that its `/` are not
 * escaped; its description says so. The handshake of a WebSocket is an operation that answers 101.
 */
export function openApi(): JsonObject {
  const components = new Map<string, Json>();
  const refused = responseOf("It is refused; the body says why.", "application/json", reference(refusal, components));
  const paths: Record<string, Record<string, Json>> = {};
  for (const name of routeNames) {
    const route = routeOf(name);
    const path = publishedPath(route).replace("*}", "}");
    const operations = paths[path] ?? {};
    paths[path] = operations;
    operations[route.method.toLowerCase()] = operationOf(name, route, components);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Cells",
      version: "1",
      description: "A cloud of cells. Every request has an operator's credential, or one of a cell.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    security: [{ credential: [] }],
    paths,
    components: {
      schemas: Object.fromEntries([...components].sort(([one], [other]) => (one < other ? -1 : 1))),
      securitySchemes: { credential: { type: "http", scheme: "bearer" } },
      responses: { Refused: refused },
    },
  };
}

const who = {
  operator: "With the operator's credential.",
  cell: "With a credential of the cell or the operator's, or a user's session whose role allows it.",
  tenant: "With the operator's credential, or a user's session whose role allows it.",
  anyone: "Without a credential.",
  capability: "With a capability in place of a credential.",
} as const;

function operationOf(name: RouteName, route: Route, components: Map<string, Json>): JsonObject {
  const { doc, more, query, headers = {}, body, answer, method } = route;
  const names = parametersIn(publishedPath(route));
  const parameters: readonly Json[] = [
    ...names.map(({ name, several }) => ({
      name,
      in: "path",
      required: true,
      schema: { type: "string" },
      description: `${parameterDocs[name]}${several ? " Its slashes are not escaped." : ""}`,
    })),
    ...Object.entries(query).map(([name, { schema, doc, required, repeated }]) => ({
      name,
      in: "query",
      required,
      description: doc,
      schema: repeated ? { type: "array", items: schema } : schema,
      explode: repeated,
    })),
    ...Object.entries(headers).map(([name, { schema, doc }]) => ({ name, in: "header", description: doc, schema })),
  ];
  const schema = answer.schema === null ? null : reference(answer.schema, components);
  return {
    operationId: name,
    summary: doc,
    description: more === undefined ? who[route.who] : `${who[route.who]} ${more}`,
    ...(route.who === "capability" || route.who === "anyone" ? { security: [] } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === null
      ? {}
      : { requestBody: { required: true, content: contentOf(body.types, body.schema, components) } }),
    responses: {
      [String(answer.status)]: responseOf(
        answer.type === null ? "A WebSocket." : method === "GET" ? "What was asked for." : "It is done.",
        answer.type,
        answer.type === "text/event-stream" && schema !== null ? dataOf(schema) : schema,
        answer.headers,
      ),
      default: { $ref: "#/components/responses/Refused" },
    },
  };
}

/** Of each event in a stream: OpenAPI 3.1 has no word for the items of one. */
const dataOf = (schema: Json): JsonObject => ({
  type: "string",
  contentMediaType: "application/json",
  contentSchema: schema,
  description: "The `data` of each event.",
});
const contentOf = (types: readonly string[], schema: JsonObject | null, components: Map<string, Json>): JsonObject =>
  Object.fromEntries(
    types.map((type) => [
      type,
      type.endsWith("json") && schema !== null ? { schema: reference(schema, components) } : {},
    ]),
  );
const responseOf = (
  description: string,
  type: string | null,
  schema: Json | null,
  headers: Route["answer"]["headers"] = {},
): JsonObject => ({
  description,
  ...(Object.keys(headers).length === 0
    ? {}
    : {
        headers: Object.fromEntries(
          Object.entries(headers).map(([name, { schema, doc }]) => [name, { description: doc, schema }]),
        ),
      }),
  ...(type === null ? {} : { content: { [type]: schema === null ? {} : { schema } } }),
});

/** The schema with everything that has a title, itself included, put among the components. */
function reference(schema: JsonObject, components: Map<string, Json>): Json {
  const inner = Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => [keyword, hoisted(keyword, value, components)]),
  );
  if (typeof schema.title !== "string") return inner;
  components.set(schema.title, inner);
  return { $ref: `#/components/schemas/${schema.title}` };
}
function hoisted(keyword: string, value: Json, components: Map<string, Json>): Json {
  if (keyword === "items" || keyword === "additionalProperties") return reference(value as JsonObject, components);
  if (keyword === "anyOf") return (value as readonly JsonObject[]).map((each) => reference(each, components));
  if (keyword !== "properties") return value;
  const properties = Object.entries(value as { readonly [name: string]: JsonObject });
  return Object.fromEntries(properties.map(([name, each]) => [name, reference(each, components)]));
}
