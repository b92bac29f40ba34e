// SPDX-License-Identifier: Apache-2.0
/*
 * Interfaces of a cell that speak with the outside for other machines of the cell (`x.router`, `x.forwards`). A machine's own
 * interface judges its packets by rules, in both directions, as if it spoke with the outside itself; the router's only looks
 * whether they are between a machine that it routes for and a network that it may speak for.
 */
#pragma once

struct own_router {
  __u32 cell;
  __be32 inside; /* a machine of the cell, and somebody outside of the installation */
  __be32 outside;
  __be32 address; /* found: of the router's interface */
};

/* Is there an interface that takes what goes from the one to the other, and may it answer for the other one? */
__noinline int find_own_router(struct own_router *way)
{
  if (!way)
    return 0;
  __u32 cell = way->cell;
  __be32 outside = way->outside;
  struct identity_key machine = {.cell = cell, .address = way->inside};
  struct identities *known = bpf_map_lookup_elem(&identities, &machine);
  void *trie = bpf_map_lookup_elem(&rules, &cell);
  if (!known || !trie)
    return 0;
  struct policy_key key = {.prefix_length = 64, .kind = ROUTER, .from = known->subnet_identity};
  struct policy_entry *router = bpf_map_lookup_elem(trie, &key);
  if (!router)
    return 0;
  __be32 address = router->ranges[0].rule;
  key.prefix_length = 96;
  key.kind = FORWARDS;
  key.from = router->ranges[1].rule;
  key.to = outside;
  if (!bpf_map_lookup_elem(trie, &key))
    return 0;
  /* Who has an address of the installation speaks for himself. */
  if (kind_of(outside) != ELSEWHERE || bpf_map_lookup_elem(&endpoints, &outside) ||
      bpf_map_lookup_elem(&locations, &outside))
    return 0;
  way->address = address;
  return 1;
}

/* Is this interface the router between a machine of its cell and that address? */
static __noinline int routes_between(const struct interface_state *self, __be32 inside, __be32 outside)
{
  struct own_router way = {.cell = self->cell, .inside = inside, .outside = outside};
  return find_own_router(&way) && way.address == self->address;
}

/* Does a frame in the name of that address come from the machine where the receiver's router is? */
static __noinline int believe_own_router(const struct check *c, __be32 outside)
{
  struct own_router way = {.cell = c->self->cell, .inside = c->self->address, .outside = outside};
  if (c->here || !find_own_router(&way))
    return 0;
  __be32 address = way.address;
  struct location *location = bpf_map_lookup_elem(&locations, &address);
  return location && location->cell == c->self->cell && mac_number(location->mac) == c->wire;
}
