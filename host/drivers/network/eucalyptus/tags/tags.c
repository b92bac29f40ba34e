// SPDX-License-Identifier: Apache-2.0
/*
 * VLANs where the kernel has no 802.1Q devices. Each group's VLAN is a device of its own (`vl_N`, an ifb, which lets nothing pass by itself)
 * that is a port of the group's bridge. `tagged_out`, at that device's egress, gives the tag and sends to the wire; `tagged_in`, at the
 * wire's ingress, takes it away and hands over to the device, as if it had come by that. What has another tag, or none, goes its way.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* There are 4,094 tags. */
#define MOST_GROUPS 4096
#define TAG_BITS 0x0fff

/* By tag, the index of its device; the wire's too, since another one's tags are others. */
struct arriving {
  __u32 wire;
  __u32 tag;
};
/* By the index of a device, where it leads to. */
struct leaving {
  __u32 wire;
  __u32 tag;
};

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, MOST_GROUPS);
  __type(key, struct arriving);
  __type(value, __u32);
} groups SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, MOST_GROUPS);
  __type(key, __u32);
  __type(value, struct leaving);
} devices SEC(".maps");

/* A tag is beside the frame, or in it where a process of this machine has sent it. */
static __always_inline int has_tag(const struct __sk_buff *skb)
{
  return skb->vlan_present || skb->protocol == bpf_htons(ETH_P_8021Q) || skb->protocol == bpf_htons(ETH_P_8021AD);
}

SEC("tc")
int tagged_in(struct __sk_buff *skb)
{
  if (!skb->vlan_present || skb->vlan_proto != bpf_htons(ETH_P_8021Q))
    return TC_ACT_UNSPEC;
  struct arriving key = {.wire = skb->ifindex, .tag = skb->vlan_tci & TAG_BITS};
  __u32 *device = bpf_map_lookup_elem(&groups, &key);
  if (!device)
    return TC_ACT_UNSPEC;
  __u32 to = *device;
  /* One tag behind another would be a way into another group's VLAN, were a switch to take the first one away. */
  if (bpf_skb_vlan_pop(skb) || has_tag(skb))
    return TC_ACT_SHOT;
  return bpf_redirect(to, BPF_F_INGRESS);
}

SEC("tc")
int tagged_out(struct __sk_buff *skb)
{
  __u32 ifindex = skb->ifindex;
  struct leaving *leaving = bpf_map_lookup_elem(&devices, &ifindex);
  if (!leaving || has_tag(skb))
    return TC_ACT_SHOT;
  __u32 wire = leaving->wire, tag = leaving->tag;
  if (bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), tag))
    return TC_ACT_SHOT;
  return bpf_redirect(wire, 0);
}

char license_text[] SEC("license") = "Apache-2.0";
