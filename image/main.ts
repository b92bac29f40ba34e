import { buildTinyImage } from "./build.ts";

/** `node image/main.ts [CACHE]`: builds the guest image unless the cache has it, and prints where it is. */
const cacheDirectory = process.argv[2] ?? process.env.CELLS_CACHE ?? "/var/cache/cells";
console.log(await buildTinyImage({ cacheDirectory, onProgress: (message) => console.error(message) }));
