// SPDX-License-Identifier: Apache-2.0
/*
 * At the ingress of each tap: what an instance says of addresses is said for its own MAC alone.
 *
 * Where a site's DHCP server gives addresses, `learn` keeps the one that ARP says the tap's own MAC has, and lets everything pass. Where a mode
 * holds instances to their addresses, a DHCP server is asked for the tap's own MAC alone (`holds`): a server goes by the MAC that stands in the
 * request, and would take another instance's address out of use for who says in its name that it is in use elsewhere.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MOST_TAPS 4096

struct heard {
  /* The tap's: nobody else's words count. */
  __u8 mac[ETH_ALEN];
  __u8 holds;
  __u8 unused;
  /* 0: none was heard. */
  __be32 address;
};

/* By the index of a tap. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, MOST_TAPS);
  __type(key, __u32);
  __type(value, struct heard);
} heard SEC(".maps");

/* ARP for IPv4 on Ethernet. */
struct arp {
  __be16 hardware;
  __be16 protocol;
  __u8 hardware_length;
  __u8 protocol_length;
  __be16 operation;
  __u8 sender_mac[ETH_ALEN];
  __be32 sender;
} __attribute__((packed));

/* As far as it says for whom it is. */
struct request {
  __u8 operation;
  __u8 hardware;
  __u8 hardware_length;
  __u8 hops;
  __u8 unused[20];
  __be32 relay;
  __u8 mac[ETH_ALEN];
} __attribute__((packed));
#define DHCP_SERVER 67
#define MORE_FRAGMENTS 0x2000
#define FRAGMENT_OFFSET 0x1fff

static __always_inline int is_same(const __u8 *one, const __u8 *other)
{
  for (int at = 0; at < ETH_ALEN; at += 1)
    if (one[at] != other[at])
      return 0;
  return 1;
}

/* A request for another MAC, of a relay, or one that does not say for whom it is before it goes on in another fragment. */
static __always_inline int is_for_another(struct __sk_buff *skb, const struct heard *tap)
{
  struct iphdr ip;
  struct udphdr udp;
  struct request request;
  if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)) || ip.protocol != IPPROTO_UDP ||
      ip.frag_off & bpf_htons(FRAGMENT_OFFSET))
    return 0;
  __u32 at = ETH_HLEN + ip.ihl * 4;
  if (bpf_skb_load_bytes(skb, at, &udp, sizeof(udp)) || udp.dest != bpf_htons(DHCP_SERVER))
    return 0;
  if (ip.frag_off & bpf_htons(MORE_FRAGMENTS) ||
      bpf_skb_load_bytes(skb, at + sizeof(udp), &request, sizeof(request)))
    return 1;
  return request.hardware != 1 || request.hardware_length != ETH_ALEN || request.relay ||
         !is_same(request.mac, tap->mac);
}

SEC("tc")
int learn(struct __sk_buff *skb)
{
  struct arp arp;
  __u32 ifindex = skb->ifindex;
  struct heard *tap = bpf_map_lookup_elem(&heard, &ifindex);
  if (!tap || skb->vlan_present)
    return TC_ACT_UNSPEC;
  if (tap->holds)
    return skb->protocol == bpf_htons(ETH_P_IP) && is_for_another(skb, tap) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
  if (skb->protocol != bpf_htons(ETH_P_ARP) || bpf_skb_load_bytes(skb, ETH_HLEN, &arp, sizeof(arp)))
    return TC_ACT_UNSPEC;
  if (arp.hardware != bpf_htons(1) || arp.protocol != bpf_htons(ETH_P_IP) || arp.hardware_length != ETH_ALEN ||
      arp.protocol_length != 4)
    return TC_ACT_UNSPEC;
  /* Who asks whether an address is free has none yet. */
  if (!arp.sender)
    return TC_ACT_UNSPEC;
  /* Machines behind an instance speak with MACs of their own. */
  if (!is_same(arp.sender_mac, tap->mac))
    return TC_ACT_UNSPEC;
  tap->address = arp.sender;
  return TC_ACT_UNSPEC;
}

char license_text[] SEC("license") = "Apache-2.0";
