import variant from "@jitl/quickjs-ng-wasmfile-release-sync";
import {
  newQuickJSWASMModuleFromVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSRuntime,
  type QuickJSSyncVariant,
} from "quickjs-emscripten-core";
import { bounds } from "./bounds.ts";

/** Modules for QuickJS: their texts by name, and what a specifier means in one of them (null: nothing). */
export interface Modules {
  readonly text: (name: string) => string | undefined;
  readonly resolve: (base: string, specifier: string) => string | { readonly refused: string };
}
export type Run =
  | { readonly kind: "result"; readonly text: string }
  | { readonly kind: "thrown"; readonly name: string; readonly message: string; readonly stack: string }
  | { readonly kind: "pending" | "steps" | "memory" | "stack"; readonly stack: string };

/** Its types describe another of its forms than the one that Node loads. */
const module = variant as unknown as QuickJSSyncVariant;

/** What is kept back, so that there is room to say what was wrong. */
const reserveBytes = 8 * 1024 * 1024;

/** Runs the global script `prelude`, then the module `entry`, whose export `result` is the text that comes back. */
export async function runModules(
  prelude: string,
  entry: string,
  modules: Modules,
  say: (text: string) => void,
): Promise<Run> {
  const quickJs = await newQuickJSWASMModuleFromVariant(module);
  const runtime = quickJs.newRuntime();
  runtime.setMemoryLimit(bounds.quickJsBytes);
  runtime.setMaxStackSize(bounds.quickJsStackBytes);
  let left: number = bounds.interruptions;
  let tripped = false;
  runtime.setInterruptHandler(() => {
    if (--left > 0) return false;
    tripped = true;
    // So that the error can be read; what runs on then is stopped again.
    left = 50;
    return true;
  });
  runtime.setModuleLoader(
    (name) => modules.text(name) ?? { error: new Error(`there is no ${name}`) },
    (base, specifier) => {
      const found = modules.resolve(base, specifier);
      if (typeof found === "string") return found;
      return { error: Object.assign(new Error(found.refused), { name: "ImportFault" }) };
    },
  );
  const context = runtime.newContext();
  const told = context.newFunction("cellsSay", (text) => say(context.getString(text)));
  context.setProp(context.global, "cellsSay", told);
  context.unwrapResult(context.evalCode(prelude, "cells:prelude", { type: "global" }));
  try {
    return settle(runtime, context, entry, () => tripped);
  } catch (error) {
    // A stack of the machine code that ran over, or memory that could not be had even to say so.
    if (error instanceof RangeError) return { kind: "stack", stack: "" };
    if (error instanceof Error && error.name === "RuntimeError") return { kind: "memory", stack: "" };
    throw error;
  }
}

function settle(runtime: QuickJSRuntime, context: QuickJSContext, entry: string, tripped: () => boolean): Run {
  const thrown = (error: QuickJSHandle): Run => describe(runtime, context, error, tripped());
  const started = context.evalCode(entry, "cells:entry", { type: "module" });
  if (started.error) return thrown(started.error);
  while (runtime.hasPendingJob()) {
    const jobs = runtime.executePendingJobs(1000);
    if (jobs.error) return thrown(jobs.error);
  }
  const state = context.getPromiseState(started.value);
  if (state.type === "pending") return { kind: "pending", stack: "" };
  if (state.type === "rejected") return thrown(state.error);
  const result = context.getProp(state.value, "result");
  return { kind: "result", text: context.getString(result) };
}

/** What was thrown may be anything, and looking at it may throw again: then it is told as something. */
function describe(runtime: QuickJSRuntime, context: QuickJSContext, error: QuickJSHandle, tripped: boolean): Run {
  runtime.setMemoryLimit(bounds.quickJsBytes + reserveBytes);
  const textOf = (handle: QuickJSHandle): string =>
    context.typeof(handle) === "string" ? context.getString(handle) : "";
  const property = (name: string): string => {
    try {
      return textOf(context.getProp(error, name)).slice(0, 20_000);
    } catch {
      return "";
    }
  };
  const isObject = context.typeof(error) === "object" || context.typeof(error) === "function";
  if (!isObject) {
    const shown = String(context.dump(error)).slice(0, 2000);
    return { kind: "thrown", name: "", message: shown, stack: "" };
  }
  const [name, message, stack] = [property("name"), property("message"), property("stack")];
  if (tripped && message === "interrupted") return { kind: "steps", stack };
  if (name === "InternalError" && message === "out of memory") return { kind: "memory", stack };
  if (/^Maximum call stack size exceeded$|^stack overflow$/.test(message)) return { kind: "stack", stack };
  return { kind: "thrown", name, message, stack };
}
