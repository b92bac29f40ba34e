import { volumesOf } from "../../core/cells/controller-vm.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { peerRequest } from "../http/https.ts";
import type { ProcessConfiguration } from "../installation.ts";

/**
 * The controllers' components in the root cell's model, as its controller lets the Cell Manager read and change them by its
 * name alone (core/documents/permissions.ts). Every call rejects with a sentence when the root controller does not answer or
 * refuses.
 */
export interface ControllerComponents {
  /** All of them, by their names; null: there is none. */
  all(): Promise<Json>;
  /** Null: there is none of that name. */
  read(component: string): Promise<Json>;
  put(component: string, elements: JsonObject): Promise<void>;
  /** Takes it out of the model, its volumes too; nothing if it is not there. */
  remove(component: string): Promise<void>;
  /** True when nothing of it is left anywhere; false when it was not so for a while, and is to be asked again. */
  gone(component: string): Promise<boolean>;
}

const root = peerName("controller.root");
/** The root controller holds `until=gone` back for less than this. */
const heldBackMs = 90_000;

export const createComponents = (configuration: ProcessConfiguration, signal: AbortSignal): ControllerComponents => {
  const ask = async (
    method: "GET" | "PUT" | "DELETE",
    /** Empty: all of them. */
    component: string,
    { query = {}, body }: { readonly query?: Readonly<Record<string, string>>; readonly body?: JsonObject } = {},
  ): Promise<{ readonly status: number; readonly text: string }> => {
    const search = new URLSearchParams(query).toString();
    const answer = await peerRequest(configuration, root, {
      method,
      path: `/cells/root/model/root/controllers${component === "" ? "" : `/${component}`}${search === "" ? "" : `?${search}`}`,
      idleTimeoutMs: heldBackMs,
      signal,
      ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
    });
    return { status: answer.status, text: await answer.text() };
  };
  const refused = (what: string, { status, text }: { readonly status: number; readonly text: string }): Error =>
    new Error(`the root cell's controller ${what}: ${sentenceIn(text) ?? `it answered ${status}`}`);

  const read = async (component: string): Promise<Json> => {
    const answer = await ask("GET", component);
    if (answer.status === 200) return JSON.parse(answer.text) as Json;
    if (answer.status === 404) return null;
    throw refused("did not show it", answer);
  };

  return {
    all: () => read(""),
    read,
    put: async (component, body) => {
      const answer = await ask("PUT", component, { body });
      if (answer.status !== 200) throw refused("did not take the controller's VM", answer);
    },
    remove: async (component) => {
      const answer = await ask("DELETE", component, { query: { allowDestroy: volumesOf(component).join(",") } });
      if (answer.status !== 200 && answer.status !== 404)
        throw refused("did not let the controller's VM be deleted", answer);
    },
    gone: async (component) => {
      const answer = await ask("GET", component, { query: { state: "true", until: "gone" } });
      if (answer.status === 200 || answer.status === 404) return answer.status === 404;
      throw refused("did not say whether it is gone", answer);
    },
  };
};

const sentenceIn = (text: string): string | null => {
  try {
    const { error } = JSON.parse(text) as {
      readonly error?: { readonly message?: unknown; readonly diagnostics?: readonly { readonly message?: unknown }[] };
    };
    const message = error?.diagnostics?.[0]?.message ?? error?.message;
    return typeof message === "string" ? message : null;
  } catch {
    return null;
  }
};
