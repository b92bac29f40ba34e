// SPDX-License-Identifier: Apache-2.0
/* Answers to liveness probes. */
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
