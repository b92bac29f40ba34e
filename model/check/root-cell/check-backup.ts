import type { BackupSchedule, Cell } from "../../cell/cell.ts";
import type { ReportFault } from "../fault.ts";

/** Backups of the management are made for the root cell alone, which has this name in every installation. */
const rootName = "root";
/** An X25519 public key in base64url, as `cells management key` prints it. */
const publicKey = /^[A-Za-z0-9_-]{43}$/;

/** The schedule from the cell's attributes; null: there is none. */
export function backupOf(read: {
  text(attribute: string): string | undefined;
  number(attribute: string): number | undefined;
}): BackupSchedule | null {
  const key = read.text("x.backup.publicKey");
  if (key === undefined) return null;
  const [periodMinutes, keep] = [read.number("x.backup.period"), read.number("x.backup.keep")];
  return Object.freeze({
    publicKey: key,
    periodMinutes: periodMinutes ?? defaultPeriodMinutes,
    keep: keep ?? defaultKept,
  });
}
export const defaultPeriodMinutes = 1440;
export const defaultKept = 14;

export function checkBackup({ backup, name, path }: Cell, fault: ReportFault): void {
  if (backup === undefined) return;
  const attribute = "x.backup.publicKey";
  if (name !== rootName)
    fault("cell/backup", `\`${name}\` asks for backups of the management, which are the root cell's alone`, path, {
      attribute,
      hint: "Leave `x.backup` out here, and put it into the root cell's specification.",
    });
  else if (!publicKey.test(backup.publicKey))
    fault("cell/backup", "`x.backup.publicKey` is no X25519 public key", path, {
      attribute,
      hint: "`cells management key FILE` makes a key and prints its public half, 43 letters, digits, `-` and `_`.",
    });
}
