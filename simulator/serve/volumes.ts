import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createCaas } from "../../gateway/caas/caas.ts";
import { primaryCell, volumesPath } from "../../gateway/caas/volumes/layout.ts";
import { listenAt, overTls } from "../../gateway/shared/listen.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";

/** CaaS, the real one, beside the gateway of a served simulation, whose cell `primary` has its volumes. */
export interface ServedVolumes {
  /** Of CaaS, over TLS. */
  readonly port: number;
  close(): Promise<void>;
}
const credentialFile = "volumes.credential";

/** @param inside where the gateway is, over TLS */
export async function serveVolumesOf(
  configuration: ProcessConfiguration,
  inside: { readonly address: string; readonly port: number },
  ownPort: number,
): Promise<ServedVolumes> {
  const own = {
    ...configuration,
    personality: { gateway: inside, credentialFile: join(configuration.directory, credentialFile) },
  };
  const app = createCaas(own, { log: () => undefined }, overTls(own));
  await listenAt(app, { listen: { address: configuration.address, port: ownPort } });
  return {
    port: ownPort,
    close: async () => {
      // It listens by itself, so that closing what is served on it does not end it.
      app.server.close();
      app.server.closeAllConnections();
      await app.close();
    },
  };
}

/** CaaS is given its credential of its part of that cell. Rejects with a sentence. */
export async function givePart(
  { directory }: Pick<ProcessConfiguration, "directory">,
  url: string,
  credential: string,
): Promise<void> {
  const headers = { authorization: `Bearer ${credential}`, "content-type": "application/json" };
  const body = JSON.stringify({ note: "CaaS", path: volumesPath, access: "write" });
  const answer = await fetch(`${url}/cells/${primaryCell}/credentials`, { method: "POST", headers, body });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`CaaS has no part of the cell ${primaryCell}: ${text}`);
  const made = JSON.parse(text) as { readonly credential: string };
  await writeFile(join(directory, credentialFile), `${made.credential}\n`, { mode: 0o600 });
}
