import type { PowerController } from "../../core/ha/power/controller.ts";

/** What an agent says about itself (`action=metadata`, the resource agent API of ClusterLabs), as much as is asked. */
export interface AgentMetadata {
  readonly actions: ReadonlySet<string>;
  /** It cuts a machine off from a network or its disks, and is switched back by the machine itself: no power. */
  readonly isFabric: boolean;
  /** Names of parameters; true: it has to be said. */
  readonly parameters: ReadonlyMap<string, boolean>;
}

/** Null: it is none. */
export const readMetadata = (text: string): AgentMetadata | null => {
  if (!/<resource-agent\s/.test(text)) return null;
  const actions = [...text.matchAll(/<action\s+name="([a-z-]{1,40})"([^>]*)>/g)];
  const parameters = [...text.matchAll(/<parameter\s+name="([a-z0-9_-]{1,60})"([^>]*)>/g)];
  return {
    actions: new Set(actions.map(([, name = ""]) => name)),
    isFabric: actions.some(([, , rest = ""]) => /(?:automatic|on_target)="1"/.test(rest)),
    parameters: new Map(parameters.map(([, name = "", rest = ""]) => [name, /required="1"/.test(rest)])),
  };
};

/** What is said by other words, or decides what a program does on the host that runs it. */
const reserved =
  /^(?:action|option|ip|ipaddr|ipport|username|login|password|passwd|plug|port|port_as_ip|nodename|method|verbose|verbose_level|quiet|version|help|delay|separator|plug_separator|.*_(?:path|file|script)|.*(?:debug|sudo).*)$/;
const mostOptions = 16;

/** Why this is nothing that switches a power, or not with these words: a sentence. Null: it may be. */
export const whyNot = (
  metadata: AgentMetadata,
  { agent = "", plug, user, options = {} }: Omit<PowerController, "password">,
): string | null => {
  const { actions, isFabric, parameters } = metadata;
  if (isFabric) return `${agent} cuts a machine off from a network or its disks, and switches no power`;
  for (const action of ["off", "status"])
    if (!actions.has(action)) return `${agent} has no action "${action}": a power has to be cut, and read`;
  if (!parameters.has("ip")) return `${agent} asks no device at an address`;
  if (parameters.get("plug") === true && plug === undefined)
    return `${agent} switches several plugs: say --plug, as its device calls the one of that machine`;
  // There a plug is another word for the address.
  if (plug !== undefined && (!parameters.has("plug") || parameters.has("port_as_ip")))
    return `${agent} knows no plugs: leave out --plug`;
  // What an agent does not know it writes to the log of its host.
  for (const name of user === "" ? ["password"] : ["username", "password"])
    if (!parameters.has(name)) return `${agent} takes no ${name}`;
  const names = Object.keys(options);
  if (names.length > mostOptions) return `at most ${mostOptions} options are given to an agent`;
  for (const name of names) {
    if (reserved.test(name)) return `the option ${name} of ${agent} cannot be given`;
    if (!parameters.has(name)) return `${agent} has no option ${name}`;
  }
  return null;
};
