import { type PeerName, peerName } from "../../model/cell/identifiers.ts";

const part = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
const whole = /^$/;
const numbered = /^[1-9][0-9]{0,3}$/;
const several = /^([1-9][0-9]{0,3})?$/;
const named = new RegExp(`^${part}$`);
/** What follows a kind's name and a dot. `gateway` is the operator's alone: a cell's own gateway is another kind. */
const kinds: ReadonlyMap<string, RegExp> = new Map([
  // A child cell's has the names of the cells around it behind its own.
  ["controller", new RegExp(`^${part}(?:\\.${part})*$`)],
  ["host", named],
  ["agent", named],
  ["presence", numbered],
  ["gateway", whole],
  ["authority", whole],
  ["placer", several],
  ["storage-manager", several],
  ["address-manager", several],
  ["dns-manager", several],
  ["directory", several],
  ["cell-manager", whole],
  ["ha-manager", several],
  ["network-view-manager", whole],
  ["tenancy", whole],
  // Of no kind below: its certificate shows its clients who it is, and opens nothing (decision 147).
  ["personality", named],
]);

/**
 * Who shows no certificate at all: a person's or a machine's program, inside the cell. What it may, its credential says;
 * no certificate carries this name.
 */
export const user = peerName("user");

/** Whatever runs for the installation: each follows where the others are. A personality knows the gateway beside it alone. */
const everybody = (pattern: string): Readonly<Record<string, readonly string[]>> =>
  Object.fromEntries([...kinds.keys()].filter((kind) => kind !== "personality").map((kind) => [kind, [pattern]]));

/** Whose stores hold what nobody else knows: each may have its own from a backup that was restored (decision 59). */
const keepers = ["controller", "cell-manager", "address-manager", "tenancy"] as const;

/** The root cell's controller has backups made by the root specification's schedule; by hand they come through the gateway. */
const orders = { "controller.root": ["POST /backup"] } as const;

/**
 * Who may say what to whom: one table for everything that crosses a connection between services. A certificate only says
 * who is there; each service looks here whether that name may put a document (`desires`), be told of a key (`sees`) or
 * make a request over HTTPS (`asks`). What is not in the table is refused. A service may demand more than the table, as a
 * host does of whom it tells where an address is; never less.
 *
 * In patterns `<uid>` stands for an identity, `<name>` for one part of a path, `<peer>` for the name of who asks, `<cell>`
 * for the cell of the controller that asks, and a final `…` for anything.
 */
export const permissions = {
  "address-manager": {
    desires: { controller: ["subnet/<uid>"], "controller.root": ["pools"] },
    sees: { controller: ["addresses", "<peer>/…"] },
    asks: {
      gateway: ["GET /metrics", "GET /events", "GET /records", "* /orphans", "POST /backup", "GET /offers"],
      ...orders,
    },
  },
  "dns-manager": {
    desires: { controller: ["name/<uid>", "doors"], "controller.root": ["zone"] },
    sees: { controller: ["<peer>/…"] },
    asks: {
      gateway: [
        "GET /metrics",
        "GET /events",
        "GET /records",
        "* /orphans",
        "POST /backup",
        "GET /zone",
        "PUT /zone/keys/<name>",
        "DELETE /zone/keys/<name>",
      ],
      ...orders,
    },
  },
  "network-view-manager": {
    desires: { controller: ["instance/<uid>", "security-group/<uid>"] },
    sees: { controller: ["<peer>/…"], host: ["<peer>/…"] },
    asks: {
      gateway: [
        "GET /metrics",
        "GET /events",
        "GET /records",
        "* /orphans",
        "POST /backup",
        "GET /configuration",
        "PUT /configuration",
      ],
      ...orders,
    },
  },
  placer: {
    desires: {
      controller: ["placement/<uid>", "group/<uid>"],
      // What the operator says of the hosts, and whose they and the cells are.
      "controller.root": [
        "host/<name>",
        "spare",
        "settings",
        "dedicated/<name>",
        "marks/<name>",
        "owner/<name>",
        "pooled/<name>",
      ],
    },
    sees: { controller: ["hosts", "<peer>/…"] },
    asks: {
      gateway: [
        "GET /metrics",
        "GET /events",
        "GET /records",
        "* /orphans",
        "POST /backup",
        "GET /offers",
        "GET /rooms",
        "GET /capacity",
        "GET /rebalance",
        "GET /try",
      ],
      ...orders,
    },
  },
  "storage-manager": {
    desires: {
      controller: ["volume/<uid>", "connection/<uid>", "grant/<uid>", "let-go/<uid>", "guard"],
      // Whose the cells are, for what is granted to accounts.
      "controller.root": ["owner/<name>"],
      "ha-manager": ["fence/<uid>"],
    },
    sees: { controller: ["storage", "<peer>/…"], "ha-manager": ["<peer>/…"] },
    asks: {
      gateway: ["GET /metrics", "GET /events", "GET /records", "* /orphans", "POST /backup", "GET /offers"],
      ...orders,
    },
  },
  agent: {
    desires: {
      "storage-manager": ["volume/<uid>", "lease/<uid>", "readers/<uid>", "seen"],
      // Of volumes alone that the Storage Manager opened to it, those of the root controller's VM.
      host: ["succession/<uid>", "beat"],
      "ha-manager": ["requests/<name>"],
    },
    sees: {
      "storage-manager": ["volume/<uid>", "lease/<uid>", "readers/<uid>", "server", "image/<name>", "bin/<name>"],
      host: ["successor/<uid>", "<peer>/…"],
      "ha-manager": ["heartbeat/<name>", "<peer>/…"],
    },
    asks: {
      gateway: [
        "GET /metrics",
        "GET /events",
        "POST /backup",
        "* /orphans",
        "GET /status",
        "* /images",
        "* /images/<name>",
        "* /bin",
        "* /bin/<name>",
        "GET /backups",
        "GET /backups/<name>",
        "POST /adopt",
      ],
      "controller.root": ["POST /backup", "GET /backups", "PUT /backups/<name>", "DELETE /backups/<name>"],
      host: ["GET /boot/<name>/<name>"],
    },
  },
  host: {
    desires: {
      controller: ["vm/<uid>", "policy/<cell>", "slice/<cell>/…", "places/<cell>"],
      "controller.root": ["root-vm", "claim/<name>", "pools"],
      "ha-manager": ["probe/<name>", "beats"],
      "network-view-manager": ["network-view", "network-slice/<name>"],
    },
    sees: {
      controller: ["host", "<peer>/…"],
      placer: ["host", "taken/<uid>"],
      "ha-manager": ["host", "machines", "<peer>/…"],
      host: ["host", "location/<name>"],
      "network-view-manager": ["network", "network-beat"],
      presence: ["presence/…", "<peer>/…"],
    },
    asks: {
      ...orders,
      gateway: [
        "GET /metrics",
        "GET /events",
        "* /orphans",
        "POST /backup",
        "GET /status",
        "GET /counters",
        "POST /examine",
      ],
      controller: ["GET /status", "POST /examine", "POST /exec", "GET /session"],
      // The power of other hosts, and which machine this one is.
      "ha-manager": ["POST /power", "GET /identity"],
    },
  },
  presence: {
    desires: {},
    sees: {
      presence: ["vote/<name>", "dead/<name>"],
      host: ["dead/<name>", "missed/<name>", "call"],
      controller: ["dead/<name>"],
      agent: ["dead/<name>"],
      placer: ["dead/<name>"],
      "storage-manager": ["dead/<name>"],
      "address-manager": ["dead/<name>"],
      "dns-manager": ["dead/<name>"],
      "network-view-manager": ["dead/<name>"],
      "ha-manager": ["dead/<name>", "suspected/<name>"],
    },
    asks: {
      gateway: ["GET /metrics", "GET /events", "GET /records", "* /orphans", "POST /backup", "GET /hosts"],
      "controller.root": ["POST /backup", "GET /hosts/<name>/end", "PUT /hosts/<name>/end"],
      // Of a power that was read as off.
      "ha-manager": ["GET /hosts/<name>/end", "PUT /hosts/<name>/end"],
    },
  },
  "ha-manager": {
    desires: {
      controller: ["protected/<uid>", "unguarded"],
      "controller.root": ["host/<name>", "settings"],
      // Further ones at the first, which alone has powers read and cut, and tells of alerts outside.
      "ha-manager": ["power/<name>", "alerts"],
    },
    sees: { controller: ["<peer>/…"] },
    asks: {
      gateway: [
        "GET /metrics",
        "GET /events",
        "* /orphans",
        "POST /backup",
        "GET /ha",
        "POST /ha/pause",
        "POST /ha/release",
        "POST /ha/cancel",
        "POST /ha/retry",
        "POST /ha/acknowledge",
        "PUT /webhook",
        "DELETE /webhook",
        "GET /notice",
        "POST /notice",
        "PUT /mail",
        "DELETE /mail",
        "GET /mail",
        "POST /mail",
        "PUT /power/<name>",
        "DELETE /power/<name>",
      ],
      ...orders,
    },
  },
  directory: {
    desires: { controller: ["public/<uid>", "reach/<uid>", "want/<name>/…"] },
    sees: { controller: ["<peer>/…"] },
    asks: { gateway: ["GET /metrics", "GET /events", "GET /records", "* /orphans", "POST /backup"], ...orders },
  },
  "cell-manager": {
    desires: { controller: ["cell/<uid>"] },
    sees: { controller: ["<peer>/…"] },
    asks: { gateway: ["GET /metrics", "GET /events", "GET /records", "* /orphans", "POST /backup"], ...orders },
  },
  controller: {
    // What accounts may have, at the root controller.
    desires: { "cell-manager": ["life"], tenancy: ["limits/<name>"] },
    // Whose the cells are, of the root controller, to the hosts where that counts.
    sees: { "cell-manager": ["<peer>/…"], tenancy: ["<peer>/…"], host: ["owner/<name>"] },
    asks: {
      ...orders,
      gateway: ["GET /metrics", "GET /events", "GET /records", "* /orphans", "POST /backup", "* /…"],
      // The VMs of other cells' controllers are elements of the root cell, and nobody's but the Cell Manager's to change.
      "cell-manager": [
        "GET /cells/root/model/root/controllers",
        ...["GET", "PUT", "DELETE"].map((method) => `${method} /cells/root/model/root/controllers/<uid>`),
      ],
      // From a VM of the cell whose rules let it: the part of the published contract that is the cell's own.
      user: ["* /cells/<name>", "* /cells/<name>/…"],
      // A host may only ask what its operator's credential opens: the root cell, which it helps into being.
      host: ["GET /cells/root/model", "PUT /cells/root/model"],
      // At the root cell: what a ticket is worth that the gateway shows in place of the operator's credential.
      controller: ["DELETE /tickets/<uid>"],
    },
  },
  tenancy: {
    desires: {
      controller: ["look/<uid>"],
      // Whose a cell is says nobody but who has it in its model, and so what of tenants is declared there.
      "controller.root": ["owner/<uid>", "declared/<uid>"],
    },
    sees: { controller: ["<peer>/…"] },
    asks: {
      ...orders,
      gateway: [
        "GET /metrics",
        "GET /events",
        "GET /records",
        "* /orphans",
        "POST /backup",

        "POST /logins",
        "POST /signatures",
        "POST /logins/oidc",
        "POST /logins/oidc/<name>",
        "POST /passwords",
        "POST /recoveries",
        "POST /registrations",
        "POST /applications",
        "POST /users/<uid>/link",
        "DELETE /logins/current",
        "GET /whoami",
        "PUT /whoami/password",
        "* /whoami/totp",
        "POST /whoami/totp/off",
        "GET /can",
        "* /owners/<name>",
        ...[
          "domains",
          "accounts",
          "users",
          "roles",
          "keys",
          "quotas",
          "providers",
          "delegations",
          "invitations",
          "openings",
          "applications",
          "subscriptions",
        ].flatMap((all) => [`* /${all}`, `* /${all}/<uid>`]),
        // What the gateway asks on its own account: a ticket for a client's session, and which cells that may see.
        "PUT /tickets/<uid>",
        "GET /cells",
        "GET /audit",
        "GET /usage",
        // And by which it makes connections to providers of logins.
        "GET /tunnels/<uid>",
        // What becomes of cells that users have watched, and what is to be posted of that.
        "POST /notices",
        "POST /notices/next",
        "POST /notices/said",
        "POST /watches/<uid>",
      ],
    },
  },
  // Only where the services are processes of one machine and there is no root cell.
  gateway: { desires: {}, sees: {}, asks: { controller: ["DELETE /tickets/<uid>"] } },
  authority: {
    desires: { controller: ["enrolment/<uid>"], "controller.root": ["entrance/<name>"] },
    sees: {
      controller: ["<peer>/…"],
      "controller.root": ["pin/<name>"],
      host: ["pin/<name>", "entrance/<name>"],
      authority: ["pin/<name>"],
    },
    asks: {
      ...everybody("GET /peers"),
      host: ["GET /peers", "GET /gossip"],
      ...Object.fromEntries(
        keepers.map((kind) => [kind, ["GET /peers", "GET /put-back", "GET /put-back/<uid>", "DELETE /put-back/<uid>"]]),
      ),
      gateway: ["GET /metrics", "GET /events", "GET /records", "* /orphans", "POST /backup", "GET /peers"],
      "controller.root": ["POST /backup", "PUT /enrolments/<uid>", "DELETE /enrolments/<uid>", "POST /backup-order"],
    },
  },
} as const satisfies Readonly<Record<string, Permission>>;

interface Permission {
  readonly desires: Patterns;
  readonly sees: Patterns;
  readonly asks: Patterns;
}
/** By kind of peer (the first part of its name) or by a whole name. */
type Patterns = Readonly<Record<string, readonly string[]>>;
export type ServiceKind = keyof typeof permissions;

/** What a peer is by its name: the first part; null for a name that no certificate has. */
export function kindOf(peer: PeerName): string | null {
  const dot = peer.indexOf(".");
  const kind = dot < 0 ? peer : peer.slice(0, dot);
  // `placer.` names nobody.
  if (dot === peer.length - 1) return null;
  return kinds.get(kind)?.test(dot < 0 ? "" : peer.slice(dot + 1)) ? kind : null;
}

type Matcher = (peer: PeerName, text: string) => boolean;

const matcherOf = (pattern: string): Matcher => {
  if (pattern === "<peer>/…") return (peer, text) => text.startsWith(`${peer}/`);
  if (!/[<…*]/.test(pattern)) return (_peer, text) => text === pattern;
  if (pattern.endsWith("/<cell>")) {
    const before = pattern.slice(0, -"<cell>".length);
    return (peer, text) => text === before + peer.slice(peer.indexOf(".") + 1);
  }
  if (pattern.endsWith("/<cell>/…")) {
    const before = pattern.slice(0, -"<cell>/…".length);
    return (peer, text) => {
      const start = `${before}${peer.slice(peer.indexOf(".") + 1)}/`;
      return text.startsWith(start) && text.length > start.length;
    };
  }
  const source = pattern
    .replaceAll("<uid>", "[A-Za-z0-9-]{1,64}")
    .replaceAll("<name>", "[^/]+")
    .replace(/^\*/, "[A-Z]+")
    .replace(/…$/, ".*");
  const expression = new RegExp(`^${source}$`, "s");
  return (_peer, text) => expression.test(text);
};

type Compiled = ReadonlyMap<string, readonly Matcher[]>;
const compile = (verb: keyof Permission): ReadonlyMap<string, Compiled> =>
  new Map(
    Object.entries(permissions).map(([at, permission]) => [
      at,
      new Map(Object.entries(permission[verb] as Patterns).map(([who, all]) => [who, all.map(matcherOf)])),
    ]),
  );
const [desires, sees, asks] = [compile("desires"), compile("sees"), compile("asks")];

const allows = (table: ReadonlyMap<string, Compiled>, at: ServiceKind, peer: PeerName, text: string): boolean => {
  const kind = peer === user ? user : kindOf(peer);
  if (kind === null) return false;
  const compiled = table.get(at);
  const matches = (who: string): boolean => compiled?.get(who)?.some((matcher) => matcher(peer, text)) ?? false;
  return matches(kind) || (kind !== peer && matches(peer));
};

/** May this peer put a desired document under this key? */
export const mayDesire = (at: ServiceKind, peer: PeerName, key: string): boolean => allows(desires, at, peer, key);

/** May this peer be told what is so under this key? */
export const maySee = (at: ServiceKind, peer: PeerName, key: string): boolean => allows(sees, at, peer, key);

/** May this peer make this request over HTTPS? `url`: path, and a query that does not matter here. */
export const mayAsk = (at: ServiceKind, peer: PeerName, method: string, url: string): boolean =>
  allows(asks, at, peer, `${method} ${url.split("?", 1)[0]}`);
