import { wallMsOf } from "../../cell/iso-time.ts";
import type { Signed } from "./sigv4.ts";

/*
 * How long a signed request counts. A signature that was seen before proves nothing: requests of one second that say the same have the same. So
 * it is by time that what somebody has overheard is worth nothing; what must not happen twice carries a token of its client.
 */
export const skewMs = 5 * 60_000;
/** A request of CloudStack says itself until when it counts, and may say at most so much. */
export const longestMs = 15 * 60_000;

/** Why it does not count now; null: it does. @param nowMs since 1970 */
export function outOfTime({ scheme, stringToSign }: Pick<Signed, "scheme" | "stringToSign">, nowMs: number) {
  return scheme === "sigv4" ? sigV4Late(stringToSign, nowMs) : cloudStackLate(stringToSign, nowMs);
}

function sigV4Late(text: string, nowMs: number): string | null {
  const [, year, month, day, hour, minute, second] =
    /^AWS4-HMAC-SHA256\n(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\n\d{8}\//.exec(text) ?? [];
  const signedMs = wallMsOf(`${year}-${month}-${day}T${hour}:${minute}:${second}`);
  if (signedMs === null) return "it does not say when it was signed: as X-Amz-Date 20260102T030405Z";
  if (Math.abs(nowMs - signedMs) <= skewMs) return null;
  return `it was signed ${apart(nowMs - signedMs)}, and counts for ${skewMs / 60_000} minutes: look at the clock of whoever signs`;
}
function cloudStackLate(text: string, nowMs: number): string | null {
  const values = new Map(
    text.split("&").map((part) => {
      const at = part.indexOf("=");
      const value = part
        .slice(at + 1)
        .replaceAll("%3a", ":")
        .replaceAll("%2b", "+");
      return [part.slice(0, at), value.toUpperCase()];
    }),
  );
  const form = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)([+-])(\d\d)(\d\d)$/;
  const [, time = "", sign, hours, minutes] = form.exec(values.get("expires") ?? "") ?? [];
  const localMs = wallMsOf(time);
  if (values.get("signatureversion") !== "3" || localMs === null)
    return "it counts for ever: sign it with signatureVersion=3 and expires=2026-01-02T03:04:05+0000";
  const zoneMs = (Number(hours) * 60 + Number(minutes)) * 60_000;
  const untilMs = sign === "+" ? localMs - zoneMs : localMs + zoneMs;
  if (nowMs > untilMs) return `it expired ${apart(nowMs - untilMs)}`;
  if (untilMs - nowMs > longestMs + skewMs) return `it would count for more than ${longestMs / 60_000} minutes`;
  return null;
}
function apart(ms: number): string {
  const seconds = Math.round(Math.abs(ms) / 1000);
  const text = seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
  return ms < 0 ? `${text} in the future` : `${text} ago`;
}
