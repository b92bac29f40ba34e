/* Loses a share of the datagrams to a port, by chance, and passes everything else on. At the egress of a host's uplink. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

SEC("tc")
int lossy(struct __sk_buff *skb)
{
  struct iphdr ip;
  struct udphdr udp;
  if (skb->protocol != bpf_htons(ETH_P_IP) || bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)) ||
      ip.protocol != IPPROTO_UDP || bpf_skb_load_bytes(skb, ETH_HLEN + ip.ihl * 4, &udp, sizeof(udp)) ||
      udp.dest != bpf_htons(PORT))
    return TC_ACT_OK;
  return bpf_get_prandom_u32() % 100 < PERCENT ? TC_ACT_SHOT : TC_ACT_OK;
}

char license_text[] SEC("license") = "Apache-2.0";
