import variant from "@jitl/quickjs-ng-wasmfile-release-sync";
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
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

/** The part of WebAssembly that is used here; Node's types leave it out. */
interface WasmMemory {
  readonly buffer: { readonly byteLength: number };
}
const { Memory } = (
  globalThis as unknown as {
    readonly WebAssembly: { readonly Memory: new (size: { initial: number; maximum: number }) => WasmMemory };
  }
).WebAssembly;
const pageBytes = 65_536;
/** What the module asks for at least. */
const initialBytes = 16 * 1024 * 1024;

/** Runs the global script `prelude`, then the module `entry`, whose export `result` is the text that comes back. */
export async function runModules(
  prelude: string,
  entry: string,
  modules: Modules,
  say: (text: string) => void,
): Promise<Run> {
  // QuickJS cannot count what it has allocated in WebAssembly, so its own limit holds nothing: the memory itself ends.
  const memory = new Memory({ initial: initialBytes / pageBytes, maximum: bounds.quickJsBytes / pageBytes });
  const quickJs = await newQuickJSWASMModuleFromVariant(newVariant(module, { wasmMemory: memory as never }));
  const full = (): boolean => memory.buffer.byteLength >= bounds.quickJsBytes;
  const runtime = quickJs.newRuntime();
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
  // What is refused gets a name, and its loading fails: of an import that is made up while running, QuickJS forgets the
  // error that its name gives.
  const refused = new Map<string, string>();
  runtime.setModuleLoader(
    (name) => {
      const text = modules.text(name);
      if (text !== undefined) return text;
      return { error: Object.assign(new Error(refused.get(name) ?? `there is no ${name}`), { name: "ImportFault" }) };
    },
    (base, specifier) => {
      const found = modules.resolve(base, specifier);
      if (typeof found === "string") return found;
      const name = `cells:refused ${refused.size}`;
      refused.set(name, found.refused);
      return name;
    },
  );
  const context = runtime.newContext();
  const told = context.newFunction("cellsSay", (text) => say(context.getString(text)));
  context.setProp(context.global, "cellsSay", told);
  context.unwrapResult(context.evalCode(prelude, "cells:prelude", { type: "global" }));
  try {
    return settle(runtime, context, entry, () => ({ tripped, full: full() }));
  } catch (error) {
    // A stack of the machine code that ran over, or memory that could not be had even to say so.
    if (error instanceof RangeError) return { kind: "stack", stack: "" };
    if (full() || (error instanceof Error && error.name === "RuntimeError")) return { kind: "memory", stack: "" };
    throw error;
  }
}

interface Bounded {
  readonly tripped: boolean;
  readonly full: boolean;
}

function settle(runtime: QuickJSRuntime, context: QuickJSContext, entry: string, bounded: () => Bounded): Run {
  const thrown = (error: QuickJSHandle): Run => describe(context, error, bounded());
  const started = context.evalCode(entry, "cells:entry", { type: "module" });
  if (started.error) return thrown(started.error);
  while (runtime.hasPendingJob()) {
    const jobs = runtime.executePendingJobs(1000);
    if (jobs.error) return thrown(jobs.error);
  }
  const state = context.getPromiseState(started.value);
  // Where there was no memory for a promise's next step, that promise never settles.
  if (state.type === "pending") return { kind: bounded().full ? "memory" : "pending", stack: "" };
  if (state.type === "rejected") return thrown(state.error);
  const result = context.getProp(state.value, "result");
  return { kind: "result", text: context.getString(result) };
}

/** What was thrown may be anything, and looking at it may throw again: then it is told as something. */
function describe(context: QuickJSContext, error: QuickJSHandle, { tripped, full }: Bounded): Run {
  const property = (name: string): string => {
    try {
      const handle = context.getProp(error, name);
      return context.typeof(handle) === "string" ? context.getString(handle).slice(0, 20_000) : "";
    } catch {
      return "";
    }
  };
  const type = context.typeof(error);
  const isObject = type === "object" || type === "function";
  const shown = isObject ? null : String(context.dump(error)).slice(0, 2000);
  const [name, message, stack] = [property("name"), property("message"), property("stack")];
  if (tripped && message === "interrupted") return { kind: "steps", stack };
  // Without memory for an error, null is thrown.
  if (full && (message === "out of memory" || message === "")) return { kind: "memory", stack };
  if (name === "InternalError" && message === "out of memory") return { kind: "memory", stack };
  if (/^Maximum call stack size exceeded$|^stack overflow$/.test(message)) return { kind: "stack", stack };
  return { kind: "thrown", name, message: shown ?? message, stack };
}
