import { type Upload, uploadIdPattern } from "../../../model/contract/tenancy/volumes/uploads.ts";
import { parseJson } from "../../../runtime/http/http.ts";
import { refusalIn, refused } from "../../requests/refused.ts";
import type { Contract } from "../../shared/contract.ts";
import type { Release } from "./harvest.ts";
import type { Asker } from "./rights.ts";

/*
 * What somebody has brought for a volume is an image at a storage server, which the gateway keeps for his account. It is asked for by his own
 * credential, and taken away by that of the first of his account who sees that the volume is made; a day later it goes by itself.
 */
export type FindUpload = (id: string) => Promise<Upload>;

/** Stands where the grant of a harvest would, and is no name of a cell. */
export const heldUpload = (id: string, account: string | null): string => `upload:${id}:${account ?? ""}`;
const form = /^upload:([0-9a-f]{32}):(.*)$/;

const askedMs = 15_000;

export function createFindUpload(
  contract: Pick<Contract, "ask">,
  headers: Readonly<Record<string, string>>,
): FindUpload {
  return async (id) => {
    const { status, text } = await contract.ask({
      method: "GET",
      path: "/uploads",
      headers,
      signal: AbortSignal.timeout(askedMs),
    });
    if (status !== 200) throw refusalIn(status, text, "unreachable", "the gateway does not say what was uploaded");
    const read = parseJson(text);
    const found = ((read.ok ? read.value : []) as unknown as readonly Upload[]).find((each) => each.id === id);
    if (found !== undefined && uploadIdPattern.test(id)) return found;
    throw refused(
      404,
      "not-found",
      `your account has no upload ${id}: each is there for a day, until its volume is made or it is deleted`,
    );
  };
}

/** As `Release`, of what holds an upload or a volume. */
export const releaseOf =
  (
    contract: Pick<Contract, "ask">,
    headers: Readonly<Record<string, string>>,
    { account }: Pick<Asker, "account">,
    ofVolume: Release,
  ): Release =>
  async (held) => {
    const [, id, whose] = form.exec(held.at) ?? [];
    if (id === undefined) return ofVolume(held);
    if (whose !== (account ?? "")) throw refused(404, "not-found", `there is no upload ${id}`);
    const { status, text } = await contract.ask({
      method: "DELETE",
      path: `/uploads/${id}`,
      headers,
      signal: AbortSignal.timeout(askedMs),
    });
    if (status !== 200 && status !== 404) throw refusalIn(status, text, "unreachable", "the gateway refuses it");
  };
