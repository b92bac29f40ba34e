import { buildTinyImage } from "./build.ts";
import { buildDebianImage } from "./debian.ts";
import { buildServiceImage } from "./service.ts";

/**
 * `node image/main.ts [tiny|debian|service] [CACHE]`: builds that guest image unless the cache has it, and prints where it is.
 */
const [name = "tiny", cache] = process.argv.slice(2);
const builders = { tiny: buildTinyImage, debian: buildDebianImage, service: buildServiceImage };
if (name !== "tiny" && name !== "debian" && name !== "service") {
  console.error(`there is no image "${name}" to build; there are: ${Object.keys(builders).join(", ")}`);
  process.exit(2);
}
const cacheDirectory = cache ?? process.env.CELLS_CACHE ?? "/var/cache/cells";
console.log(await builders[name]({ cacheDirectory, onProgress: (message) => console.error(message) }));
