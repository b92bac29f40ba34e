import { addContext, contexts, deleteContext, useContext } from "../connection/contexts.ts";
import type { Context } from "../context/context.ts";
import { columns, print } from "./people.ts";

/* `cells context`: several installations, or several accounts of one. */

export const listContexts = (context: Context): void => {
  const all = contexts();
  const rows = all.map(({ name, url, as, inUse }) => [inUse ? "*" : " ", name, url, as]);
  print(
    context,
    all,
    all.length === 0 ? "there is none: `cells login ann@acme --context NAME` makes one" : columns(rows),
  );
};
export const switchContext = (context: Context, name: string | undefined): void => {
  useContext(name ?? null);
  print(context, { inUse: name ?? null }, name === undefined ? "no context is in use" : `${name} is in use`);
};
export const makeContext = (context: Context, name: string, from: string): void => {
  const { url } = addContext(name, from);
  print(context, { name, url }, `the context ${name} asks ${url}: \`cells context use ${name}\``);
};
export const removeContext = (context: Context, name: string): void => {
  deleteContext(name);
  print(context, { name }, `the context ${name} is deleted; a session in it goes on until it ends by itself`);
};
