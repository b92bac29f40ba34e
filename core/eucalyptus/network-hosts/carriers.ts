/** Who carries a cluster to the outside: gateways, elastic addresses. Never two at a time. */
export interface NetworkHosts {
  readonly active: string | null;
  /** Hosts that were, each with the version of the view that first did not name it: until its word about that, it may still be. */
  readonly leaving: ReadonlyMap<string, number>;
  /** Version of the first view by which whoever is named carries under a lease alone. Null: without one, for as long as it is named. */
  readonly leasedSince: number | null;
  /** Hosts that have said that such a view has come: without a lease they carry nothing, whatever else they hear. */
  readonly leased: ReadonlySet<string>;
}
export const noNetworkHost: NetworkHosts = Object.freeze({
  active: null,
  leaving: new Map<string, number>(),
  leasedSince: null,
  leased: new Set<string>(),
});

/** Of the MANAGED modes. */
export type CarrierRequest =
  /** Who carries a cluster from now on; null: nobody. Refused while another one may still do. */
  | { readonly kind: "network-host"; readonly cluster: string; readonly host: string | null }
  /** Whether whoever carries it does so under a lease alone from the next view on. */
  | { readonly kind: "lease"; readonly cluster: string; readonly isLeased: boolean }
  /** A host says that it carries it under a lease alone, by a view of this version. */
  | { readonly kind: "bound"; readonly cluster: string; readonly host: string; readonly version: number }
  /** Its lease is over, and it carries nothing without one. Refused where it has never said so. */
  | { readonly kind: "lapsed"; readonly cluster: string; readonly host: string };

/**
 * @param version of the next view
 * @param unsettled why nobody is named; null: somebody may be
 * @returns the same where nothing changes; a sentence: why not
 */
export function carriersAfter(
  hosts: NetworkHosts,
  request: CarrierRequest,
  version: number,
  unsettled: () => string | null,
): NetworkHosts | string {
  const { active, leaving, leasedSince, leased } = hosts;
  const { cluster } = request;
  switch (request.kind) {
    case "network-host": {
      const { host } = request;
      if (active === host) return hosts;
      const why = unsettled();
      if (why !== null) return why;
      const others = [...leaving.keys(), ...(active === null ? [] : [active])].filter((each) => each !== host);
      if (host !== null && others.length > 0)
        return `${others.join(", ")} may still carry the cluster ${cluster}, and has to say that it does not`;
      const left = new Map([...leaving].filter(([name]) => name !== host));
      if (active !== null) left.set(active, version);
      return { ...hosts, active: host, leaving: left };
    }
    case "lease":
      if ((leasedSince !== null) === request.isLeased) return hosts;
      // Who said so of an earlier view may have had one since that says otherwise.
      return { ...hosts, leasedSince: request.isLeased ? version : null, leased: new Set<string>() };
    case "bound":
      return leasedSince === null || request.version < leasedSince || leased.has(request.host)
        ? hosts
        : { ...hosts, leased: new Set([...leased, request.host]) };
    case "lapsed":
      if (!leased.has(request.host))
        return `${request.host} has never said that it carries the cluster ${cluster} under a lease`;
      return active === request.host || leaving.has(request.host) ? withoutCarrier(hosts, request.host) : hosts;
  }
}

/** It has said that it does not carry the cluster any more. */
export const withoutLeaving = (hosts: NetworkHosts, host: string): NetworkHosts => ({
  ...hosts,
  leaving: new Map([...hosts.leaving].filter(([name]) => name !== host)),
});
/** Nothing of a host is waited for any more: it is fenced, or its lease is over. */
export const withoutCarrier = (hosts: NetworkHosts, host: string): NetworkHosts => ({
  ...withoutLeaving(hosts, host),
  active: hosts.active === host ? null : hosts.active,
});
/** After a loss. Who has said that it is bound may have carried without a lease since, by a view of which an older store knows nothing. */
export const nobodyBound = (hosts: NetworkHosts, version: number): NetworkHosts =>
  hosts.leasedSince === null ? hosts : { ...hosts, leasedSince: version, leased: new Set<string>() };
/** After a loss. @param now who says that it carries the cluster. @param spoke all that have said whether they do */
export function carriedOn(
  hosts: NetworkHosts,
  now: readonly string[],
  spoke: readonly string[],
  version: number,
): NetworkHosts {
  const leaving = new Map([...hosts.leaving].filter(([name]) => !spoke.includes(name)));
  const [only = null] = now;
  const active = now.length === 1 && leaving.size === 0 ? only : null;
  if (active === null) for (const host of now) leaving.set(host, version);
  return { ...hosts, active, leaving };
}
/** As a record; null: there is nothing to keep. */
export const storedCarriers = ({ active, leaving, leasedSince, leased }: NetworkHosts) =>
  active === null && leaving.size === 0 && leasedSince === null
    ? null
    : {
        active,
        leaving: [...leaving],
        ...(leasedSince === null ? {} : { leasedSince, leased: [...leased] }),
      };
export function restoredCarriers(stored: NonNullable<ReturnType<typeof storedCarriers>>): NetworkHosts {
  const { active, leaving, leasedSince = null, leased = [] } = stored;
  return { active, leaving: new Map(leaving), leasedSince, leased: new Set(leased) };
}
