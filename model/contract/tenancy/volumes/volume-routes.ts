import { gives, may, type Route, route, sends, several } from "../../route.ts";
import { askedTime, boolean, integer, text } from "../../schema.ts";
import { givesPages, paged } from "../paged.ts";
import { uploadRoutes } from "./uploads.ts";
import * as volumes from "./volumes.ts";

/* The rows of the table of routes (`../../routes.ts`) that CaaS serves itself, and those of bytes that volumes are made of. What they change stands in the primary cell. */

const once = {
  "Idempotency-Key": {
    schema: text(),
    doc: "Names this request, 1 to 200 printable characters that are chosen anew for each: asked for again by the same user under the same key, it makes no second one, and answers with the first.",
  },
};

export const volumeRoutes = {
  listVolumes: route("GET /volumes", "tenant", "caas", {
    doc: "Persistent volumes that the asker may see, in pages: those of accounts in his reach, and what is shared with him.",
    query: {
      text: may(text(1024), "With words that begin like all of these, in name, tags or text."),
      tag: several(text(128), "With this tag. It may be given several times: with all of them."),
      name: may(text(63), "With this name."),
      account: may(text(2048), "Of this account, by its path."),
      leastMiB: may(integer(), "So large at least."),
      mostMiB: may(integer(), "So large at most."),
      since: may(askedTime, "Made then or later."),
      until: may(askedTime, "Made before."),
      ...paged,
    },
    answer: givesPages(volumes.persistentVolume),
  }),
  addVolume: route("POST /volumes", "tenant", "caas", {
    doc: "A new one: empty, of an image, of an upload, a clone of another one's version, or harvested from a volume of a cell.",
    more: "Harvested, it is a copy in the primary cell and a grant in the volume's own, with `x.hold`: both are made before the answer, and the volume's cell may be deleted right away. The bytes are there when its version is `ready`, for which a VM that writes has to be off. Refused with 409 `conflict` for a name that the account has.",
    headers: once,
    body: sends(volumes.newVolume),
    answer: gives(volumes.volumeDetails, 201),
  }),
  readVolume: route("GET /volumes/{uid}", "tenant", "caas", {
    doc: "One of them, with its versions, and to who manages it with whom it is shared.",
    answer: gives(volumes.volumeDetails),
  }),
  changeVolume: route("PATCH /volumes/{uid}", "tenant", "caas", {
    doc: "Another name, tags or text, a larger size, or another version that its name stands for.",
    body: sends(volumes.volumeChange),
    answer: gives(volumes.volumeDetails),
  }),
  addVolumeVersion: route("POST /volumes/{uid}/versions", "tenant", "caas", {
    doc: "A new version, for which its name stands from then on. Those before stay, and whatever was made of them.",
    body: sends(volumes.volumeSource),
    answer: gives(volumes.volumeDetails),
  }),
  deleteVolume: route("DELETE /volumes/{uid}", "tenant", "caas", {
    doc: "Deletes it with all its versions. Copies of it stay, with what they need of it.",
    more: "Refused with 409 `change/destroys-data` unless `allowDestroy` names it, by its name or UID; the refusal says who uses it.",
    query: {
      allowDestroy: may(text(64), "Its name or UID: its data is lost."),
      dryRun: may(boolean, "Says who uses it, and changes nothing."),
    },
    answer: gives(volumes.volumeDeletion),
  }),
  shareVolume: route("POST /volumes/{uid}/shares", "tenant", "caas", {
    doc: "Shares it with a cell, an account, a domain with all below it, or all. Asked for again it is the same.",
    body: sends(volumes.newShare),
    answer: gives(volumes.volumeDetails),
  }),
  unshareVolume: route("DELETE /volumes/{uid}/shares/{id}", "tenant", "caas", {
    doc: "Takes that back, for the future: copies that were made stay whose they are.",
    answer: gives(volumes.volumeDetails),
  }),
  ...uploadRoutes,
} as const satisfies { readonly [name: string]: Route };
