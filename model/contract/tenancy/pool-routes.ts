import { gives, may, type Route, route, sends } from "../route.ts";
import { record, text } from "../schema.ts";
import { givesPages, paged } from "./paged.ts";
import * as pools from "./pools.ts";

/* The rows of the table of routes (`../routes.ts`) about whole hosts. What they change are elements of cells, as a specification has them. */

const gone = record<{ readonly removed: string }>({ removed: text() });

export const poolRoutes = {
  listFlavors: route("GET /flavors", "tenant", "gateway", {
    doc: "Kinds of whole hosts that can be had for pools, with what one costs and how many are free; to the operator also which hosts are of each.",
    more: "Refused with 409 `conflict` to a user whose account has no cell yet.",
    query: paged,
    answer: givesPages(pools.listedFlavor),
  }),
  listDedications: route("GET /dedications", "tenant", "gateway", {
    doc: "What is dedicated: to the operator all of it, to a user what is his account's or that of a domain above it.",
    more: "Names of hosts are the operator's to know: to others `of` of a host is null. Refused as `GET /flavors` is.",
    query: {
      ...paged,
      cell: may(
        text(53),
        "Only what machines of this cell may ask for: what is its account's or that of a domain above it. 404: there is no such cell.",
      ),
    },
    answer: givesPages(pools.listedDedication),
  }),
  addFlavor: route("POST /flavors", "operator", "gateway", {
    doc: "A new host flavour: the element `root/flavors/<name>`. A host goes into it by `x.flavor` of its own element.",
    more: "409 `conflict`: there is one of that name.",
    body: sends(pools.newFlavor),
    answer: gives(pools.listedFlavor, 201),
  }),
  removeFlavor: route("DELETE /flavors/{name}", "operator", "gateway", {
    doc: "Deletes a host flavour that no host is of and no pool asks for.",
    answer: gives(gone),
  }),
  addDedication: route("POST /dedications", "operator", "gateway", {
    doc: "Gives a zone, pod, cluster or host to a domain, or to an account in it: an element of `root/dedications`. What the very same owner has below goes into it.",
    more: "400: there is no such domain or account, or no such place. 409 `conflict`: it is dedicated already, what it stands in or what stands in it is another's, or VMs of others run there, which are named.",
    body: sends(pools.newDedication),
    answer: gives(pools.dedicated, 201),
  }),
  releaseDedication: route("DELETE /dedications/{uid}", "operator", "gateway", {
    doc: "Takes it back. VMs that run there stay.",
    answer: gives(gone),
  }),
  listPools: route("GET /pools", "tenant", "gateway", {
    doc: "Pools of all cells that the asker may see.",
    more: "Cells that do not answer are left out, and named in `Cells-Missing`.",
    query: paged,
    answer: {
      ...givesPages(pools.poolSummary),
      headers: {
        ...givesPages(pools.poolSummary).headers,
        "Cells-Missing": { schema: text(), doc: "Names of cells that did not answer, with commas in between." },
      },
    },
  }),
  addPool: route("POST /pools", "tenant", "gateway", {
    doc: "A new pool in a cell, `<cell>/<name>`.",
    body: sends(pools.newPool),
    answer: gives(pools.poolSummary, 201),
  }),
  readPool: route("GET /pools/{uid}", "tenant", "gateway", { doc: "One of them.", answer: gives(pools.poolSummary) }),
  changePool: route("PUT /pools/{uid}", "tenant", "gateway", {
    doc: "How its hosts are used from now on; what is left out is as elsewhere.",
    body: sends(pools.poolUse),
    answer: gives(pools.poolSummary),
  }),
  deletePool: route("DELETE /pools/{uid}", "tenant", "gateway", {
    doc: "Deletes a pool that has no hosts.",
    more: "409 names them.",
    answer: gives(gone),
  }),
  listPoolHosts: route("GET /pools/{uid}/hosts", "tenant", "gateway", {
    doc: "Its hosts, by the names that its owner gave them.",
    query: paged,
    answer: givesPages(pools.poolHostSummary),
  }),
  addPoolHost: route("POST /pools/{uid}/hosts", "tenant", "gateway", {
    doc: "Takes a free host of a flavour into the pool. It is disabled at first.",
    more: "Refused with 409 `conflict` where none is free, or the account would have too many units; nothing stays then. A specification that asks for one waits instead. 503: nobody has said in time; nothing stays either.",
    body: sends(pools.newPoolHost),
    answer: gives(pools.poolHostSummary, 201),
  }),
  changePoolHost: route("PUT /pools/{uid}/hosts/{name}", "tenant", "gateway", {
    doc: "Whether new VMs come there. What runs goes on.",
    body: sends(pools.poolHostChange),
    answer: gives(pools.poolHostSummary),
  }),
  removePoolHost: route("DELETE /pools/{uid}/hosts/{name}", "tenant", "gateway", {
    doc: "Gives a host back that is disabled and empty.",
    more: "Otherwise it is refused, with what is there.",
    answer: gives(gone),
  }),
  readAuthorised: route("GET /pools/{uid}/authorised", "tenant", "gateway", {
    doc: "Accounts whose VMs may stand at its hosts.",
    answer: gives(pools.authorisedOf),
  }),
  setAuthorised: route("PUT /pools/{uid}/authorised", "tenant", "gateway", {
    doc: "These accounts, in place of those before. VMs of others that run there stay, and are not started there again.",
    body: sends(pools.authorisedOf),
    answer: gives(pools.authorisedOf),
  }),
  readHoldings: route("GET /cells/{cell}/holdings", "tenant", "root-controller", {
    doc: "Host flavours and dedications, where the gateway asks for them.",
    answer: gives(pools.holdings),
  }),
} as const satisfies { readonly [name: string]: Route };
