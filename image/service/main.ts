import { readFileSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { writeErrorLine } from "../../runtime/error-line.ts";
import { runRole } from "../../runtime/roles.ts";
import { configureRole, readServiceSeed, type ServiceSeed } from "../../runtime/service-data.ts";

/**
 * The one program of a service VM, bundled into one file: `serve(ROLE)` runs the role as the VM's `x.data` says, with its
 * durable state on the data volume, and shows its sign of life to the guest's first process (`init.c`): a byte every two
 * seconds from the moment at which the role answers. A process whose event loop stands still gives none.
 */
const seedFile = "/data/data.json";
const dataDirectory = "/var/lib/cells";
const runDirectory = "/run/cells";
const beatDescriptor = 3;
const beatEveryMs = 2000;

const beat = (): void => {
  try {
    writeSync(beatDescriptor, ".");
  } catch (error) {
    // Nobody has taken the last ones yet: they say the same.
    if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
  }
};

const readSeed = (): ServiceSeed => {
  const seed = readServiceSeed(JSON.parse(readFileSync(seedFile, "utf8")));
  if (!seed.ok) throw new Error(seed.error);
  return seed.value;
};

const run = async (role: string): Promise<void> => {
  const seed = readSeed();
  const own = join(runDirectory, role);
  const certificate = {
    certFile: join(own, "certificate.pem"),
    keyFile: join(own, "key.pem"),
    caFile: join(own, "authority.pem"),
  };
  const peersFile = join(own, "peers.json");
  const places = { directory: join(dataDirectory, role), runDirectory: own, certificate, peersFile };
  const configuration = configureRole(seed, role, places);
  if (!configuration.ok) throw new Error(configuration.error);
  const identity = Object.entries(seed.data.roles).find(([name]) => name === role)?.[1].identity;
  if (identity?.kind !== "issued")
    throw new Error(`x.data:roles:${role}:identity asks for an enrolment, which this image cannot do yet`);
  const secret = { mode: 0o600 };
  writeFileSync(certificate.certFile, identity.certificate, secret);
  writeFileSync(certificate.keyFile, identity.key, secret);
  writeFileSync(certificate.caFile, seed.data.authority, secret);
  writeFileSync(peersFile, JSON.stringify({ peers: seed.data.peers }), secret);
  await runRole(configuration.value);
  beat();
  setInterval(beat, beatEveryMs).unref();
};

export const serve = (role: string): void => {
  run(role).catch((error: Error) => {
    writeErrorLine(role, "process/failed", error);
    process.exit(1);
  });
};

/** Loads what every role needs, and runs nothing: for the code cache, which then holds it compiled. */
export const load = async (): Promise<void> => {
  await Promise.all([
    import("../../core/address/manager.ts"),
    import("../../core/dns/manager.ts"),
    import("../../core/placer/placer.ts"),
    import("../../core/storage/manager.ts"),
    import("../../runtime/controller/edge.ts"),
    import("../../runtime/dns-server.ts"),
  ]);
};
