// SPDX-License-Identifier: Apache-2.0
/* Answers to liveness probes, and questions of one host to machines of another. */
#pragma once

/* Is that the answer to a probe that waits for one? It is noted, once, and by the interface that was asked alone. */
static __noinline int answers_probe(struct __sk_buff *skb, const struct packet *p, __u32 ifindex)
{
  struct probe_key key = {.ifindex = ifindex, .protocol = p->protocol};
  __u8 ports[4];
  int echo_reply = p->protocol == IPPROTO_ICMP && p->icmp_type == 0;
  if (p->fragment == WHOLE && (echo_reply || p->protocol == IPPROTO_UDP) &&
      !bpf_skb_load_bytes(skb, ETH_LENGTH + p->header_length + (echo_reply ? 4 : 0), ports, 4)) {
    __u16 first = ports[0] << 8 | ports[1], second = ports[2] << 8 | ports[3];
    key.here = echo_reply ? first : second;
    key.there = echo_reply ? second : first;
    __u32 *answered = bpf_map_lookup_elem(&probes, &key);
    if (answered) {
      *answered = 1;
      return 1;
    }
  }
  return 0;
}

/* Of a whole ICMP echo without options, identifier and sequence; 0: it is none, or longer than any host asks. */
#define LONGEST_QUESTION 128
static __noinline int is_short_echo(struct __sk_buff *skb, const struct packet *p, struct probe_key *key)
{
  __u8 numbers[4];
  if (p->protocol != IPPROTO_ICMP || p->fragment != WHOLE || p->header_length != sizeof(struct iphdr) ||
      (p->icmp_type != 0 && p->icmp_type != 8) || skb->len > LONGEST_QUESTION ||
      bpf_skb_load_bytes(skb, ETH_LENGTH + sizeof(struct iphdr) + 4, numbers, sizeof(numbers)))
    return 0;
  key->protocol = IPPROTO_ICMP;
  key->here = numbers[0] << 8 | numbers[1];
  key->there = numbers[2] << 8 | numbers[3];
  return 1;
}

static __always_inline int change_type(struct __sk_buff *skb, __u16 type)
{
  __be16 value = bpf_htons(type);
  return bpf_skb_store_bytes(skb, ETH_LENGTH - 2, &value, sizeof(value), 0);
}

/*
 * A frame of that type from the underlay. The answer to a question of this host is noted, and goes nowhere. A question is put to the
 * machine as if by its gateway, which needs no rule; it learns nothing of who asks.
 */
static __noinline int hear_question(struct __sk_buff *skb, const struct config *cfg)
{
  struct ethhdr eth;
  struct packet p = {};
  struct probe_key key = {};
  if (skb->vlan_present || load(skb, 0, &eth, sizeof(eth)) || !same_mac(eth.h_dest, cfg->host_mac) ||
      !mac_number(eth.h_source) || (eth.h_source[0] & 1) || parse(skb, &p) || !is_short_echo(skb, &p, &key))
    return TC_ACT_SHOT;
  if (p.icmp_type == 0) {
    struct asked_key question = {
        .host = mac_number(eth.h_source), .address = p.source, .here = key.here, .there = key.there};
    __u32 *answered = bpf_map_lookup_elem(&asked, &question);
    if (answered)
      *answered = 1;
    return TC_ACT_SHOT;
  }
  __u32 *local = bpf_map_lookup_elem(&endpoints, &p.destination);
  if (!local)
    return TC_ACT_SHOT;
  key.ifindex = *local;
  struct interface_state *self = bpf_map_lookup_elem(&interfaces, &key.ifindex);
  if (!self || !self->gateway)
    return TC_ACT_SHOT;
  struct asker from = {};
  __builtin_memcpy(from.mac, eth.h_source, 6);
  __be32 gateway = self->gateway;
  if (bpf_map_update_elem(&askers, &key, &from, BPF_ANY) ||
      bpf_l3_csum_replace(skb, ETH_LENGTH + 10, p.source, gateway, 4) ||
      bpf_skb_store_bytes(skb, ETH_LENGTH + 12, &gateway, sizeof(gateway), 0) || change_type(skb, ETH_P_IP))
    return TC_ACT_SHOT;
  return deliver(skb, key.ifindex, self, cfg);
}

/* What a machine sends to its gateway: the answer to another host's question goes back to that host, once. */
static __noinline int answer_question(struct __sk_buff *skb, const struct packet *p, __u32 ifindex,
                                      const struct interface_state *self, const struct config *cfg)
{
  struct probe_key key = {.ifindex = ifindex};
  if (!is_short_echo(skb, p, &key) || p->icmp_type != 0 || p->source != self->address)
    return drop(self, NO_RULE);
  struct asker *from = bpf_map_lookup_elem(&askers, &key);
  if (!from)
    return drop(self, NO_RULE);
  struct asker to = *from;
  if (bpf_map_delete_elem(&askers, &key) || change_type(skb, ETH_P_QUESTION))
    return drop(self, NO_RULE);
  return send_to(skb, to.mac, cfg->host_mac, cfg->uplink);
}
