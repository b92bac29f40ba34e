import { buildTinyImage } from "./build.ts";
import { buildDebianImage } from "./debian.ts";
import { isServiceImageName, nameImage } from "./named.ts";
import { buildServiceImage } from "./service.ts";

/**
 * `node image/main.ts [tiny|debian|service|service-NAME] [CACHE]`: builds that guest image unless the cache has it, and
 * prints where it is. `service-NAME` is the service image as it is now under a name that it keeps, for an upgrade.
 */
const [name = "tiny", cache] = process.argv.slice(2);
const builders = { tiny: buildTinyImage, debian: buildDebianImage, service: buildServiceImage };
const kind = isServiceImageName(name) ? "service" : name;
if (kind !== "tiny" && kind !== "debian" && kind !== "service") {
  console.error(
    `there is no image "${name}" to build; there are: ${Object.keys(builders).join(", ")}, and service-NAME for an upgrade`,
  );
  process.exit(2);
}
const cacheDirectory = cache ?? process.env.CELLS_CACHE ?? "/var/cache/cells";
const built = await builders[kind]({ cacheDirectory, onProgress: (message) => console.error(message) });
console.log(name === kind ? built : await nameImage(built, name));
