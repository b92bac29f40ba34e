/*
 * Runs first in QuickJS, before anything of an author: nothing else ever loads this file. A specification must give the
 * same cell each time and wherever it is read, so what differs from run to run is refused with a sentence where it is used;
 * so is what would be looked for in vain. Then everything built in is frozen, so that no module can change what another,
 * or the builder, relies on.
 *
 * This is for clear errors, not for safety: that is QuickJS's in WebAssembly, and of the process around it.
 */
interface Refused {
  readonly names: readonly string[];
  readonly sentence: string;
}
const same = "a specification must give the same cell each time it is read";
const refusedGlobals: readonly Refused[] = [
  { names: ["Date", "performance", "Intl", "Temporal"], sentence: `knows the time or the place, and ${same}` },
  { names: ["WeakRef", "FinalizationRegistry"], sentence: `depends on when memory is collected, and ${same}` },
  {
    names: ["setTimeout", "setInterval", "setImmediate", "queueMicrotask", "clearTimeout", "clearInterval"],
    sentence: "is not there: a specification is evaluated once, from its top to its end",
  },
  {
    names: ["fetch", "XMLHttpRequest", "WebSocket", "EventSource", "Request", "Response"],
    sentence: "is not there: a specification has no network",
  },
  {
    names: [
      "process",
      "Deno",
      "Bun",
      "navigator",
      "window",
      "self",
      "global",
      "Worker",
      "SharedArrayBuffer",
      "Atomics",
    ],
    sentence: "is not there: a specification sees nothing of the machine that reads it",
  },
  {
    names: ["require", "module", "exports", "__dirname", "__filename"],
    sentence: "is not there: a specification is a module, which uses `import` and `export` of files that lie beside it",
  },
  { names: ["crypto"], sentence: `has random numbers, and ${same}` },
  { names: ["WebAssembly", "eval"], sentence: "is not there: a specification is the text that its author wrote" },
];

class NotHere extends Error {
  override readonly name = "NotHere";
}
const refuse = (name: string, sentence: string): never => {
  throw new NotHere(`\`${name}\` ${sentence}`);
};
const hidden = (name: string, sentence: string) => ({
  get: (): never => refuse(name, sentence),
  set: (): never => refuse(name, sentence),
  configurable: false,
  enumerable: false,
});

function lock(): void {
  const [define, descriptors, prototypeOf] = [
    Object.defineProperty,
    Object.getOwnPropertyDescriptors,
    Object.getPrototypeOf,
  ];
  for (const { names, sentence } of refusedGlobals)
    for (const name of names) define(globalThis, name, hidden(name, sentence));
  define(Math, "random", { value: (): never => refuse("Math.random", `gives another number each time, and ${same}`) });

  // Accessors in QuickJS, which freezing does not stop.
  define(Error, "prepareStackTrace", { value: undefined, writable: false, configurable: false });
  define(Error, "stackTraceLimit", { value: 12, writable: false, configurable: false });

  const noCode = (name: string) => (): never =>
    refuse(name, "makes code out of text, and a specification is the text that its author wrote");
  const functions = [() => 0, async () => 0, function* () {}, async function* () {}];
  for (const each of functions) {
    const prototype: object = prototypeOf(each);
    const refusing = noCode("Function");
    define(refusing, "prototype", { value: prototype });
    define(prototype, "constructor", { value: refusing });
  }
  define(globalThis, "Function", { value: prototypeOf(() => 0).constructor });

  // With a frozen prototype, assigning to a property of that name would fail for all objects that inherit it.
  const letOverride = (prototype: object): void => {
    for (const [name, { value, configurable }] of Object.entries(descriptors(prototype))) {
      if (value === undefined || !configurable) continue;
      define(prototype, name, {
        get: () => value,
        set(this: object, next: unknown) {
          if (this === prototype) throw new TypeError(`\`${name}\` of a built-in object cannot be changed`);
          define(this, name, { value: next, writable: true, enumerable: true, configurable: true });
        },
      });
    }
  };
  for (const each of [Object, Error, TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError])
    letOverride(each.prototype);

  const seen = new Set<object>();
  const open: unknown[] = [globalThis, ...functions.map((each) => prototypeOf(each))];
  open.push(prototypeOf([][Symbol.iterator]()), prototypeOf(""[Symbol.iterator]()));
  open.push(prototypeOf(new Map()[Symbol.iterator]()), prototypeOf(new Set()[Symbol.iterator]()));
  open.push(prototypeOf("".matchAll(/a/g)), prototypeOf(Int8Array), prototypeOf(function* () {}.prototype));
  while (open.length > 0) {
    const next = open.pop();
    if ((typeof next !== "object" && typeof next !== "function") || next === null || seen.has(next)) continue;
    seen.add(next);
    open.push(prototypeOf(next));
    for (const descriptor of Object.values(descriptors(next)))
      open.push(descriptor.value, descriptor.get, descriptor.set);
  }
  // Symbols name properties too, but none of them leads to an object that nothing else leads to.
  for (const each of seen) if (each !== globalThis) Object.freeze(each);
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    const descriptor = Object.getOwnPropertyDescriptor(globalThis, name);
    if (descriptor?.configurable)
      define(globalThis, name, { configurable: false, ...("value" in descriptor ? { writable: false } : {}) });
  }
  Object.preventExtensions(globalThis);
}

function speak(say: (text: string) => void): void {
  const shown = (value: unknown): string => {
    if (typeof value === "string") return value;
    try {
      return JSON.stringify(value) ?? String(value);
    } catch {
      return String(typeof value);
    }
  };
  const log = (...values: readonly unknown[]): void => say(values.map(shown).join(" "));
  Object.defineProperty(globalThis, "console", {
    value: { log, info: log, warn: log, error: log, debug: log, trace: log },
  });
}

Error.stackTraceLimit = 12;
speak((globalThis as unknown as { readonly cellsSay: (text: string) => void }).cellsSay);
Reflect.deleteProperty(globalThis, "cellsSay");
lock();
