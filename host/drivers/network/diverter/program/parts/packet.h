// SPDX-License-Identifier: Apache-2.0
/* What is read of a packet, and what is wrong with its form whatever rules say. */
#pragma once

enum fragment { WHOLE = 0, FIRST, LATER };
struct packet {
  __be32 source;
  __be32 destination;
  __u16 source_port;
  __u16 destination_port;
  __u16 id;
  __u8 protocol;
  __u8 fragment;
  __u8 tcp_flags;
  __u8 icmp_type;
  __u8 header_length;
  __u8 tcp_length; /* of its header; 0 for every other protocol */
  __u8 error; /* an ICMP error: the four fields below are the packet that it is about */
  __be32 about_source;
  __be32 about_destination;
  __u16 about_source_port;
  __u16 about_destination_port;
  __u8 about_protocol;
  __u8 about_icmp_type;
  __u16 judged; /* length of the frame's beginning that is looked at here */
};

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

static __always_inline int same_mac(const __u8 *a, const __u8 *b)
{
  return a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[3] == b[3] && a[4] == b[4] && a[5] == b[5];
}

/* --- headers ---------------------------------------------------------------------------------------------------- */

/* Like `bpf_skb_load_bytes`, without a call where the bytes lie in the linear part. `offset` and `length` are constants. */
static __always_inline int load(struct __sk_buff *skb, __u32 offset, void *to, __u32 length)
{
  void *at = (void *)(long)skb->data + offset;
  if (at + length > (void *)(long)skb->data_end)
    return bpf_skb_load_bytes(skb, offset, to, length);
  __builtin_memcpy(to, at, length);
  return 0;
}

/* What follows an IP header of that length; hardly any has options. */
static __always_inline int load_payload(struct __sk_buff *skb, __u32 header, void *to, __u32 length)
{
  if (header == sizeof(struct iphdr))
    return load(skb, ETH_LENGTH + sizeof(struct iphdr), to, length);
  return bpf_skb_load_bytes(skb, ETH_LENGTH + header, to, length);
}

/* ICMP destination unreachable, time exceeded, parameter problem (RFC 792): they carry the header that caused them. */
static __always_inline int is_icmp_error(__u8 type)
{
  return type == 3 || type == 11 || type == 12;
}

static __always_inline int parse_about(struct __sk_buff *skb, __u32 offset, struct packet *p)
{
  struct iphdr ip;
  __u8 l4[8];
  if (bpf_skb_load_bytes(skb, offset, &ip, sizeof(ip)) || ip.version != 4 || ip.ihl < 5)
    return MALFORMED;
  if (bpf_skb_load_bytes(skb, offset + ip.ihl * 4, l4, sizeof(l4)))
    return MALFORMED;
  p->about_source = ip.saddr;
  p->about_destination = ip.daddr;
  p->about_protocol = ip.protocol;
  if (ip.protocol == IPPROTO_ICMP) {
    p->about_icmp_type = l4[0];
    p->about_source_port = p->about_destination_port = l4[4] << 8 | l4[5];
  } else if (ip.protocol == IPPROTO_TCP || ip.protocol == IPPROTO_UDP) {
    p->about_source_port = l4[0] << 8 | l4[1];
    p->about_destination_port = l4[2] << 8 | l4[3];
  }
  p->judged = offset + ip.ihl * 4 + sizeof(l4);
  return PASS;
}

/*
 * Loose and strict source routes (RFC 791) would lead a packet past the check of where it goes (RFC 7126, 4.3 and
 * 4.4). A global function, so that the verifier walks its loop once and not at the end of every path that leads here.
 */
__noinline int has_source_route(struct __sk_buff *skb, __u32 end)
{
  __u32 at = ETH_LENGTH + sizeof(struct iphdr);
  for (int i = 0; i < 40 && at < end; i++) {
    __u8 option[2] = {};
    if (bpf_skb_load_bytes(skb, at, option, 1) || option[0] == 0)
      return 0;
    if (option[0] == 0x83 || option[0] == 0x89)
      return 1;
    if (option[0] == 1) {
      at += 1;
      continue;
    }
    if (bpf_skb_load_bytes(skb, at, option, 2) || option[1] < 2)
      return 1;
    at += option[1];
  }
  return 0;
}

static __always_inline int parse(struct __sk_buff *skb, struct packet *p)
{
  struct iphdr ip;
  __u8 l4[14];
  if (load(skb, ETH_LENGTH, &ip, sizeof(ip)))
    return MALFORMED;
  __u32 header = ip.ihl * 4, total = bpf_ntohs(ip.tot_len), fragment = bpf_ntohs(ip.frag_off);
  if (ip.version != 4 || header < 20 || total < header || total + ETH_LENGTH > skb->len)
    return MALFORMED;
  p->source = ip.saddr;
  p->destination = ip.daddr;
  p->protocol = ip.protocol;
  p->id = bpf_ntohs(ip.id);
  p->header_length = header;
  p->judged = ETH_LENGTH + header;
  if (header > 20 && has_source_route(skb, ETH_LENGTH + header))
    return MALFORMED;
  if (fragment & IP_OFFSET_MASK) {
    p->fragment = LATER;
    /* RFC 1858: a fragment at offset 1 would overwrite the flags of a TCP header that was already judged. */
    return (fragment & IP_OFFSET_MASK) == 1 && ip.protocol == IPPROTO_TCP ? MALFORMED : PASS;
  }
  p->fragment = fragment & IP_MORE_FRAGMENTS ? FIRST : WHOLE;
  if (ip.protocol == IPPROTO_TCP) {
    if (total < header + 20 || load_payload(skb, header, l4, 14))
      return MALFORMED;
    p->tcp_flags = l4[13];
    __u32 length = (l4[12] >> 4) * 4;
    if (length < 20 || ((l4[13] & TCP_SYN) && (l4[13] & (TCP_FIN | TCP_RST))) ||
        (p->fragment == WHOLE && header + length > total))
      return MALFORMED;
    p->tcp_length = length;
    p->judged += 14;
  } else if (ip.protocol == IPPROTO_UDP || ip.protocol == IPPROTO_ICMP) {
    if (total < header + 8 || load_payload(skb, header, l4, 8))
      return MALFORMED;
    __u32 length = l4[4] << 8 | l4[5];
    if (ip.protocol == IPPROTO_UDP && p->fragment == WHOLE && (length < 8 || header + length > total))
      return MALFORMED;
    p->judged += ip.protocol == IPPROTO_UDP ? 6 : 8;
  } else {
    return PASS;
  }
  if (ip.protocol == IPPROTO_ICMP) {
    p->icmp_type = l4[0];
    p->source_port = p->destination_port = l4[4] << 8 | l4[5];
    if (is_icmp_error(l4[0])) {
      /* So short that nobody cuts one: what came behind would be judged by no flow that it is about. */
      if (p->fragment != WHOLE)
        return MALFORMED;
      p->error = 1;
      return parse_about(skb, ETH_LENGTH + header + 8, p);
    }
    return PASS;
  }
  p->source_port = l4[0] << 8 | l4[1];
  p->destination_port = l4[2] << 8 | l4[3];
  return PASS;
}

/* Clients take answers from any port. */
static __always_inline int is_dhcp_answer(const struct packet *p)
{
  return p->protocol == IPPROTO_UDP && p->fragment != LATER && (p->source_port == 67 || p->destination_port == 68);
}

/*
 * A guest may leave a checksum to others and say where it belongs (virtio, VIRTIO_NET_HDR_F_NEEDS_CSUM). The kernel writes
 * it there after this program has judged the packet, and checks nothing: a "checksum" at the place of a port or of the
 * source address would change them behind our back. It must lie beyond all that is looked at here.
 *
 * No field of the context says where that is, but two helpers tell. `bpf_l4_csum_replace` changes nothing in a packet
 * whose checksum is still to be written; it is tried on the destination MAC, which is written anew in any case.
 * `bpf_skb_change_tail` refuses to cut such a packet before the end of its checksum: an honest one is refused here and
 * left as it is, and one that can be cut is thrown away.
 */
static __always_inline int checksum_hits_header(struct __sk_buff *skb, const struct packet *p, const struct ethhdr *eth)
{
  __u8 first[2];
  if (bpf_l4_csum_replace(skb, 0, 0, 1, 2) || load(skb, 0, first, 2))
    return 1;
  if (first[0] != eth->h_dest[0] || first[1] != eth->h_dest[1])
    return 0;
  return bpf_skb_change_tail(skb, p->judged + 1, 0) == 0;
}

/* Pieces of a frame at least as large as the smallest that Linux sends over TCP (tcp_min_snd_mss), or not too many of them. */
#define SMALLEST_PIECE 48
#define MOST_SMALL_PIECES 128

/*
 * A guest may leave it to the kernel to cut a frame into pieces, each with the headers of the whole. That they are too large
 * for the underlay, or so small that one frame becomes tens of thousands, is seen here or nowhere.
 */
static __always_inline int has_bad_size(struct __sk_buff *skb, const struct packet *p, __u32 mtu)
{
  __u32 piece = skb->gso_size;
  if (piece && piece < SMALLEST_PIECE && skb->len > piece * MOST_SMALL_PIECES)
    return 1;
  __u32 length = piece ? piece + p->header_length + p->tcp_length : skb->len - ETH_LENGTH;
  return mtu && length > mtu;
}
