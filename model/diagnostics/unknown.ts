import type { Json, JsonObject } from "../json/json.ts";

/*
 * What is checked although something in it is already known to be wrong. A document with these in it is looked at for
 * what else is wrong, and then dropped: no cell is ever made of it.
 */

/** Stands for a value that could not be worked out, which has been told: nothing more is said of it. */
export const unknownValue: JsonObject = Object.freeze({});
export const isUnknown = (json: Json | undefined): boolean => json === unknownValue;

const incomplete = new WeakSet<JsonObject>();
/** Something that the component should have is not in it, which has been told: what it lacks is not missed again. */
export const markIncomplete = (component: JsonObject): void => {
  incomplete.add(component);
};
export const isIncomplete = (component: JsonObject): boolean => incomplete.has(component);
