// SPDX-License-Identifier: Apache-2.0
/* ARP (RFC 826) of VMs, of the underlay, and of the network outside. */
#pragma once

struct arp {
  __be16 hardware;
  __be16 protocol;
  __u8 hardware_length;
  __u8 protocol_length;
  __be16 operation;
  __u8 sender_mac[6];
  __u8 sender[4];
  __u8 target_mac[6];
  __u8 target[4];
};

static __always_inline __be32 address_of(const __u8 *bytes)
{
  __be32 address;
  __builtin_memcpy(&address, bytes, 4);
  return address;
}

static __always_inline int arp_request(struct __sk_buff *skb, struct arp *arp)
{
  return !bpf_skb_load_bytes(skb, ETH_LENGTH, arp, sizeof(*arp)) && arp->hardware == bpf_htons(1) &&
         arp->protocol == bpf_htons(ETH_P_IP) && arp->hardware_length == 6 && arp->protocol_length == 4;
}

/* Turns a request into its answer: `target` is at `mac`. */
static __always_inline int answer_arp(struct __sk_buff *skb, struct arp *arp, const __u8 *mac, __u32 ifindex)
{
  __u8 asked[4], asker[6];
  __builtin_memcpy(asked, arp->target, 4);
  __builtin_memcpy(asker, arp->sender_mac, 6);
  __builtin_memcpy(arp->target, arp->sender, 4);
  __builtin_memcpy(arp->target_mac, asker, 6);
  __builtin_memcpy(arp->sender, asked, 4);
  __builtin_memcpy(arp->sender_mac, mac, 6);
  arp->operation = bpf_htons(2);
  if (bpf_skb_store_bytes(skb, ETH_LENGTH, arp, sizeof(*arp), 0))
    return TC_ACT_SHOT;
  return send_to(skb, asker, mac, ifindex);
}

/* Every address that the VM may know is at the gateway's MAC, whether it exists or not: there is nothing to learn. */
static __noinline int arp_from_vm(struct __sk_buff *skb, __u32 ifindex, const struct interface_state *self,
                                       const struct config *cfg)
{
  struct arp arp;
  if (!arp_request(skb, &arp))
    return drop(self, MALFORMED);
  __be32 sender = address_of(arp.sender), target = address_of(arp.target);
  if (!same_mac(arp.sender_mac, self->mac) || (sender != self->address && sender != 0))
    return drop(self, ROGUE_ARP);
  /* Nobody asks the VM, so its answers go nowhere; a question for its own address must stay unanswered (RFC 5227). */
  if (arp.operation != bpf_htons(1) || target == self->address)
    return TC_ACT_SHOT;
  if (target != self->gateway && ((target ^ self->address) & self->mask))
    return TC_ACT_SHOT;
  return answer_arp(skb, &arp, cfg->gateway_mac, ifindex);
}

/* An upstream router says where it is. While the one that is known answers, no other one is heard in its name. */
static __always_inline int hear_router(const struct arp *arp, __u32 back)
{
  __be32 sender = address_of(arp->sender);
  __u64 mac = mac_number(arp->sender_mac);
  struct outside *out = way_out();
  if (arp->operation != bpf_htons(2) || !out || out->device != back || !mac || (mac & OUTSIDE))
    return TC_ACT_OK;
#pragma unroll
  for (int i = 0; i < ROUTERS; i++) {
    __u32 at = i;
    struct router *router = bpf_map_lookup_elem(&routers, &at);
    if (router && router->address == sender && (!router->heard || router->mac == mac))
      router->heard = mac;
  }
  return TC_ACT_OK;
}

/* Whoever asks outside for an external address is answered, so that nobody there takes it for a free one. */
static __noinline int answer_outside(struct __sk_buff *skb, struct arp *arp, __u32 back)
{
  struct outside *out = way_out();
  if (!out || out->device != back || kind_of(address_of(arp->target)) != EXTERNAL)
    return TC_ACT_SHOT;
  return answer_arp(skb, arp, out->mac, back);
}

/* A question from the underlay, or from outside, that came in by the device `back`. */
static __always_inline int arp_from_wire(struct __sk_buff *skb, __u32 back, const struct config *cfg)
{
  struct arp arp;
  if (!arp_request(skb, &arp))
    return TC_ACT_OK;
  if (arp.operation != bpf_htons(1))
    return hear_router(&arp, back);
  __be32 target = address_of(arp.target);
  __u32 *ifindex = bpf_map_lookup_elem(&endpoints, &target);
  if (!ifindex)
    return TC_ACT_OK;
  struct interface_state *self = bpf_map_lookup_elem(&interfaces, ifindex);
  if (!self)
    return TC_ACT_SHOT;
  struct controller *controller = bpf_map_lookup_elem(&controllers, &self->cell);
  if (!controller || controller->address != address_of(arp.sender) || !same_mac(controller->mac, arp.sender_mac))
    return answer_outside(skb, &arp, back);
  return answer_arp(skb, &arp, cfg->host_mac, back);
}

/* On the underlay everybody answers for himself; what may be asked is everything, who asks is fixed (RFC 5227: or 0). */
static __always_inline int arp_from_service(struct __sk_buff *skb, __u32 ifindex, const struct interface_state *self,
                                            const struct config *cfg)
{
  struct arp arp;
  if (!arp_request(skb, &arp))
    return drop(self, MALFORMED);
  __be32 sender = address_of(arp.sender);
  if (!same_mac(arp.sender_mac, self->mac) || (sender != self->address && sender != 0))
    return drop(self, ROGUE_ARP);
  int verdict = arp_from_wire(skb, ifindex, cfg);
  if (verdict == TC_ACT_OK)
    count_sent(skb, self);
  return verdict;
}
