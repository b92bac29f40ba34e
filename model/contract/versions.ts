import type { BundleBody } from "../api.ts";
import type { PlanAction } from "../plan/plan-types.ts";
import { dictionary, integer, list, oneOf, optional, record, text, time } from "./schema.ts";

/** Who did something, as `AuditActor` has it. */
interface Person {
  readonly who: string;
  readonly account?: string;
}

/** One change of a cell's model. */
export interface ModelVersion extends Person {
  /** That the model had with it. */
  readonly version: number;
  /** ISO 8601. */
  readonly time: string;
  /** Name of the request in the table of routes. */
  readonly verb: string;
  /** What it asked for: a path, or the cell. */
  readonly target: string;
  /** How many elements its plan had of each action, `none` left out. */
  readonly changes: { readonly [action: string]: number };
  /** Those elements, the cell itself where its own attributes change, the first 100. */
  readonly parts: readonly { readonly path: string; readonly action: PlanAction }[];
  /** Volumes whose data went with it. Absent: none. */
  readonly lost?: readonly string[];
  /** The text that it was sent as is kept, and begins with this file. Absent: there is none. */
  readonly text?: { readonly main: string; readonly characters: number };
  /** Its text was sent later, or again in other words, without changing the model. */
  readonly sent?: Person & { readonly time: string };
}

/** `GET /cells/{cell}/versions`. */
export interface ModelVersions {
  /** Of the model now. */
  readonly version: number;
  /** The last one first. What is missing between numbers is not kept. */
  readonly versions: readonly ModelVersion[];
}

/** `GET /cells/{cell}/source`. */
export interface ModelSource extends BundleBody, Person {
  readonly version: number;
  /** Of when the text was sent, ISO 8601. */
  readonly time: string;
  /** What has changed the model since in other ways than by a text, oldest first. */
  readonly since: readonly ModelVersion[];
  /** So many changes since are not kept, or are of an earlier version of the controller. */
  readonly unknown: number;
}

const person = { who: text(), account: optional(text()) };
const modelVersion = record<ModelVersion>(
  {
    version: integer(0),
    time,
    ...person,
    verb: text(),
    target: text(),
    changes: dictionary(integer(1)),
    parts: list(
      record<ModelVersion["parts"][number]>({
        path: text(),
        action: oneOf("create", "change", "restart", "replace", "delete", "none"),
      }),
    ),
    lost: optional(list(text())),
    text: optional(record<NonNullable<ModelVersion["text"]>>({ main: text(), characters: integer(0) })),
    sent: optional(record<NonNullable<ModelVersion["sent"]>>({ time, ...person })),
  },
  "ModelVersion",
);
export const modelVersions = record<ModelVersions>(
  { version: integer(0), versions: list(modelVersion) },
  "ModelVersions",
);
export const modelSource = record<ModelSource>(
  {
    main: text(),
    files: dictionary(text()),
    version: integer(0),
    time,
    ...person,
    since: list(modelVersion),
    unknown: integer(0),
  },
  "ModelSource",
);
