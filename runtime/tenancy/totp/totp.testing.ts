import { codeOf, stepAt } from "./totp.ts";

/** The code that an app shows, which was given the secret in base 32. @param ahead so many steps of 30 s later */
export const shownByApp = (secret: string, ahead = 0): string => {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  const bits = [...secret].map((each) => letters.indexOf(each).toString(2).padStart(5, "0")).join("");
  const bytes = (bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2));
  return codeOf(Buffer.from(bytes), stepAt(Date.now()) + ahead);
};
