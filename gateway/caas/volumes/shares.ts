import type { NewShare } from "../../../model/contract/tenancy/volumes/volumes.ts";
import { refused } from "../../requests/refused.ts";
import { type StoredVolume, versionIn } from "./layout.ts";

/** With whom a volume can be shared, and for what. What becomes of a share in the model: `edits.ts`; what it gives to whom: `rights.ts`. */
export function requireGrantee({ kind, path }: NewShare): void {
  const form = kind === "cell" ? /^[a-z0-9](?:[a-z0-9.-]{0,51}[a-z0-9])?$/ : /^ROOT(?:\/[a-z0-9][a-z0-9-]*){0,16}$/;
  if (kind === "all" && path !== undefined) throw refused(400, "bad-request", "all have no path");
  if (kind !== "all" && (path === undefined || !form.test(path)))
    throw refused(
      400,
      "bad-request",
      kind === "cell" ? "a cell has its name as path" : `${kind}: the path begins with ROOT`,
    );
}

/** Connected it is either written by one or read by many: the other right would be none. */
export function requireFits({ right }: NewShare, volume: StoredVolume): void {
  const { access = "rw" } = versionIn(volume, volume.version) ?? {};
  if (right === "read" && access === "rw")
    throw refused(409, "conflict", `${volume.name} is written by whoever connects it, and read by nobody else`);
  if (right === "write" && access === "ro")
    throw refused(409, "conflict", `${volume.name} is only read, by any number of VMs, and written by none`);
}
