import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import { createAddressManager } from "../address/manager.ts";
import { createDnsManager } from "../dns/manager.ts";
import type { Service } from "../env.ts";
import { createAuthorityService } from "../identity/authority/authority.ts";
import { createPlacer } from "../placer/placer.ts";
import { createPresence } from "../presence/group/group.ts";
import { createAgentService } from "../storage/agent/agent.ts";
import { createStorageManager } from "../storage/manager/manager.ts";
import { kindOf, mayAsk, mayDesire, maySee, permissions, type ServiceKind, user } from "./permissions.ts";

const services = Object.keys(permissions) as ServiceKind[];
/** One or more of each kind, and names that only look like one. */
const peers = [
  "controller.shop",
  "controller.root",
  "host.h1",
  "agent.s1",
  "presence.1",
  "gateway",
  "authority",
  "placer",
  "storage-manager",
  "storage-manager.2",
  "address-manager",
  "dns-manager",
  "directory",
  "cell-manager",
  "ha-manager",
  "network-view-manager",
  "controller.web.shop",
  "tenancy",
].map(peerName);
const strangers = [
  "",
  ".",
  "controller",
  "controller.",
  "controller.shop.",
  "controller.shop..x",
  "controller.Shop",
  "xcontroller.shop",
  "controllers.shop",

  "host",
  "host.",
  "hosts.h1",
  "presence.0",
  "presence.x",
  "gateway.shop",
  "gateway.2",
  "gateway.",
  "personality",
  "personality.",
  "personality.x.y",
  "placer.x",
  "placer.",
  "placer.0",
  "authority.2",
  "tenancy.2",
  "agent",
  "storage-manager.x",
  "constructor",
  "__proto__",
  "toString",
].map(peerName);

const desired = [
  "subnet/u-1",
  "name/u-1",
  "placement/u-1",
  "protected/u-1",
  "settings",
  "zone",
  "doors",
  "pools",
  "instance/u-1",
  "security-group/u-1",
  "network-view",
  "network-slice/view.01",
  "fence/u-1",
  "probe/h1",
  "volume/u-1",
  "connection/u-1",
  "grant/u-1",
  "lease/u-1",
  "readers/u-1",

  "vm/u-1",
  "policy/shop",
  "policy/root",
  "enrolment/u-1",
  "entrance/shop",
  "identity/u-1",
  "host",
  "pin/host.h1",
  "",
  "succession/u-1",
  "root-vm",
  "beat",
  "beats",
  "requests/h1",
  "spare",
  "dedicated/h1",
  "unguarded",
  "alerts",

  "public/u-1",
  "reach/u-1",
  "want/shop.cells.internal/a/b",
  "cell/u-1",
  "life",
  "look/u-1",
  "owner/u-1",
  "limits/u-1",
];
const seen = [
  "addresses",
  "network",
  "network-beat",
  "host.h1/network-lease",
  "hosts",
  "storage",
  "server",
  "image/tiny",
  "host",
  "presence/self",
  "vote/h1",
  "dead/h1",
  "suspected/h1",
  "call",
  "presence.1/call",
  "location/10.0.0.1",
  "machines",
  "ha-manager/probe/h1",
  "heartbeat/h1",
  "ha-manager/requests/h1",

  "pin/host.h1",
  "entrance/shop",
  "controller.shop/x/u-1",
  "controller.root/x/u-1",
  "host.h1/x/u-1",
  "volume/u-1",
  "lease/u-1",
  "readers/u-1",
  "successor/u-1",
  "host.h1/succession/u-1",
  "",
];
const asked = [
  "POST /logins",
  "GET /logins",
  "DELETE /logins/current",
  "GET /domains?dryRun=x",
  "PUT /users/ab12",
  "GET /users/a/b",

  "GET /metrics",
  "GET /events",
  "POST /backup",
  "GET /backup",
  "POST /backup-order",
  "GET /backups",
  "GET /backups/20261122T172010Z",
  "PUT /backups/20261122T172010Z",
  "DELETE /backups/20261122T172010Z",
  "GET /offers",
  "GET /rooms",
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
  "PUT /power/h1",
  "DELETE /power/h1",
  "GET /configuration",
  "PUT /configuration",
  "GET /zone",
  "PUT /zone/keys/transfer",
  "DELETE /zone/keys/transfer",
  "POST /power",
  "GET /hosts/h1/end",
  "PUT /hosts/h1/end",
  "GET /identity",
  "GET /status",
  "GET /images",
  "PUT /images/x",
  "GET /boot/d/kernel",

  "GET /counters",
  "POST /examine",
  "POST /exec",
  "GET /session",
  "PUT /cells/shop",
  "PUT /enrolments/u-1",
  "GET /peers",
  "POST /metrics",
  "GET /",
  "PUT /cells/root/model/root/controllers/shop-1",
  "DELETE /cells/root/model/root/controllers/shop?allowDestroy=x",
  "GET /cells/root/model/root/controllers/shop?state=true",
  "GET /cells/root/model/root/controllers",
  "GET /cells/root/model/root/controllers/shop/vm",
  "PUT /cells/root/model/root/controllers/%2e%2F",
  "PUT /cells/root/model/root/cells/shop",
  "PUT /cells/shop/model/root/controllers/shop",
  "POST /cells/root/model/root/controllers/shop",
  "DELETE /tickets/ab12",
  "PUT /tickets/ab12",
];

const controllers = ["controller.root", "controller.shop", "controller.web.shop"];
const everyController = (...what: readonly string[]): string[] =>
  controllers.flatMap((who) => what.map((each) => `${who} ${each}`));

/** Everything that is allowed, written out by hand: what is not here is refused. */
const expected: Readonly<Record<string, readonly string[]>> = {
  "address-manager desires": [...everyController("subnet/u-1"), "controller.root pools"],
  "dns-manager desires": [...everyController("name/u-1", "doors"), "controller.root zone"],
  "placer desires": [
    ...everyController("placement/u-1"),
    "controller.root settings",
    "controller.root spare",
    "controller.root dedicated/h1",
    "controller.root owner/u-1",
  ],
  "storage-manager desires": [
    ...everyController("connection/u-1", "grant/u-1", "volume/u-1"),
    "controller.root owner/u-1",
    "ha-manager fence/u-1",
  ],
  "ha-manager desires": [
    ...everyController("protected/u-1", "unguarded"),
    "controller.root settings",
    "ha-manager alerts",
  ],
  "agent desires": [
    ...["storage-manager", "storage-manager.2"].flatMap((who) =>
      ["lease/u-1", "readers/u-1", "volume/u-1"].map((key) => `${who} ${key}`),
    ),
    "host.h1 succession/u-1",
    "host.h1 beat",
    "ha-manager requests/h1",
  ],
  "host desires": [
    ...everyController("vm/u-1"),
    "controller.root policy/root",
    "controller.shop policy/shop",
    "controller.root root-vm",
    "controller.root pools",
    "ha-manager probe/h1",
    "ha-manager beats",
    "network-view-manager network-view",
    "network-view-manager network-slice/view.01",
  ],
  "presence desires": [],
  "directory desires": everyController("public/u-1", "reach/u-1", "want/shop.cells.internal/a/b"),
  "cell-manager desires": everyController("cell/u-1"),
  "controller desires": ["cell-manager life", "tenancy limits/u-1"],
  "tenancy desires": [...everyController("look/u-1"), "controller.root owner/u-1"],
  "authority desires": [...everyController("enrolment/u-1"), "controller.root entrance/shop"],
  "address-manager sees": own("addresses"),
  "dns-manager sees": own(),
  "placer sees": own("hosts"),
  "storage-manager sees": [...own("storage"), "ha-manager ha-manager/probe/h1", "ha-manager ha-manager/requests/h1"],
  "agent sees": [
    ...["storage-manager", "storage-manager.2"].flatMap((who) =>
      ["image/tiny", "lease/u-1", "readers/u-1", "server", "volume/u-1"].map((key) => `${who} ${key}`),
    ),
    "host.h1 host.h1/network-lease",
    "host.h1 successor/u-1",
    "host.h1 host.h1/succession/u-1",
    "host.h1 host.h1/x/u-1",
    "ha-manager heartbeat/h1",
    "ha-manager ha-manager/probe/h1",
    "ha-manager ha-manager/requests/h1",
  ],
  "host sees": [
    ...own("host"),
    "host.h1 host",
    "host.h1 location/10.0.0.1",
    "ha-manager host",
    "ha-manager machines",
    "ha-manager ha-manager/probe/h1",
    "ha-manager ha-manager/requests/h1",
    "placer host",
    "network-view-manager network",
    "network-view-manager network-beat",
    "presence.1 presence/self",
    "presence.1 presence.1/call",
  ],
  "presence sees": [
    "address-manager",
    "agent.s1",
    ...controllers,
    "dns-manager",
    "ha-manager",
    "host.h1",
    "network-view-manager",
    "placer",
    "presence.1",
    "storage-manager",
    "storage-manager.2",
  ]
    .map((who) => `${who} dead/h1`)
    .concat("host.h1 call", "presence.1 vote/h1", "ha-manager suspected/h1"),
  "directory sees": own(),
  "ha-manager sees": own(),
  "cell-manager sees": own(),
  "tenancy sees": own(),
  "controller sees": [],
  "authority sees": [
    ...own(),
    "authority pin/host.h1",
    "controller.root pin/host.h1",
    "host.h1 pin/host.h1",
    "host.h1 entrance/shop",
  ],
  "address-manager asks": gateway("GET /offers"),
  "network-view-manager desires": everyController("instance/u-1", "security-group/u-1"),
  "network-view-manager sees": [
    ...["controller.root", "controller.shop"].map((who) => `${who} ${who}/x/u-1`),
    ...["network-lease", "succession/u-1", "x/u-1"].map((what) => `host.h1 host.h1/${what}`),
  ],
  "network-view-manager asks": gateway("GET /configuration", "PUT /configuration"),
  "dns-manager asks": gateway("GET /zone", "PUT /zone/keys/transfer", "DELETE /zone/keys/transfer"),
  "ha-manager asks": gateway(
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
    "PUT /power/h1",
    "DELETE /power/h1",
  ),
  "placer asks": gateway("GET /offers", "GET /rooms"),
  "storage-manager asks": gateway("GET /offers"),
  "agent asks": [
    ...gateway("GET /status", "GET /images", "PUT /images/x", "GET /backups", "GET /backups/20261122T172010Z"),
    ...["PUT", "DELETE"].map((method) => `controller.root ${method} /backups/20261122T172010Z`),
    "controller.root GET /backups",
    "host.h1 GET /boot/d/kernel",
  ],
  "host asks": [
    ...["POST /power", "GET /identity"].map((what) => `ha-manager ${what}`),
    ...gateway("GET /status", "GET /counters", "POST /examine"),
    ...everyController("GET /status", "POST /examine", "POST /exec", "GET /session"),
  ],
  "presence asks": [
    ...gateway(),
    ...["controller.root", "ha-manager"].flatMap((who) => [`${who} GET /hosts/h1/end`, `${who} PUT /hosts/h1/end`]),
  ],
  "directory asks": gateway(),
  "cell-manager asks": gateway(),
  "tenancy asks": gateway(
    "PUT /tickets/ab12",
    "POST /logins",
    "DELETE /logins/current",
    "GET /domains?dryRun=x",
    "PUT /users/ab12",
  ),
  "controller asks": [
    ...asked.map((what) => `gateway ${what}`),
    "controller.root POST /backup",
    "cell-manager PUT /cells/root/model/root/controllers/shop-1",
    "cell-manager DELETE /cells/root/model/root/controllers/shop?allowDestroy=x",
    "cell-manager GET /cells/root/model/root/controllers/shop?state=true",
    "cell-manager GET /cells/root/model/root/controllers",
    ...everyController("DELETE /tickets/ab12"),
  ],
  "gateway desires": [],
  "gateway sees": [],
  "gateway asks": everyController("DELETE /tickets/ab12"),
  "authority asks": [
    ...gateway(),
    "controller.root PUT /enrolments/u-1",
    "controller.root POST /backup-order",
    ...peers.map((peer) => `${peer} GET /peers`),
  ],
};
/** What everybody sees, and what each sees of its own: there are keys of two controllers among those asked for. */
function own(...keys: readonly string[]): string[] {
  return [...everyController(...keys), ...["controller.root", "controller.shop"].map((who) => `${who} ${who}/x/u-1`)];
}
function gateway(...further: readonly string[]): string[] {
  const all = ["GET /metrics", "GET /events", "POST /backup", ...further].map((what) => `gateway ${what}`);
  return [...all, "controller.root POST /backup"];
}
const split = (what: string): [string, string] => [what.split(" ")[0] ?? "", what.split(" ")[1] ?? ""];

const verbs = { desires: desired, sees: seen, asks: asked } as const;
const allowed = (at: ServiceKind, verb: keyof typeof verbs, peer: (typeof peers)[number], what: string): boolean =>
  verb === "asks"
    ? mayAsk(at, peer, ...split(what))
    : verb === "desires"
      ? mayDesire(at, peer, what)
      : maySee(at, peer, what);

test("exactly what is written here is allowed, for every peer, service and thing to say or ask", () => {
  const found: Record<string, string[]> = {};
  for (const at of services)
    for (const [verb, things] of Object.entries(verbs) as [keyof typeof verbs, readonly string[]][])
      found[`${at} ${verb}`] = peers
        .flatMap((peer) => things.filter((what) => allowed(at, verb, peer, what)).map((what) => `${peer} ${what}`))
        .sort();
  const sorted = Object.fromEntries(Object.entries(expected).map(([at, all]) => [at, [...all].sort()]));
  assert.deepEqual(found, sorted);
});

test("names that only look like a service's are refused everything everywhere", () => {
  for (const peer of strangers) {
    assert.equal(kindOf(peer), null, peer);
    for (const at of services)
      for (const [verb, things] of Object.entries(verbs) as [keyof typeof verbs, readonly string[]][])
        for (const what of [...things, `${peer}/x/u-1`])
          assert.ok(!allowed(at, verb, peer, what), `${peer} ${at} ${what}`);
  }
});

test("the certificate of a personality opens nothing, not even what everybody may ask", () => {
  const caas = peerName("personality.caas");
  assert.equal(kindOf(caas), "personality");
  for (const at of services)
    for (const [verb, things] of Object.entries(verbs) as [keyof typeof verbs, readonly string[]][])
      for (const what of [...things, `${caas}/x/u-1`, "GET /peers", "GET /status"])
        assert.ok(!allowed(at, verb, caas, what), `${at} ${verb} ${what}`);
});

test("keys and paths are matched as wholes", () => {
  const shop = peerName("controller.shop");
  for (const key of [
    "vm/u-1/x",
    "xvm/u-1",
    "vm/",
    "vm/u_1",
    "vm/u-1\n",
    `vm/${"u".repeat(65)}`,
    "policy/shop/x",
    "policy/",
  ])
    assert.ok(!mayDesire("host", shop, key), key);
  assert.ok(!maySee("placer", shop, "controller.shopper/x"));
  assert.ok(!maySee("placer", shop, "controller.shop"));
  assert.ok(mayAsk("host", shop, "GET", "/session?x=1") && !mayAsk("host", shop, "GET", "/session/x"));
  assert.ok(!mayAsk("agent", peerName("host.h1"), "GET", "/boot/a/b/c"));
});

test("every service's own checks are those of the table", () => {
  const self = peerName("self");
  const one = <State>(service: Service<State>) => {
    const state = service.restore({ records: new Map(), desiredAt: new Map() });
    return {
      accepts: (peer: (typeof peers)[number], key: string) => service.accepts(peer, key),
      entitled: (peer: (typeof peers)[number], key: string) => service.entitled(state, peer, key),
    };
  };
  const pools = { internalPool: "10.64.0.0/10", externalPool: "198.18.0.0/15" };
  const real: Partial<Record<ServiceKind, ReturnType<typeof one>>> = {
    "address-manager": one(createAddressManager({ self, ...pools, controllers: [] })),
    "dns-manager": one(createDnsManager({ self })),
    placer: one(createPlacer({ self, hosts: [] })),
    "storage-manager": one(createStorageManager({ self, agents: [] })),
    presence: one(createPresence({ self, members: [peerName("presence.1")], hosts: [] })),
    authority: one(createAuthorityService({ self })),
    agent: one(createAgentService({ self, server: "s1", address: "10.0.2.1" } as never)),
  };
  for (const [at, service] of Object.entries(real) as [ServiceKind, ReturnType<typeof one>][])
    for (const peer of [...peers, ...strangers]) {
      for (const key of desired)
        assert.equal(service.accepts(peer, key), mayDesire(at, peer, key), `${at} ${peer} ${key}`);
      for (const key of seen) assert.equal(service.entitled(peer, key), maySee(at, peer, key), `${at} ${peer} ${key}`);
    }
});

test("without a certificate nothing but a cell's own part of the contract may be asked, and of its controller alone", () => {
  for (const url of ["/cells/shop", "/cells/shop/model/shop/web?dry-run=true", "/cells/shop/sessions"])
    assert.equal(mayAsk("controller", user, "PUT", url), true, url);
  for (const url of ["/metrics", "/events", "/cells", "/cells/", "/"])
    assert.equal(mayAsk("controller", user, "GET", url), false, url);
  for (const at of services) {
    if (at === "controller") continue;
    assert.equal(mayAsk(at, user, "GET", "/cells/shop"), false, at);
    assert.equal(mayAsk(at, user, "GET", "/peers"), false, at);
  }
  assert.equal(kindOf(user), null, "no certificate can carry the name");
});
