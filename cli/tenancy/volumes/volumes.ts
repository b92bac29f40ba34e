import type {
  GranteeKind,
  NewShare,
  PersistentVolume,
  Share,
  VolumeDetails,
  VolumeRight,
  VolumeSource,
} from "../../../model/contract/tenancy/volumes/volumes.ts";
import { type Client, Refused } from "../../connection/client.ts";
import { type Context, cellOfPath } from "../../context/context.ts";
import { usage } from "../../terminal/failure.ts";
import { pathOf } from "../names.ts";
import { columns, found, print } from "../people.ts";
import { type Brought, bring } from "./uploads.ts";

/* `cells volume`: persistent volumes, which CaaS has. People write names; what is said to the cloud are UIDs, which a list tells. */

/** A gateway without CaaS before it has none of these requests. */
async function asking<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (
      error instanceof Refused &&
      error.status === 404 &&
      error.message.startsWith("there is no") &&
      /of \/volumes/.test(error.message)
    )
      throw usage(
        "the gateway itself has no persistent volumes: log in to CaaS, with `cells login USER@DOMAIN --url URL`",
      );
    throw error;
  }
}

/** Its UID, or its name where no other one that is seen has it. */
async function volumeNamed(client: Client, written: string): Promise<PersistentVolume> {
  if (written.startsWith("pv-")) return client.ask("readVolume", { parameters: { uid: written } });
  const named = await client.ask("listVolumes", { parameters: {}, query: { name: written, limit: 2 } });
  const [only] = named;
  if (only !== undefined && named.length === 1) return only;
  if (named.length > 1)
    throw usage(
      `there are several volumes ${written}: name one by its UID, ${named.map(({ uid }) => uid).join(" or ")}`,
    );
  return found("volume", written, await client.all("listVolumes"), ({ name }) => name);
}
const withVolume = <T>(
  context: Context,
  written: string,
  work: (client: Client, volume: PersistentVolume) => Promise<T>,
): Promise<T> =>
  asking(async () => {
    const client = context.client();
    return work(client, await volumeNamed(client, written));
  });

const sizeText = (sizeMiB: number | null): string => (sizeMiB === null ? "" : `${sizeMiB} MiB`);
const shareText = ({ kind, path, right }: NewShare): string =>
  `${right} for ${kind}${path === undefined ? "" : ` ${path}`}`;

export interface Found {
  readonly tag?: readonly string[];
  readonly account?: string;
  readonly least?: number;
  readonly most?: number;
  readonly since?: string;
  readonly until?: string;
}
export const listVolumes = (
  context: Context,
  words: readonly string[],
  { tag = [], account, least, most, since, until }: Found,
): Promise<void> =>
  asking(async () => {
    const all = await context.client().all("listVolumes", {
      ...(words.length === 0 ? {} : { text: words.join(" ") }),
      ...(tag.length === 0 ? {} : { tag }),
      ...(account === undefined ? {} : { account: pathOf(account) }),
      ...(least === undefined ? {} : { leastMiB: least }),
      ...(most === undefined ? {} : { mostMiB: most }),
      ...(since === undefined ? {} : { since }),
      ...(until === undefined ? {} : { until }),
    });
    const rows = all.map((each) => [
      each.name,
      each.uid,
      sizeText(each.sizeMiB),
      each.account ?? "the operator's",
      each.rights.join(","),
      each.tags.join(" "),
    ]);
    print(context, all, all.length === 0 ? "no persistent volumes" : columns(rows));
  });

const detailText = (volume: VolumeDetails): string => {
  const { name, uid, account, made, text, tags, shares } = volume;
  return [
    `${name}  ${uid}, of ${account ?? "the operator"}, made ${made}`,
    ...(text === "" ? [] : [text]),
    ...(tags.length === 0 ? [] : [`tags: ${tags.join(" ")}`]),
    columns(
      volume.versions.map(({ number, sizeMiB, phase, reason, reference }) => [
        `${number === volume.version ? "*" : " "} version ${number}`,
        sizeText(sizeMiB),
        reason === null ? phase : `${phase}: ${reason}`,
        reference,
      ]),
    ),
    ...(shares ?? []).map((share) => `shared: ${shareText(share)} (${share.id})`),
  ].join("\n");
};
const printVolume = (context: Context, volume: VolumeDetails): void => print(context, volume, detailText(volume));

export const showVolume = (context: Context, written: string): Promise<void> =>
  withVolume(context, written, async (client, { uid }) =>
    printVolume(context, await client.ask("readVolume", { parameters: { uid } })),
  );

export interface Source extends Brought {
  readonly size?: number;
  readonly image?: string;
  readonly from?: string;
  readonly of?: string;
  readonly readOnly?: true;
}
async function sourceOf(client: Client, source: Source): Promise<VolumeSource> {
  const { size, image, from, of, readOnly, upload, url } = source;
  if ((upload !== undefined || url !== undefined) && (image !== undefined || from !== undefined || of !== undefined))
    throw usage("--upload, --url, --image, --from and --of each say where it comes from: give one");
  if (from !== undefined && of !== undefined) throw usage("--from and --of both say where it comes from: give one");
  const common = {
    ...(size === undefined ? {} : { sizeMiB: size }),
    ...(image === undefined ? {} : { image }),
    ...(readOnly === true ? { access: "ro" as const } : {}),
  };
  if (from !== undefined) {
    const { cell, path, whole } = cellOfPath(from);
    if (whole) throw usage("--from names a volume of a cell, as shop/db/disk");
    return { ...common, from: { cell, path } };
  }
  if (of === undefined) return common;
  const [, name = of, version] = /^(.*)@([1-9][0-9]*)$/.exec(of) ?? [];
  const { uid } = await volumeNamed(client, name);
  return { ...common, from: { volume: uid, ...(version === undefined ? {} : { version: Number(version) }) } };
}
export interface Named {
  readonly tag?: readonly string[];
  readonly text?: string;
  readonly account?: string;
}
export const createVolume = (context: Context, name: string, options: Source & Named): Promise<void> =>
  asking(async () => {
    const { tag, text, account } = options;
    const client = context.client();
    const body = {
      name,
      ...(await sourceOf(client, options)),
      ...(tag === undefined ? {} : { tags: tag }),
      ...(text === undefined ? {} : { text }),
      ...(account === undefined ? {} : { account: pathOf(account) }),
    };
    const made = await withBytes(context, client, options, (brought) =>
      client.changed("addVolume", { parameters: {}, body: { ...body, ...brought } }),
    );
    printVolume(context, made);
  });
export const addVersion = (context: Context, written: string, source: Source): Promise<void> =>
  withVolume(context, written, async (client, { uid }) => {
    const body = await sourceOf(client, source);
    const made = await withBytes(context, client, source, (brought) =>
      client.ask("addVolumeVersion", { parameters: { uid }, body: { ...body, ...brought } }),
    );
    printVolume(context, made);
  });
/** Of what was brought nothing stays where no volume is made of it. */
async function withBytes<T>(
  context: Context,
  client: Client,
  source: Source,
  work: (brought: Pick<VolumeSource, "upload">) => Promise<T>,
): Promise<T> {
  const brought = await bring(context, client, source);
  if (brought === null) return work({});
  try {
    return await work({ upload: brought.id });
  } catch (error) {
    // Where the answer is lost the volume may be made of it.
    if (error instanceof Refused && error.status < 500)
      await client.ask("removeUpload", { parameters: { id: brought.id } }).catch(() => undefined);
    throw error;
  }
}

export interface Changed {
  readonly name?: string;
  readonly tag?: readonly string[];
  readonly text?: string;
  readonly size?: number;
  readonly standsFor?: number;
}
export const changeVolume = (context: Context, written: string, change: Changed): Promise<void> =>
  withVolume(context, written, async (client, { uid }) => {
    const { name, tag, text, size, standsFor } = change;
    const body = {
      ...(name === undefined ? {} : { name }),
      ...(tag === undefined ? {} : { tags: tag }),
      ...(text === undefined ? {} : { text }),
      ...(size === undefined ? {} : { sizeMiB: size }),
      ...(standsFor === undefined ? {} : { version: standsFor }),
    };
    if (Object.keys(body).length === 0) throw usage("say what changes: --name, --tag, --text, --size or --stands-for");
    printVolume(context, await client.ask("changeVolume", { parameters: { uid }, body }));
  });

export type Grantee = { readonly [K in Exclude<GranteeKind, "all">]?: string } & { readonly all?: true };
function granteeOf({ cell, account, domain, all }: Grantee): Pick<NewShare, "kind" | "path"> {
  const named: readonly Pick<NewShare, "kind" | "path">[] = [
    ...(cell === undefined ? [] : [{ kind: "cell" as const, path: cell }]),
    ...(account === undefined ? [] : [{ kind: "account" as const, path: pathOf(account) }]),
    ...(domain === undefined ? [] : [{ kind: "domain" as const, path: pathOf(domain) }]),
    ...(all === true ? [{ kind: "all" as const }] : []),
  ];
  const [only] = named;
  if (only === undefined || named.length > 1) throw usage("say with whom: one of --cell, --account, --domain, --all");
  return only;
}
export const shareVolume = (context: Context, written: string, right: VolumeRight, grantee: Grantee): Promise<void> =>
  withVolume(context, written, async (client, { uid }) => {
    const body: NewShare = { ...granteeOf(grantee), right };
    printVolume(context, await client.ask("shareVolume", { parameters: { uid }, body }));
  });
export const unshareVolume = (context: Context, written: string, right: VolumeRight, grantee: Grantee): Promise<void> =>
  withVolume(context, written, async (client, { uid, name }) => {
    const wanted = { ...granteeOf(grantee), right };
    const { shares } = await client.ask("readVolume", { parameters: { uid } });
    const share = (shares ?? []).find(
      (each: Share) => each.kind === wanted.kind && each.path === wanted.path && each.right === right,
    );
    if (share === undefined) throw usage(`${name} is not shared: ${shareText(wanted)}`);
    printVolume(context, await client.ask("unshareVolume", { parameters: { uid, id: share.id } }));
  });

export const deleteVolume = (
  context: Context,
  written: string,
  { allowDestroy, dryRun = false }: { readonly allowDestroy?: string; readonly dryRun?: boolean },
): Promise<void> =>
  withVolume(context, written, async (client, { uid, name }) => {
    const query = { ...(allowDestroy === undefined ? {} : { allowDestroy }), ...(dryRun ? { dryRun } : {}) };
    const gone = await client.ask("deleteVolume", { parameters: { uid }, query });
    const used = gone.users.length === 0 ? "" : `; used by ${gone.users.join(", ")}`;
    const left = gone.stays === true ? "; its bytes stay with the provider until its clones are gone" : "";
    const done = `${name} is deleted; copies of it stay${left}${used}`;
    print(context, gone, dryRun ? `${name} would be deleted${used}` : done);
  });
