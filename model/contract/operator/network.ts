import type { JsonObject } from "../../json/json.ts";
import { integer, jsonObject, record } from "../schema.ts";

/** `GET` and `PUT /network/configuration`. */
export interface NetworkConfigured {
  readonly configuration: JsonObject;
  /** Of the view: grows with each change of it. */
  readonly version: number;
}
export const networkConfigured = record<NetworkConfigured>(
  { configuration: jsonObject, version: integer() },
  "NetworkConfigured",
);
