import type { Refusal } from "../../model/api.ts";
import { read, type Schema } from "../../model/contract/schema.ts";
import { refusal } from "../../model/contract/values.ts";
import type { Json } from "../../model/json/json.ts";
import { Fault } from "../../model/json/reader.ts";
import { refused } from "./refused.ts";

/**
 * What another process answered, read as what it is to be. Whoever answers may be in somebody else's hands: a host, the controller of a
 * tenant's cell. Throws a sentence that names it, so that one liar costs its own line and nobody else's answer.
 */
export function answerAs<T>(schema: Schema<T>, text: string, peer: string): T {
  return saidAs(schema, jsonIn(text, peer), peer);
}

/** The same of what was parsed already. */
export function saidAs<T>(schema: Schema<T>, json: Json, peer: string): T {
  const value = read(schema, json);
  if (value instanceof Fault) throw new Error(`what "${peer}" says cannot be read: ${value}`);
  return value;
}

function jsonIn(text: string, peer: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw new Error(`what "${peer}" says is no JSON`);
  }
}

/** What a refusal says; nothing where it is none. */
export function refusalIn(text: string): Partial<Pick<Refusal["error"], "code" | "message">> {
  try {
    const value = read(refusal, JSON.parse(text) as Json);
    return value instanceof Fault ? {} : value.error;
  } catch {
    return {};
  }
}

/** Its outcome; what cannot be read is refused with this code. */
export function answerOr<T>(work: () => T, code: string): T {
  try {
    return work();
  } catch (error) {
    throw refused(502, code, (error as Error).message);
  }
}
