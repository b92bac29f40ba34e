import { randomBytes } from "node:crypto";
import { keepNewest } from "../../model/limits.ts";

/** Browsers that are signed in here at a time; the oldest one's cookie is forgotten. */
const most = 32;
const secret = (): string => randomBytes(32).toString("base64url");

/** The gateway's cookies, each known to a browser by another one that opens nothing but what this process passes on. */
export class CookiesHere {
  /** Of a name that no other process chooses. */
  readonly name = `cells-${randomBytes(8).toString("hex")}`;
  /** What the browser has → `NAME=VALUE` of the gateway, oldest first. */
  readonly #behind = new Map<string, string>();

  /** What the gateway is sent for a browser's header `Cookie`; null: nothing. */
  behind(header: string | undefined): string | null {
    return this.#behind.get(this.#in(header) ?? "") ?? null;
  }

  /** What the browser is given for the gateway's `Set-Cookie`. @param header the browser's `Cookie` */
  inPlaceOf(given: readonly string[], header: string | undefined): readonly string[] {
    return given.map((each) => {
      const [pair = "", ...attributes] = each.split(";").map((part) => part.trim());
      const kept = attributes.filter((attribute) => /^max-age=-?\d+$/i.test(attribute));
      this.#behind.delete(this.#in(header) ?? "");
      const value = /=.+/.test(pair) ? secret() : "";
      if (value !== "") this.#behind.set(value, pair);
      keepNewest(this.#behind, most);
      return [`${this.name}=${value}`, ...kept, "Path=/", "HttpOnly", "SameSite=Strict"].join("; ");
    });
  }

  #in(header = ""): string | null {
    const own = header.split(";").flatMap((part) => {
      const [name, value = ""] = part.trim().split("=");
      return name === this.name ? [value] : [];
    });
    return own.length === 1 ? (own[0] ?? null) : null;
  }
}
