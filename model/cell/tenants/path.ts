/** From the root of the tree of domains: `ROOT`, `ROOT/acme`; an account has its name behind its domain's, `ROOT/acme/dev`. */
export const rootDomainPath = "ROOT";
export const tenantPath = /^ROOT(?:\/[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?){0,16}$/;
