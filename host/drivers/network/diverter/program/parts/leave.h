// SPDX-License-Identifier: Apache-2.0
/* Counters, and the ways on which a packet goes: to a tap, over the wire, outside. */
#pragma once

static __always_inline struct interface_counters *counters_of(const struct interface_state *self)
{
  return bpf_map_lookup_elem(&counters, &self->slot);
}

static __always_inline int drop(const struct interface_state *self, __u32 reason)
{
  struct interface_counters *c = counters_of(self);
  /* Linux 6.1 forgets what it knew of a number that was kept on the stack: so it is asked here, whoever asked before. */
  asm volatile("" : "+r"(reason));
  if (c && reason < DROP_REASONS)
    c->drops[reason]++;
  return TC_ACT_SHOT;
}

/* --- leaving ---------------------------------------------------------------------------------------------------- */

static __always_inline int send_to(struct __sk_buff *skb, const __u8 *to, const __u8 *from, __u32 ifindex)
{
  __u8 *macs = (void *)(long)skb->data;
  if ((void *)(macs + 12) > (void *)(long)skb->data_end)
    return TC_ACT_SHOT;
  __builtin_memcpy(macs, to, 6);
  __builtin_memcpy(macs + 6, from, 6);
  return bpf_redirect(ifindex, 0);
}

static __always_inline void count_sent(struct __sk_buff *skb, const struct interface_state *self)
{
  struct interface_counters *c = counters_of(self);
  if (c) {
    c->sent_packets++;
    c->sent_bytes += skb->len;
  }
}

/* Over the wire to the machine with this MAC. */
static __always_inline int leave(struct __sk_buff *skb, const struct interface_state *self, const __u8 *host,
                                 const struct config *cfg)
{
  count_sent(skb, self);
  return send_to(skb, host, cfg->host_mac, cfg->uplink);
}

static __noinline int leave_outside(struct __sk_buff *skb, const struct interface_state *self, __u64 router)
{
  __u8 next[6] = {(router & ~OUTSIDE) >> 40, router >> 32, router >> 24, router >> 16, router >> 8, router};
  struct outside *out = way_out();
  if (!out)
    return drop(self, NO_ROUTER);
  count_sent(skb, self);
  return send_to(skb, next, out->mac, out->device);
}

/* To the machine of which that is the number. */
static __always_inline int leave_by(struct __sk_buff *skb, const struct interface_state *self, __u64 host,
                                    const struct config *cfg)
{
  if (host & OUTSIDE)
    return leave_outside(skb, self, host);
  __u8 next[6] = {host >> 40, host >> 32, host >> 24, host >> 16, host >> 8, host};
  return leave(skb, self, next, cfg);
}

/*
 * The number of who gets what is for nobody here: the upstream router, if it comes from an external address and goes
 * outside; else the reason of the drop, which is smaller than any MAC's number.
 */
static __noinline __u64 find_router(__be32 from, __be32 to)
{
  if (!way_out() || kind_of(from) != EXTERNAL || kind_of(to) != ELSEWHERE)
    return NO_LOCATION;
  __u64 router = router_in_use();
  return router ? router : NO_ROUTER;
}

static __always_inline int deliver(struct __sk_buff *skb, __u32 ifindex, const struct interface_state *to,
                                   const struct config *cfg)
{
  struct interface_counters *c = counters_of(to);
  if (c) {
    c->received_packets++;
    c->received_bytes += skb->len;
  }
  return send_to(skb, to->mac, cfg->gateway_mac, ifindex);
}
