// SPDX-License-Identifier: Apache-2.0
/*
 * Which address an instance has by its own words, where a site's DHCP server gives it one: `learn`, at the ingress of each tap, keeps what ARP
 * says of its sender. It lets everything pass; whether the MAC is the instance's is asked by who reads.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MOST_TAPS 4096

struct heard {
  __u8 mac[ETH_ALEN];
  __u8 unused[2];
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

SEC("tc")
int learn(struct __sk_buff *skb)
{
  struct arp arp;
  __u32 ifindex = skb->ifindex;
  if (skb->vlan_present || skb->protocol != bpf_htons(ETH_P_ARP) ||
      bpf_skb_load_bytes(skb, ETH_HLEN, &arp, sizeof(arp)))
    return TC_ACT_UNSPEC;
  if (arp.hardware != bpf_htons(1) || arp.protocol != bpf_htons(ETH_P_IP) || arp.hardware_length != ETH_ALEN ||
      arp.protocol_length != 4)
    return TC_ACT_UNSPEC;
  /* Who asks whether an address is free has none yet. */
  struct heard *known = bpf_map_lookup_elem(&heard, &ifindex);
  if (!known || !arp.sender)
    return TC_ACT_UNSPEC;
  struct heard now = {.address = arp.sender};
  __builtin_memcpy(now.mac, arp.sender_mac, ETH_ALEN);
  bpf_map_update_elem(&heard, &ifindex, &now, BPF_EXIST);
  return TC_ACT_UNSPEC;
}

char license_text[] SEC("license") = "Apache-2.0";
