import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename } from "node:path";
import { Script } from "node:vm";

/**
 * `node image/service/code-cache.ts BUNDLE TARGET`: compiles a bundle of the service image and writes what V8 makes of it. All
 * modules are loaded first, so that the functions that run while they load are there compiled. Nothing else is run: what
 * depends on the moment would make the image another one each time.
 */
type Bundle = { exports: { readonly load?: () => Promise<void> } };
type Wrapper = (require: NodeJS.Require, bundle: Bundle, exports: object) => void;

const [, , source = "", target = ""] = process.argv;
// The name is part of what is written, and is the one in the guest.
const script = new Script(readFileSync(source, "utf8"), { filename: `/usr/lib/cells/${basename(source)}` });
const bundle: Bundle = { exports: {} };
(script.runInThisContext() as Wrapper)(createRequire(import.meta.url), bundle, bundle.exports);
await bundle.exports.load?.();
writeFileSync(target, script.createCachedData());
