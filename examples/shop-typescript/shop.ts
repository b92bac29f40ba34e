// The shop of examples/shop, written in TypeScript: three tiers, each behind the one before.
//
//   cells plan examples/shop-typescript/shop.ts

import { cell, rule, volume } from "cells/model";
import ports from "./ports.json" with { type: "json" };
import { tier } from "./tier.ts";

// The image that every disk is a copy of. `tiny` is provided by the installation.
const golden = volume({ size: 64, access: "ro", import: "tiny" });

// Shown to the guest as a mounted file system; the image `tiny` reads under `serve` what it is to listen to.
const web = tier("web1", golden, { role: "web", serve: { http: 80 } });
const app = tier("app1", golden, { role: "app", serve: { tcp: ports.app } });
const db = tier("db1", golden, { role: "db", serve: { tcp: ports.database, udp: ports.names } });

export default cell("shop", {
  images: { golden },
  web,
  app,
  db,
  rules: {
    // Any machine of the web tier may open connections to the application. Its answers pass by themselves.
    webToApp: rule({
      address1: web.subnet,
      address2: app.interface,
      protocol: "tcp",
      port2: ports.app,
      direction: "1to2",
    }),
    appToDatabase: rule({
      address1: app.interface,
      address2: db.interface,
      protocol: "tcp",
      port2: ports.database,
      direction: "1to2",
    }),
    // web1 and app1 may ping each other; db1 answers no ping.
    pingWebApp: rule({ address1: web.subnet, address2: app.subnet, protocol: "icmp" }),
    // UDP from the application to the database, and not from the web tier.
    namesAppToDatabase: rule({
      address1: app.interface,
      address2: db.interface,
      protocol: "udp",
      port2: ports.names,
      direction: "1to2",
    }),
  },
});
