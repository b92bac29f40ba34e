// SPDX-License-Identifier: Apache-2.0
/* What is outside of the installation, and whom to believe that comes from there. */
#pragma once

static __always_inline __u32 kind_of(__be32 address)
{
  struct network_key key = {.prefix_length = 32, .address = address};
  __u32 *kind = bpf_map_lookup_elem(&networks, &key);
  return kind ? *kind : ELSEWHERE;
}

static __always_inline struct outside *way_out(void)
{
  __u32 zero = 0;
  struct outside *out = bpf_map_lookup_elem(&outside, &zero);
  return out && out->device ? out : NULL;
}

/* The number of who gets what goes outside; 0: nobody does. */
static __always_inline __u64 router_in_use(void)
{
  struct outside *out = way_out();
  return out ? *(volatile __u64 *)&out->router : 0;
}

static __always_inline int is_router(__u64 mac)
{
  int found = 0;
#pragma unroll
  for (int i = 0; i < ROUTERS; i++) {
    __u32 at = i;
    struct router *router = bpf_map_lookup_elem(&routers, &at);
    if (router && router->mac && router->mac == mac)
      found = 1;
  }
  return found;
}

/*
 * May a frame be believed whose source is nowhere in the installation, as far as this host knows? From an upstream router,
 * for an external address, and from an address that is not the installation's own. No sender's host has looked at it.
 */
static __noinline int believe_outside(struct check *c)
{
  __be32 source = c->packet->source;
  struct outside *out = way_out();
  if (!out || out->device != c->device || kind_of(c->self->address) != EXTERNAL)
    return NO_LOCATION;
  int routed = is_router(c->wire & ~OUTSIDE);
  if (kind_of(source) != ELSEWHERE || bpf_map_lookup_elem(&endpoints, &source))
    return routed || (c->wire & OUTSIDE) ? INSIDE_FROM_OUTSIDE : NO_LOCATION;
  return routed ? PASS : NOT_FROM_ROUTER;
}

/*
 * Not from the machine `host`, where its source is: a host that takes another's address, somebody outside who takes one of
 * the inside, or an upstream router beside the one that was heard before.
 */
static __noinline int other_host(const struct check *c, __u64 host)
{
  struct outside *out = way_out();
  if (!out || out->device != c->device)
    return WRONG_HOST;
  int routed = is_router(c->wire & ~OUTSIDE);
  if (!((host ^ c->wire) & OUTSIDE) && is_router(host & ~OUTSIDE))
    return routed ? PASS : NOT_FROM_ROUTER;
  return routed || (c->wire & OUTSIDE) ? INSIDE_FROM_OUTSIDE : WRONG_HOST;
}
