import { pathPattern, pathRule, rootDomain, userPattern, userRule } from "../../model/contract/tenancy/tenancy.ts";
import { usage } from "../terminal/failure.ts";

/** Of a domain or an account, as people write it: the root of all may be left out. */
export const pathOf = (written: string): string => {
  const path = written === rootDomain || written.startsWith(`${rootDomain}/`) ? written : `${rootDomain}/${written}`;
  if (!pathPattern.test(path)) throw usage(`\`${written}\` is no name of a domain or account: it must be ${pathRule}`);
  return path;
};

export interface UserName {
  readonly user: string;
  readonly domain: string;
}
/** `ann@acme`, `ann@ROOT/acme`, or `ann` in the root domain. */
export const userNameOf = (written: string): UserName => {
  const at = written.indexOf("@");
  const user = at < 0 ? written : written.slice(0, at);
  if (!userPattern.test(user)) throw usage(`\`${user}\` is no name of a user: it must be ${userRule}`);
  return { user, domain: at < 0 ? rootDomain : pathOf(written.slice(at + 1)) };
};
