// SPDX-License-Identifier: Apache-2.0
/* DHCP (RFC 2131, 2132): a question is rewritten into its answer. What the answer says (address, lease time, MTU): ../../dhcp.ts. */
#pragma once

#define BOOTP_LENGTH 236
#define DHCP_DATAGRAM 576

struct bootp {
  __u8 op;
  __u8 hardware;
  __u8 hardware_length;
  __u8 hops;
  __be32 transaction;
  __be16 seconds;
  __be16 flags;
  __be32 client;
  __be32 yours;
  __be32 next_server;
  __be32 relay;
  __u8 mac[16];
};

/* Value of option 53, or 0. A message that hides it behind 48 other options is not worth an answer. */
static __always_inline __u8 dhcp_type(struct __sk_buff *skb, __u32 offset)
{
  for (int i = 0; i < 48; i++) {
    __u8 option[3] = {};
    if (bpf_skb_load_bytes(skb, offset, option, 1) || option[0] == 255)
      return 0;
    if (option[0] == 0) {
      offset += 1;
      continue;
    }
    if (bpf_skb_load_bytes(skb, offset, option, 3))
      return 0;
    if (option[0] == 53)
      return option[1] == 1 ? option[2] : 0;
    offset += 2 + option[1];
  }
  return 0;
}

static __noinline int answer_dhcp(struct __sk_buff *skb, __u32 ifindex, const struct interface_state *self,
                                  const struct config *cfg)
{
  const __u32 bootp_at = ETH_LENGTH + sizeof(struct iphdr) + sizeof(struct udphdr);
  struct bootp message;
  __u8 cookie[4];
  if (bpf_skb_load_bytes(skb, bootp_at, &message, sizeof(message)) ||
      bpf_skb_load_bytes(skb, bootp_at + BOOTP_LENGTH, cookie, 4))
    return drop(self, MALFORMED);
  if (message.op != 1 || message.hardware_length != 6 || !same_mac(message.mac, self->mac))
    return drop(self, SPOOFED_MAC);
  struct dhcp_answer *answer = bpf_map_lookup_elem(&dhcp, &ifindex);
  if (!answer)
    return TC_ACT_SHOT;
  __u8 asked = dhcp_type(skb, bootp_at + BOOTP_LENGTH + 4);
  __u8 type = asked == 1 ? 2 : asked == 3 ? 5 : 0;
  if (!type)
    return TC_ACT_SHOT;
  if (bpf_skb_change_tail(skb, ETH_LENGTH + DHCP_DATAGRAM, 0))
    return TC_ACT_SHOT;

  struct {
    struct iphdr ip;
    struct udphdr udp;
  } head = {};
  head.ip.version = 4;
  head.ip.ihl = 5;
  head.ip.tot_len = bpf_htons(DHCP_DATAGRAM);
  head.ip.frag_off = bpf_htons(0x4000);
  head.ip.ttl = 64;
  head.ip.protocol = IPPROTO_UDP;
  head.ip.saddr = self->gateway;
  head.ip.daddr = !message.client && (message.flags & bpf_htons(0x8000)) ? 0xffffffff : self->address;
  __u32 sum = 0;
#pragma unroll
  for (int i = 0; i < 10; i++)
    sum += ((__u16 *)&head.ip)[i];
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  head.ip.check = ~sum;
  head.udp.source = bpf_htons(67);
  head.udp.dest = bpf_htons(68);
  head.udp.len = bpf_htons(DHCP_DATAGRAM - sizeof(struct iphdr));

  message.op = 2;
  message.hops = 0;
  message.seconds = 0;
  message.yours = self->address;
  message.next_server = 0;
  message.relay = 0;
  if (bpf_skb_store_bytes(skb, ETH_LENGTH, &head, sizeof(head), 0) ||
      bpf_skb_store_bytes(skb, bootp_at, &message, sizeof(message), 0) ||
      bpf_skb_store_bytes(skb, bootp_at + sizeof(message), answer, sizeof(*answer), 0) ||
      bpf_skb_store_bytes(skb, bootp_at + BOOTP_LENGTH + 4 + 2, &type, 1, 0))
    return TC_ACT_SHOT;
  return send_to(skb, self->mac, cfg->gateway_mac, ifindex);
}
