import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { type ProcessConfiguration, ports } from "../../runtime/installation.ts";

/**
 * Takes the place of a member's process where the testbed itself is tested: answers on the member's ports with what it
 * can see, and counts its starts in its durable directory.
 */
const configuration = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8")) as ProcessConfiguration;
const startsFile = join(configuration.directory, "starts");
const starts = (): number => {
  try {
    return Number(readFileSync(startsFile, "utf8"));
  } catch {
    return 0;
  }
};
writeFileSync(startsFile, String(starts() + 1));

const serve = () =>
  createServer((_request, response) => {
    response.end(JSON.stringify({ name: configuration.name, starts: starts() }));
  });
if (configuration.gateway === undefined) {
  for (const port of [ports.distribution, ports.http]) serve().listen(port, configuration.address);
} else serve().listen({ fd: configuration.gateway.listenFd });
process.on("SIGTERM", () => process.exit(0));
