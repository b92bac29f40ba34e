import { createHash, createHmac } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { haManager, type RootOptions } from "../../../core/controller/state.ts";
import { serviceRoles } from "../../../core/documents/service-roles.ts";
import { ownKey } from "../../identity/own/keys.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { makeDirectoryDurably } from "../../process/durable-files.ts";
import { rootSecret } from "./root-secret.ts";

/**
 * The HA Manager of an installation that runs in itself is a part of its root controller, and of no VM's roles: it goes wherever
 * hosts start that one, so what looks after all others needs nobody who looks after it (decision 91). It has a store, a name, a
 * certificate and ports of its own. An installation gets it with its service image, whatever its root specification says.
 */
const directoryOf = (controllerDirectory: string): string => join(controllerDirectory, haManager);
const keyFileOf = (directory: string): string => join(directory, "identity", "key.pem");

/**
 * With what it enrols. `x.data` of that VM was written by whoever was root controller before, which may not have known any HA
 * Manager; so both make it themselves, of the secret that they share and of the key that may spend it. With another key, as
 * after a restore, it is another token.
 */
const tokenOf = async (controllerDirectory: string): Promise<string> => {
  const identity = join(directoryOf(controllerDirectory), "identity");
  await makeDirectoryDurably(identity, 0o700);
  const { fingerprint } = await ownKey(keyFileOf(directoryOf(controllerDirectory)));
  const of = JSON.stringify(["companion", haManager, fingerprint]);
  return createHmac("sha256", await rootSecret(controllerDirectory))
    .update(of)
    .digest("base64url");
};

/** What the authority is told of it. */
export const haEnrolment = async (controllerDirectory: string): Promise<NonNullable<RootOptions["ha"]>> => ({
  hash: createHash("sha256")
    .update(await tokenOf(controllerDirectory))
    .digest("hex"),
});

/** What it is told, as any process of an installation is. Call it after the controller's first start: it shares its secret. */
export const haCompanion = async (controller: ProcessConfiguration): Promise<ProcessConfiguration> => {
  const { address, enrolment, runDirectory } = controller;
  if (enrolment === undefined) throw new Error(`the configuration of "${controller.name}" names no authority`);
  const directory = directoryOf(controller.directory);
  const token = await tokenOf(controller.directory);
  const tokenFile = join(directory, "identity", "token");
  await writeFile(tokenFile, token, { mode: 0o600 });
  const peersFile = join(directory, "peers.json");
  const { distribution, http } = serviceRoles["ha-manager"];
  return {
    name: haManager,
    role: "ha-manager",
    address,
    directory,
    runDirectory,
    peersFile,
    followPeers: true,
    certificate: {
      certFile: join(directory, "identity", "certificate.pem"),
      keyFile: keyFileOf(directory),
      caFile: join(directory, "identity", "authority.pem"),
    },
    distributionPort: distribution,
    httpPort: http,
    enrolment: { authority: enrolment.authority, fingerprint: enrolment.fingerprint, tokenFile },
  };
};
