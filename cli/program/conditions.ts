import type { Command } from "commander";
import { tagIn } from "../../model/contract/tenancy/pages.ts";
import type { Context } from "../context/context.ts";
import { usage } from "../terminal/failure.ts";

/* `--if-match`: a change of what a list shows is held to what whoever asks has seen of it. */

const states = ["enable", "lock", "disable", "delete"];
const changing: Readonly<Record<string, readonly string[]>> = {
  domain: states,
  account: states,
  user: [...states, "role", "password", "link", "totp-off"],
  role: ["change", "delete"],
  key: ["enable", "disable", "delete"],
  quota: ["set"],
  delegation: ["delete"],
  provider: ["delete"],
  invitation: ["delete"],
};

/** @return what such commands have at hand in place of `context` */
export function withConditions(context: () => Context): { readonly held: () => Context; add(program: Command): void } {
  let tag: string | undefined;
  return {
    held: () => {
      const [base, demanded] = [context(), tag];
      return demanded === undefined ? base : { ...base, client: () => base.client().demanding(demanded) };
    },
    add: (program) => {
      for (const parent of program.commands)
        for (const command of parent.commands) {
          if (changing[parent.name()]?.includes(command.name()) !== true) continue;
          const what = "refuse it where what it changes has another `etag` by now than its list shows (--output json)";
          command.option("--if-match <tag>", what).hook("preAction", (_own, action) => {
            tag = (action.opts() as { readonly ifMatch?: string }).ifMatch;
            if (tag === undefined || tagIn(`"${tag}"`).ok) return;
            throw usage(
              `\`${tag}\` is no tag: give the \`etag\` that \`cells ${parent.name()} list --output json\` shows`,
            );
          });
        }
    },
  };
}
