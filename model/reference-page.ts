import type { ElementType } from "./cell.ts";
import { parseJsonText } from "./json-text.ts";
import { Diagnostics } from "./diagnostics.ts";
import type { Json, JsonObject } from "./json.ts";
import { defaultOf, effectOf } from "./json-schema.ts";
import { limits } from "./limits.ts";
import { isObject } from "./reference.ts";
import {
  type AttributeKind,
  type AttributeSchema,
  cellAttributes,
  commonAttributes,
  elementSchemas,
  elementTypes,
  type TypeSchema,
  typeDocs,
} from "./schema.ts";
