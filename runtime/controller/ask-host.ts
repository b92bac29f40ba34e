import { peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import { parseJson } from "../http/http.ts";
import { peerRequest } from "../http/https.ts";
import type { ProcessConfiguration } from "../installation.ts";

/** A question of the controller's to a host that runs machines of the cell. */
export async function askHost(
  configuration: ProcessConfiguration,
  host: string,
  path: string,
  body: object,
  idleTimeoutMs = 15_000,
): Promise<Result<{ readonly status: number; readonly json: Json }, string>> {
  try {
    const answered = await peerRequest(configuration, peerName(host), {
      method: "POST",
      path,
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      idleTimeoutMs,
    });
    const json = parseJson(await answered.text());
    return json.ok ? ok({ status: answered.status, json: json.value }) : fail(`${host}: ${json.error}`);
  } catch (error) {
    return fail((error as Error).message);
  }
}
