// SPDX-License-Identifier: Apache-2.0
/*
 * Diverter's dataplane. Programs on clsact: `from_vm` at the ingress of every tap, `from_wire` at the ingress of the
 * uplink, `from_outside` at the ingress of a device of its own that leads out of the installation, and `from_service` at
 * the ingress of the taps that are ports of the host's bridge: those of VMs on the
 * management network, which is the underlay itself and has no rules. Every local interface has its own check, made by the rules of its own cell: on what it sends and on what it
 * receives. A packet between two interfaces of one host therefore meets both checks here, a packet across hosts one at
 * each end. What is decided for the first packet of a flow is remembered per interface, so that answers pass and nothing
 * else does.
 *
 * Layouts of keys and values are declared in layout.ts; a test compares them with this object's BTF.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define SECOND 1000000000ULL
#define ETH_LENGTH 14
#define IP_OFFSET_MASK 0x1fff
#define IP_MORE_FRAGMENTS 0x2000
#define SOURCE_RANGES 8
#define NO_RULE_FOUND (-1)
#define ROUTERS 4
/*
 * In the number of a MAC, where a group's bit would be, which no machine has: it is behind the device that leads out of the
 * installation, and not on the underlay.
 */
#define OUTSIDE (1ULL << 40)

enum drop_reason {
  PASS = 0,
  MALFORMED,
  SPOOFED_MAC,
  SPOOFED_ADDRESS,
  IPV6,
  OTHER_ETHERTYPE,
  ROGUE_DHCP,
  ROGUE_ARP,
  BROADCAST,
  NO_RULE,
  NO_LOCATION,
  FRAGMENT,
  WRONG_HOST,
  INSIDE_FROM_OUTSIDE,
  NOT_FROM_ROUTER,
  NO_ROUTER,
  DROP_REASONS = 16,
};

struct config {
  __u32 uplink;
  __be32 host_address;
  __u8 host_mac[6];
  __u8 gateway_mac[6];
};
struct interface_state {
  __be32 address;
  __be32 mask;
  __be32 gateway;
  __u32 cell;
  __u32 identity;
  __u32 vm_identity;
  __u32 subnet_identity;
  __u8 mac[6];
  __u16 mtu;
  __u32 slot; /* of its counters and its table of flows */
};
struct identity_key {
  __u32 cell;
  __be32 address;
};
struct identities {
  __u32 identity;
  __u32 vm_identity;
  __u32 subnet_identity;
};
struct location {
  __u8 mac[6];
  __u8 padding[2];
  __u32 cell;
};
struct controller {
  __be32 address;
  __u32 identity;
  __u8 mac[6];
  __u8 padding[2];
};
struct policy_state {
  __u32 version;
};
/* One trie holds both the rules and the networks of a cell, so that both change in the same instant. */
enum policy_kind { NETWORK = 1, RULE = 2 };
struct policy_key {
  __u32 prefix_length;
  __u8 kind;
  __u8 protocol; /* 0: any */
  __u16 zero;
  __u32 from; /* of a network: its address */
  __u32 to;
  __be16 port;
  __u16 padding;
};
struct source_range {
  __u32 rule; /* of a network: its identity */
  __u16 first;
  __u16 last;
};
struct policy_entry {
  __u32 count;
  struct source_range ranges[SOURCE_RANGES];
};
enum flow_kind { FLOW = 0, FIRST_FRAGMENT = 1 };
/* Seen from the interface: one table belongs to one interface, so its own address is not in the key. */
struct flow_key {
  __be32 remote;
  __u16 local_port;
  __u16 remote_port;
  __u8 protocol;
  __u8 kind;
  __u16 zero;
};
/*
 * An element of such a table may become another flow's at any moment, while a pointer to it is still held: `local_port` and
 * `remote_port`, which are also in the key, tell whose it is (both 0: not told). They are looked at before it is written to
 * and after it was read.
 *
 * What was decided holds for one generation of the interface; at the next one it is decided again. `host` is the MAC of the
 * machine where the remote end is, in its lower 48 bits, and the generation for which that holds above: one word, so that
 * no other CPU ever reads half of it.
 */
struct flow {
  __u64 last_seen;
  __u64 host;
  __u32 rule;
  __u32 generation;
  __u16 local_port; /* also of a first fragment what its flow's key has */
  __u16 remote_port;
  __u8 opened_out;
  __u8 finished; /* bit 0: the opener sent FIN, bit 1: the other end did, bit 2: reset */
  __u8 counted; /* of a remote end in the same cell: its own host counts for the rule */
  __u8 answered; /* of an opening: the other end has sent something */
};
struct interface_counters {
  __u64 sent_packets;
  __u64 sent_bytes;
  __u64 received_packets;
  __u64 received_bytes;
  __u64 drops[DROP_REASONS];
};
struct rule_key {
  __u32 cell;
  __u32 rule;
};
struct rule_counters {
  __u64 packets;
  __u64 bytes;
};
/*
 * The way out of the installation. `router`: who gets what goes there, as the number of a MAC; of a device of its own with
 * the bit OUTSIDE. 0: nobody is known yet.
 */
struct outside {
  __u64 router;
  __u32 device; /* 0: there is no way out */
  __u8 mac[6];  /* of this host there */
};
/* An upstream router, and whose MAC it answered with since the driver asked last, as numbers; 0: nobody's. */
struct router {
  __u64 mac;
  __u64 heard;
  __be32 address;
};
struct network_key {
  __u32 prefix_length;
  __be32 address;
};
/* Networks whose addresses are not outside: no packet comes from them by that way, and none goes to them. */
enum network_kind { ELSEWHERE = 0, NOT_OUTSIDE = 1, EXTERNAL = 2 };
/* A liveness probe that waits for its answer. `here` and `there`: ports of UDP, identifier and sequence of an ICMP echo. */
struct probe_key {
  __u32 ifindex;
  __u16 here;
  __u16 there;
  __u8 protocol;
  __u8 padding[3];
};
/* What follows a BOOTP message's fixed fields: sname and file (empty), the cookie, the options; 576 octets of IP in all. */
struct dhcp_answer {
  __u8 names[192];
  __u8 cookie[4];
  __u8 options[308];
};

#define HASH(NAME, KEY, VALUE, ENTRIES)      \
  struct {                                   \
    __uint(type, BPF_MAP_TYPE_HASH);         \
    __type(key, KEY);                        \
    __type(value, VALUE);                    \
    __uint(max_entries, ENTRIES);            \
    __uint(map_flags, BPF_F_NO_PREALLOC);    \
  } NAME SEC(".maps")

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __type(key, __u32);
  __type(value, struct config);
  __uint(max_entries, 1);
} config SEC(".maps");
/*
 * By an interface's slot. Grows after every change that may concern the interface's flows, so that each is decided anew by
 * what is in force then. Not one number for the host: whoever changes his rules would make all others' flows ask theirs.
 */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __type(key, __u32);
  __type(value, __u32);
  __uint(max_entries, 4096);
} generations SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __type(key, __u32);
  __type(value, struct outside);
  __uint(max_entries, 1);
} outside SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __type(key, __u32);
  __type(value, struct router);
  __uint(max_entries, ROUTERS);
} routers SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_LPM_TRIE);
  __type(key, struct network_key);
  __type(value, __u32);
  __uint(max_entries, 256);
  __uint(map_flags, BPF_F_NO_PREALLOC);
} networks SEC(".maps");
HASH(interfaces, __u32, struct interface_state, 4096);
HASH(endpoints, __be32, __u32, 4096);
/* Interfaces here that are on the management network: where a bridge, which no redirected frame meets, would find them. */
HASH(services, __be32, __u32, 4096);
HASH(identities, struct identity_key, struct identities, 262144);
HASH(locations, __be32, struct location, 262144);
HASH(controllers, __u32, struct controller, 65536);
HASH(policies, __u32, struct policy_state, 65536);
HASH(dhcp, __u32, struct dhcp_answer, 4096);
HASH(probes, struct probe_key, __u32, 16384);

struct policy_trie {
  __uint(type, BPF_MAP_TYPE_LPM_TRIE);
  __uint(key_size, sizeof(struct policy_key));
  __uint(value_size, sizeof(struct policy_entry));
  __uint(max_entries, 262144);
  __uint(map_flags, BPF_F_NO_PREALLOC);
};
struct {
  __uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
  __type(key, __u32);
  __uint(max_entries, 65536);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __array(values, struct policy_trie);
} rules SEC(".maps");
struct flow_table {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(key_size, sizeof(struct flow_key));
  __uint(value_size, sizeof(struct flow));
  __uint(max_entries, 8192);
};
/*
 * Flows whose opener has sent again after an answer are in `flows`. Until then, which may be never, a flow is among the
 * `openings`, and so are first fragments: whoever may open flows evicts openings, and nothing that is in use.
 *
 * Arrays by an interface's slot, since a look-up by its index would cost each packet ten times as much.
 */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __type(key, __u32);
  __uint(max_entries, 4096);
  __array(values, struct flow_table);
} flows SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __type(key, __u32);
  __uint(max_entries, 4096);
  __array(values, struct flow_table);
} openings SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __type(key, __u32);
  __type(value, struct interface_counters);
  __uint(max_entries, 4096);
} counters SEC(".maps");
HASH(slots, __u32, __u32, 4096);
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __type(key, struct rule_key);
  __type(value, struct rule_counters);
  __uint(max_entries, 262144);
  __uint(map_flags, BPF_F_NO_PREALLOC);
} rule_counts SEC(".maps");

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
      p->error = 1;
      return parse_about(skb, ETH_LENGTH + header + 8, p);
    }
    return PASS;
  }
  p->source_port = l4[0] << 8 | l4[1];
  p->destination_port = l4[2] << 8 | l4[3];
  return PASS;
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

/* --- rules ------------------------------------------------------------------------------------------------------ */

struct question {
  __u32 cell;
  __be32 from;
  __be32 to;
  __u16 source_port;
  __u16 destination_port;
  __u8 protocol;
};

/* Who an address is within a cell: an interface (itself, its VM, its subnet), the controller, or the longest network. */
static __always_inline void identify(void *trie, __u32 cell, __be32 address, __u32 *found)
{
  struct identity_key key = {.cell = cell, .address = address};
  struct identities *known = bpf_map_lookup_elem(&identities, &key);
  found[0] = found[1] = found[2] = 0;
  if (known) {
    found[0] = known->identity;
    found[1] = known->vm_identity;
    found[2] = known->subnet_identity;
    return;
  }
  struct controller *controller = bpf_map_lookup_elem(&controllers, &cell);
  if (controller && controller->address == address) {
    found[0] = controller->identity;
    return;
  }
  struct policy_key network = {.prefix_length = 64, .kind = NETWORK, .from = address};
  struct policy_entry *entry = bpf_map_lookup_elem(trie, &network);
  if (entry)
    found[0] = entry->ranges[0].rule;
}

static __always_inline long match(void *trie, struct policy_key *key, __u16 source_port)
{
  struct policy_entry *entry = bpf_map_lookup_elem(trie, key);
  if (!entry)
    return NO_RULE_FOUND;
#pragma unroll
  for (int i = 0; i < SOURCE_RANGES; i++)
    if (i < entry->count && source_port >= entry->ranges[i].first && source_port <= entry->ranges[i].last)
      return entry->ranges[i].rule;
  return NO_RULE_FOUND;
}

/* The rule that lets this flow be opened, or NO_RULE_FOUND. Global, so that the verifier walks it once. */
__noinline long evaluate(struct question *q)
{
  __u32 from[3], to[3];
  if (!q)
    return NO_RULE_FOUND;
  /* Before 6.2 a key may not lie in memory of which the verifier knows no more than its size. */
  __u32 cell = q->cell;
  void *trie = bpf_map_lookup_elem(&rules, &cell);
  if (!trie)
    return NO_RULE_FOUND;
  identify(trie, cell, q->from, from);
  identify(trie, cell, q->to, to);
  struct policy_key key = {.prefix_length = 112, .kind = RULE, .port = bpf_htons(q->destination_port)};
#pragma unroll
  for (int i = 0; i < 3; i++) {
    if (!from[i])
      continue;
    key.from = from[i];
#pragma unroll
    for (int j = 0; j < 3; j++) {
      if (!to[j])
        continue;
      key.to = to[j];
      key.protocol = q->protocol;
      long rule = match(trie, &key, q->source_port);
      if (rule != NO_RULE_FOUND)
        return rule;
      key.protocol = 0;
      rule = match(trie, &key, q->source_port);
      if (rule != NO_RULE_FOUND)
        return rule;
    }
  }
  return NO_RULE_FOUND;
}

/* --- flows ------------------------------------------------------------------------------------------------------ */

static __always_inline __u64 idle_limit(const struct flow_key *key, const struct flow *flow)
{
  if (key->kind == FIRST_FRAGMENT || key->protocol == IPPROTO_ICMP)
    return 30 * SECOND;
  if (key->protocol != IPPROTO_TCP)
    return 180 * SECOND;
  return flow->finished >= 3 ? 10 * SECOND : 3600 * SECOND;
}

static __always_inline void count_rule(__u32 cell, __u32 rule, __u32 bytes)
{
  struct rule_key key = {.cell = cell, .rule = rule};
  struct rule_counters *counts = bpf_map_lookup_elem(&rule_counts, &key);
  if (!counts) {
    struct rule_counters none = {};
    bpf_map_update_elem(&rule_counts, &key, &none, BPF_NOEXIST);
    counts = bpf_map_lookup_elem(&rule_counts, &key);
  }
  if (counts) {
    counts->packets++;
    counts->bytes += bytes;
  }
}

struct check {
  const struct interface_state *self;
  struct packet *packet;
  __u8 out;
  __u8 counted; /* the rule's counter was moved for this cell by an earlier check of this packet */
  __u8 here;    /* as if from the wire, but from a service of this host: what answers it must not leave by the uplink */
  __u8 from_wire;
  __u32 bytes;
  __u64 wire; /* of a frame from the wire: its source MAC, which must be that of the source's host */
  __u16 local_port, remote_port; /* in the flow's key */
  __u32 device; /* of a frame from the wire: by which it came */
  /* Found: the flow, for which generation, and where its remote end is, 0 if that is not known yet. */
  struct flow *flow;
  __u32 generation;
  __u64 host;
};

static __always_inline __u64 mac_number(const __u8 *mac)
{
  return (__u64)mac[0] << 40 | (__u64)mac[1] << 32 | (__u64)mac[2] << 24 | mac[3] << 16 | mac[4] << 8 | mac[5];
}

static __always_inline __u64 known_host(const struct flow *flow, __u32 generation)
{
  return flow->generation == generation && flow->host >> 48 == (__u16)generation ? flow->host & 0xffffffffffffULL : 0;
}

/* Is that element still the flow that was looked up? */
static __always_inline int is_of(const struct flow *flow, __u16 local_port, __u16 remote_port)
{
  __u16 local = *(volatile __u16 *)&flow->local_port, remote = *(volatile __u16 *)&flow->remote_port;
  return (local == local_port && remote == remote_port) || !(local | remote);
}

static __always_inline void learn_host(struct flow *flow, __u64 host, __u32 generation)
{
  *(volatile __u64 *)&flow->host = (__u64)(__u16)generation << 48 | host;
}

static __always_inline void key_of_fragments(const struct check *c, struct flow_key *key)
{
  key->remote = c->out ? c->packet->destination : c->packet->source;
  key->local_port = c->packet->id;
  key->remote_port = c->out;
  key->protocol = c->packet->protocol;
  key->kind = FIRST_FRAGMENT;
}

/*
 * The key under which a packet's flow is remembered. An echo's key holds who asked, so that two ends that ping each other
 * with the same id are two flows, and an answer never opens one.
 */
static __always_inline void key_of(const struct check *c, struct flow_key *key)
{
  const struct packet *p = c->packet;
  key->remote = c->out ? p->destination : p->source;
  key->protocol = p->protocol;
  if (p->fragment == LATER) {
    key_of_fragments(c, key);
    return;
  }
  if (p->error) {
    /* Named by the packet it is about, which travelled the other way. */
    key->protocol = p->about_protocol;
    if (p->about_protocol == IPPROTO_ICMP) {
      key->local_port = p->about_source_port;
      key->remote_port = c->out == (p->about_icmp_type != 8);
    } else {
      key->local_port = c->out ? p->about_destination_port : p->about_source_port;
      key->remote_port = c->out ? p->about_source_port : p->about_destination_port;
    }
    return;
  }
  if (p->protocol == IPPROTO_ICMP) {
    key->local_port = p->source_port;
    key->remote_port = c->out == (p->icmp_type == 8);
    return;
  }
  key->local_port = c->out ? p->source_port : p->destination_port;
  key->remote_port = c->out ? p->destination_port : p->source_port;
}

/* The rule that admits the opening packet of an existing flow under the rules of now. */
static __always_inline long evaluate_opening(const struct check *c, const struct flow_key *key, int opened_out)
{
  struct question q = {
      .cell = c->self->cell,
      .from = opened_out ? c->self->address : key->remote,
      .to = opened_out ? key->remote : c->self->address,
      .protocol = key->protocol,
  };
  if (key->protocol != IPPROTO_ICMP) {
    q.source_port = opened_out ? key->local_port : key->remote_port;
    q.destination_port = opened_out ? key->remote_port : key->local_port;
  }
  return evaluate(&q);
}

static __always_inline void see(struct flow *flow, const struct check *c, __u64 now)
{
  flow->last_seen = now;
  if (c->packet->protocol != IPPROTO_TCP || c->packet->fragment == LATER)
    return;
  if (c->packet->tcp_flags & TCP_RST)
    flow->finished |= 4;
  if (c->packet->tcp_flags & TCP_FIN)
    flow->finished |= flow->opened_out == c->out ? 1 : 2;
}

/* Openings of an interface; its other table where it has none, from before there were two. */
static __always_inline void *openings_of(const struct check *c, void *table)
{
  void *openings_table = bpf_map_lookup_elem(&openings, &c->self->slot);
  return openings_table ? openings_table : table;
}

static __always_inline void remember_fragments(void *table, const struct check *c, const struct flow_key *opening,
                                               const struct flow *flow)
{
  if (c->packet->fragment != FIRST)
    return;
  struct flow_key key = {};
  key_of_fragments(c, &key);
  struct flow first = {.last_seen = flow->last_seen,
                       .rule = flow->rule,
                       .generation = flow->generation,
                       .opened_out = flow->opened_out,
                       .local_port = opening->local_port,
                       .remote_port = opening->remote_port};
  bpf_map_update_elem(openings_of(c, table), &key, &first, BPF_ANY);
}

/* A first fragment that is refused takes the place of an earlier one with the same identification. */
static __always_inline void forget_fragments(void *table, const struct check *c)
{
  if (c->packet->fragment != FIRST)
    return;
  struct flow_key key = {};
  key_of_fragments(c, &key);
  bpf_map_delete_elem(openings_of(c, table), &key);
}

static __always_inline int passes(const struct check *c, __u32 rule)
{
  if (!c->counted)
    count_rule(c->self->cell, rule, c->bytes);
  return PASS;
}

static __always_inline __u32 kind_of(__be32 address)
{
  struct network_key key = {.prefix_length = 32, .address = address};
  __u32 *kind = bpf_map_lookup_elem(&networks, &key);
  return kind ? *kind : ELSEWHERE;
}

static __always_inline struct outside *way_out(void)
{
  __u32 zero = 0;
  struct outside *out = bpf_map_lookup_elem(&outside, &zero);
  return out && out->device ? out : NULL;
}

static __always_inline int is_router(__u64 mac)
{
  int found = 0;
#pragma unroll
  for (int i = 0; i < ROUTERS; i++) {
    __u32 at = i;
    struct router *router = bpf_map_lookup_elem(&routers, &at);
    if (router && router->mac && router->mac == mac)
      found = 1;
  }
  return found;
}

/*
 * May a frame be believed whose source is nowhere in the installation, as far as this host knows? From an upstream router,
 * for an external address, and from an address that is not the installation's own. No sender's host has looked at it.
 */
static __noinline int believe_outside(struct check *c)
{
  const struct packet *p = c->packet;
  __be32 source = p->source;
  struct outside *out = way_out();
  if (!out || out->device != c->device || kind_of(c->self->address) != EXTERNAL)
    return NO_LOCATION;
  int routed = is_router(c->wire & ~OUTSIDE);
  if (kind_of(source) != ELSEWHERE || bpf_map_lookup_elem(&endpoints, &source))
    return routed || (c->wire & OUTSIDE) ? INSIDE_FROM_OUTSIDE : NO_LOCATION;
  if (!routed)
    return NOT_FROM_ROUTER;
  /* Clients take answers from any port. */
  if (p->protocol == IPPROTO_UDP && p->fragment != LATER && (p->source_port == 67 || p->destination_port == 68))
    return ROGUE_DHCP;
  return PASS;
}

/*
 * Not from the machine `host`, where its source is: a host that takes another's address, somebody outside who takes one of
 * the inside, or an upstream router beside the one that was heard before.
 */
static __noinline int other_host(const struct check *c, __u64 host)
{
  struct outside *out = way_out();
  if (!out || out->device != c->device)
    return WRONG_HOST;
  int routed = is_router(c->wire & ~OUTSIDE);
  if (!((host ^ c->wire) & OUTSIDE) && is_router(host & ~OUTSIDE))
    return routed ? PASS : NOT_FROM_ROUTER;
  return routed || (c->wire & OUTSIDE) ? INSIDE_FROM_OUTSIDE : WRONG_HOST;
}

/* Does a frame from the wire come from the machine where its source is? */
static __always_inline int believe(struct check *c, struct flow *flow, __u32 generation)
{
  __u64 host = flow ? known_host(flow, generation) : 0;
  if (host) {
    c->counted = flow->counted;
    return host == c->wire ? PASS : other_host(c, host);
  }
  __be32 source = c->packet->source;
  const __u8 *mac = NULL;
  struct location *location = bpf_map_lookup_elem(&locations, &source);
  if (location) {
    mac = location->mac;
    c->counted = location->cell == c->self->cell;
  } else {
    __u32 cell = c->self->cell;
    struct controller *controller = bpf_map_lookup_elem(&controllers, &cell);
    if (controller && controller->address == source)
      mac = controller->mac;
  }
  if (!mac) {
    int reason = believe_outside(c);
    if (reason)
      return reason;
  } else if (mac_number(mac) != c->wire)
    return other_host(c, mac_number(mac));
  if (flow && (c->packet->fragment == LATER || is_of(flow, c->local_port, c->remote_port))) {
    flow->counted = c->counted;
    if (!c->here)
      learn_host(flow, c->wire, generation);
  }
  return PASS;
}

/* A later fragment passes as its first did, by the rules of now. */
static __always_inline int admit_later(struct check *c, struct flow *first, __u32 generation)
{
  if (!first)
    return FRAGMENT;
  if (first->generation != generation) {
    struct flow_key opening = {.remote = c->out ? c->packet->destination : c->packet->source,
                               .local_port = first->local_port,
                               .remote_port = first->remote_port,
                               .protocol = c->packet->protocol};
    long rule = evaluate_opening(c, &opening, first->opened_out);
    if (rule == NO_RULE_FOUND)
      return FRAGMENT;
    first->rule = rule;
    first->generation = generation;
  }
  return passes(c, first->rule);
}

/* Both ends have sent, and the one that opened it goes on: no flood of openings touches it any more. */
static __always_inline struct flow *settle(void *table, void *opening, const struct flow_key *key,
                                           const struct flow *flow)
{
  struct flow settled = *flow;
  bpf_map_update_elem(table, key, &settled, BPF_ANY);
  bpf_map_delete_elem(opening, key);
  return bpf_map_lookup_elem(table, key);
}

/* The check of one interface on one packet, by the rules of its cell. PASS or the reason of the drop. */
static __noinline int admit(struct check *c)
{
  struct packet *p = c->packet;
  /* Read before the rules: a flow judged by old rules must never carry the mark of the new ones. */
  __u32 *current = bpf_map_lookup_elem(&generations, &c->self->slot);
  void *table = bpf_map_lookup_elem(&flows, &c->self->slot);
  if (!current || !table)
    return NO_RULE;
  __u32 now_in_force = *(volatile __u32 *)current;
  c->generation = now_in_force;
  __u64 now = bpf_ktime_get_coarse_ns();
  struct flow_key key = {};
  key_of(c, &key);

  c->local_port = key.local_port;
  c->remote_port = key.remote_port;

  /* Where it is, or will be. */
  void *in = table;
  int opening = 0;
  struct flow *flow = bpf_map_lookup_elem(table, &key);
  if (!flow) {
    void *openings_table = bpf_map_lookup_elem(&openings, &c->self->slot);
    if (openings_table) {
      in = openings_table;
      opening = 1;
      flow = bpf_map_lookup_elem(openings_table, &key);
    }
  }
  /* Signed: another CPU may have seen the flow a moment after this one looked at the clock. */
  if (flow && (__s64)(now - flow->last_seen) > (__s64)idle_limit(&key, flow))
    flow = NULL;
  if (flow && p->fragment != LATER && !is_of(flow, key.local_port, key.remote_port))
    flow = NULL;
  if (c->from_wire) {
    int reason = believe(c, flow, now_in_force);
    if (reason)
      return reason;
  }
  if (p->fragment == LATER)
    return admit_later(c, flow, now_in_force);
  /* A server that opens a connection from its service port is no answer to anyone. */
  int opens = p->protocol == IPPROTO_TCP && (p->tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
  /* The flow of an echo is of echoes: a redirect with its identifier belongs to nothing. */
  if (flow && p->protocol == IPPROTO_ICMP && !p->error && p->icmp_type != 0 && p->icmp_type != 8)
    flow = NULL;
  if (flow && !(opens && (flow->opened_out != c->out || flow->finished >= 3))) {
    if (flow->generation != now_in_force) {
      struct flow renewed = *flow;
      long rule = evaluate_opening(c, &key, renewed.opened_out);
      if (rule == NO_RULE_FOUND) {
        bpf_map_delete_elem(in, &key);
        flow = NULL;
      } else {
        renewed.rule = rule;
        renewed.generation = now_in_force;
        bpf_map_update_elem(in, &key, &renewed, BPF_EXIST);
        flow = bpf_map_lookup_elem(in, &key);
        if (!flow)
          return passes(c, rule);
      }
    }
    if (flow) {
      __u32 rule = flow->rule;
      c->host = known_host(flow, now_in_force);
      if (!is_of(flow, key.local_port, key.remote_port))
        return NO_RULE;
      if (!p->error)
        see(flow, c, now);
      remember_fragments(table, c, &key, flow);
      if (opening && !p->error) {
        if (flow->opened_out != c->out)
          flow->answered = 1;
        else if (flow->answered && flow->finished < 3)
          flow = settle(table, in, &key, flow);
      }
      c->flow = flow;
      return passes(c, rule);
    }
  }
  /* Errors and echo answers belong to a flow or to nothing; redirects and router messages have no place here. */
  if (p->error || (p->protocol == IPPROTO_ICMP && (p->icmp_type == 0 || p->icmp_type == 4 || p->icmp_type == 5 ||
                                                   p->icmp_type == 9 || p->icmp_type == 10)))
    return NO_RULE;
  long rule = evaluate_opening(c, &key, c->out);
  if (rule == NO_RULE_FOUND) {
    forget_fragments(table, c);
    return NO_RULE;
  }
  struct flow opened = {.last_seen = now,
                        .rule = rule,
                        .generation = now_in_force,
                        .local_port = key.local_port,
                        .remote_port = key.remote_port,
                        .opened_out = c->out};
  if (p->protocol != IPPROTO_ICMP || p->icmp_type == 8)
    bpf_map_update_elem(in, &key, &opened, BPF_ANY);
  remember_fragments(table, c, &key, &opened);
  return passes(c, rule);
}

/* --- counters --------------------------------------------------------------------------------------------------- */

static __always_inline struct interface_counters *counters_of(const struct interface_state *self)
{
  return bpf_map_lookup_elem(&counters, &self->slot);
}

static __always_inline int drop(const struct interface_state *self, __u32 reason)
{
  struct interface_counters *c = counters_of(self);
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
  struct outside *out = way_out();
  if (!out || kind_of(from) != EXTERNAL || kind_of(to) != ELSEWHERE)
    return NO_LOCATION;
  __u64 router = *(volatile __u64 *)&out->router;
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

/* --- ARP -------------------------------------------------------------------------------------------------------- */

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

/* --- DHCP (RFC 2131, 2132) -------------------------------------------------------------------------------------- */

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

/* --- liveness --------------------------------------------------------------------------------------------------- */

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

/* --- programs --------------------------------------------------------------------------------------------------- */

static __always_inline int ipv4_from_vm(struct __sk_buff *skb, __u32 ifindex, const struct interface_state *self,
                                        const struct config *cfg, const struct ethhdr *eth)
{
  struct packet p = {};
  int reason = parse(skb, &p);
  if (reason)
    return drop(self, reason);
  __be32 broadcast = self->address | ~self->mask;
  int whole_udp = p.protocol == IPPROTO_UDP && p.fragment == WHOLE;
  if (whole_udp && p.source_port == 68 && p.destination_port == 67 && p.header_length == 20 &&
      (p.source == 0 || p.source == self->address) &&
      (p.destination == 0xffffffff || p.destination == broadcast || p.destination == self->gateway))
    return answer_dhcp(skb, ifindex, self, cfg);
  if (p.source != self->address)
    return drop(self, SPOOFED_ADDRESS);
  /* Clients take answers from any port. */
  if (p.protocol == IPPROTO_UDP && p.fragment != LATER && (p.source_port == 67 || p.destination_port == 68))
    return drop(self, ROGUE_DHCP);
  if (has_bad_size(skb, &p, self->mtu) || checksum_hits_header(skb, &p, eth))
    return drop(self, MALFORMED);
  if (p.destination == 0xffffffff || (self->mask != 0xffffffff && p.destination == broadcast) ||
      (bpf_ntohl(p.destination) >> 28) == 14)
    return drop(self, BROADCAST);
  /* What a VM sends to its gateway goes nowhere, and its answers to probes need no rule. */
  if (p.destination == self->gateway)
    return answers_probe(skb, &p, ifindex) ? TC_ACT_SHOT : drop(self, NO_RULE);
  /* An error quotes a packet that its receiver sent to this interface; anything else is made up. */
  if (p.error && (p.about_source != p.destination || p.about_destination != p.source))
    return drop(self, NO_RULE);

  struct check sender = {.self = self, .packet = &p, .bytes = skb->len, .out = 1};
  reason = admit(&sender);
  if (reason)
    return drop(self, reason);

  if (sender.host)
    return leave_by(skb, self, sender.host, cfg);
  __u64 host = 0;
  __u32 *local = bpf_map_lookup_elem(&endpoints, &p.destination);
  struct interface_state *receiver = NULL;
  __u32 receiver_index = 0;
  if (local) {
    receiver_index = *local;
    receiver = bpf_map_lookup_elem(&interfaces, &receiver_index);
  }
  if (receiver && receiver_index != ifindex) {
    struct check check = {.self = receiver, .packet = &p, .bytes = skb->len,
                          .counted = receiver->cell == self->cell};
    reason = admit(&check);
    if (reason)
      return drop(receiver, reason);
  } else if (!local) {
    struct location *location = bpf_map_lookup_elem(&locations, &p.destination);
    struct controller *controller = bpf_map_lookup_elem(&controllers, &self->cell);
    if (location)
      host = mac_number(location->mac);
    else if (controller && controller->address == p.destination) {
      /* A switch sends nothing back to where it came from, so a controller on this host is not behind the uplink. */
      __u32 *service = bpf_map_lookup_elem(&services, &p.destination);
      if (service) {
        count_sent(skb, self);
        return send_to(skb, controller->mac, cfg->host_mac, *service);
      }
      host = mac_number(controller->mac);
    } else {
      host = find_router(p.source, p.destination);
      if (host < DROP_REASONS)
        return drop(self, host);
    }
  }
  if (!host && !(receiver && receiver_index != ifindex))
    return drop(self, NO_LOCATION);
  if (host) {
    if (sender.flow && is_of(sender.flow, sender.local_port, sender.remote_port))
      learn_host(sender.flow, host, sender.generation);
    return leave_by(skb, self, host, cfg);
  }
  count_sent(skb, self);
  return deliver(skb, receiver_index, receiver, cfg);
}

SEC("tc")
int from_vm(struct __sk_buff *skb)
{
  __u32 ifindex = skb->ingress_ifindex ? skb->ingress_ifindex : skb->ifindex, zero = 0;
  struct interface_state *self = bpf_map_lookup_elem(&interfaces, &ifindex);
  struct config *cfg = bpf_map_lookup_elem(&config, &zero);
  if (!self || !cfg)
    return TC_ACT_SHOT;
  struct ethhdr eth;
  if (load(skb, 0, &eth, sizeof(eth)))
    return drop(self, MALFORMED);
  if (!same_mac(eth.h_source, self->mac))
    return drop(self, SPOOFED_MAC);
  if (skb->vlan_present)
    return drop(self, OTHER_ETHERTYPE);
  if (eth.h_proto == bpf_htons(ETH_P_IP))
    return ipv4_from_vm(skb, ifindex, self, cfg, &eth);
  if (eth.h_proto == bpf_htons(ETH_P_ARP))
    return arp_from_vm(skb, ifindex, self, cfg);
  return drop(self, eth.h_proto == bpf_htons(ETH_P_IPV6) ? IPV6 : OTHER_ETHERTYPE);
}

/* Where a frame from the wire comes from. */
struct arrival {
  __u64 from;   /* number of its source MAC */
  __u32 device; /* 0: a service of this host, as if by the wire */
};

/* The check of a local interface on a packet from the underlay or from outside. */
static __always_inline int receive(struct __sk_buff *skb, struct packet *p, const struct arrival *arrival, __u32 ifindex,
                                   const struct interface_state *self, const struct config *cfg)
{
  if (p->error && p->about_source != p->destination)
    return drop(self, NO_RULE);
  struct check check = {.self = self, .packet = p, .bytes = skb->len, .here = !arrival->device, .from_wire = 1,
                        .device = arrival->device, .wire = arrival->from};
  /* Any router on the way outside may say why a packet did not get there (RFC 1812, 5.2.7), as if its receiver did. */
  if (p->error && p->about_destination != p->source) {
    if (believe_outside(&check))
      return drop(self, NO_RULE);
    p->source = p->about_destination;
  }
  int reason = admit(&check);
  if (reason)
    return drop(self, reason);
  return deliver(skb, ifindex, self, cfg);
}

static __always_inline int ipv4_from_service(struct __sk_buff *skb, __u32 ifindex, const struct interface_state *self,
                                             const struct config *cfg, const struct ethhdr *eth)
{
  struct packet p = {};
  int reason = parse(skb, &p);
  if (reason)
    return drop(self, reason);
  if (p.source != self->address)
    return drop(self, SPOOFED_ADDRESS);
  if (p.protocol == IPPROTO_UDP && p.fragment != LATER && (p.source_port == 67 || p.destination_port == 68))
    return drop(self, ROGUE_DHCP);
  /* That the destination MAC was tried on must not be seen by the bridge. */
  if (has_bad_size(skb, &p, self->mtu) || checksum_hits_header(skb, &p, eth) ||
      bpf_skb_store_bytes(skb, 0, eth->h_dest, ETH_ALEN, 0))
    return drop(self, MALFORMED);
  if (p.destination == cfg->host_address && answers_probe(skb, &p, ifindex))
    return TC_ACT_SHOT;
  /* A VM of this host is behind no bridge: as if the packet had come over the wire. */
  __u32 *local = bpf_map_lookup_elem(&endpoints, &p.destination);
  if (local) {
    __u32 receiver_index = *local;
    struct interface_state *receiver = bpf_map_lookup_elem(&interfaces, &receiver_index);
    if (!receiver)
      return drop(self, NO_LOCATION);
    struct arrival arrival = {.from = mac_number(eth->h_source)};
    int verdict = receive(skb, &p, &arrival, receiver_index, receiver, cfg);
    if (verdict != TC_ACT_SHOT)
      count_sent(skb, self);
    return verdict;
  }
  count_sent(skb, self);
  return TC_ACT_OK;
}

/* What it lets through, the bridge forwards: to the uplink, to the host's own stack, to other services of this host. */
SEC("tc")
int from_service(struct __sk_buff *skb)
{
  __u32 ifindex = skb->ingress_ifindex ? skb->ingress_ifindex : skb->ifindex, zero = 0;
  struct interface_state *self = bpf_map_lookup_elem(&interfaces, &ifindex);
  struct config *cfg = bpf_map_lookup_elem(&config, &zero);
  if (!self || !cfg)
    return TC_ACT_SHOT;
  struct ethhdr eth;
  if (load(skb, 0, &eth, sizeof(eth)))
    return drop(self, MALFORMED);
  if (!same_mac(eth.h_source, self->mac))
    return drop(self, SPOOFED_MAC);
  if (skb->vlan_present)
    return drop(self, OTHER_ETHERTYPE);
  if (eth.h_proto == bpf_htons(ETH_P_IP))
    return ipv4_from_service(skb, ifindex, self, cfg, &eth);
  if (eth.h_proto == bpf_htons(ETH_P_ARP))
    return arp_from_service(skb, ifindex, self, cfg);
  return drop(self, eth.h_proto == bpf_htons(ETH_P_IPV6) ? IPV6 : OTHER_ETHERTYPE);
}

/* A frame from a segment where this host has the MAC `own`: the underlay, or the network outside. */
static __always_inline int from_segment(struct __sk_buff *skb, const struct config *cfg, struct arrival *arrival,
                                        const __u8 *own)
{
  struct ethhdr eth;
  if (skb->vlan_present || load(skb, 0, &eth, sizeof(eth)))
    return TC_ACT_OK;
  if (eth.h_proto == bpf_htons(ETH_P_ARP))
    return arp_from_wire(skb, arrival->device, cfg);
  if (eth.h_proto != bpf_htons(ETH_P_IP))
    return TC_ACT_OK;
  /* What belongs to no endpoint is the machine's own, however odd it looks. */
  __be32 destination;
  if (load(skb, ETH_LENGTH + 16, &destination, 4))
    return TC_ACT_OK;
  __u32 *local = bpf_map_lookup_elem(&endpoints, &destination);
  if (!local)
    return TC_ACT_OK;
  __u32 ifindex = *local;
  struct interface_state *self = bpf_map_lookup_elem(&interfaces, &ifindex);
  if (!self || !same_mac(eth.h_dest, own))
    return TC_ACT_SHOT;
  /* Of no machine: neither nobody nor a group sends anything. */
  if (!mac_number(eth.h_source) || (eth.h_source[0] & 1))
    return drop(self, SPOOFED_MAC);
  struct packet p = {};
  int reason = parse(skb, &p);
  if (reason)
    return drop(self, reason);
  arrival->from |= mac_number(eth.h_source);
  return receive(skb, &p, arrival, ifindex, self, cfg);
}

SEC("tc")
int from_wire(struct __sk_buff *skb)
{
  __u32 zero = 0;
  struct config *cfg = bpf_map_lookup_elem(&config, &zero);
  if (!cfg)
    return TC_ACT_OK;
  struct arrival arrival = {.device = cfg->uplink};
  return from_segment(skb, cfg, &arrival, cfg->host_mac);
}

SEC("tc")
int from_outside(struct __sk_buff *skb)
{
  __u32 zero = 0;
  struct config *cfg = bpf_map_lookup_elem(&config, &zero);
  struct outside *out = way_out();
  if (!cfg || !out)
    return TC_ACT_OK;
  struct arrival arrival = {.device = out->device, .from = OUTSIDE};
  return from_segment(skb, cfg, &arrival, out->mac);
}

/* Types that no map declaration names, kept in the BTF for the comparison with layout.ts. */
struct declared {
  struct policy_key policy_key;
  struct policy_entry policy_entry;
  struct flow_key flow_key;
  struct flow flow;
  enum network_kind network_kind;
  enum drop_reason drop_reason;
};
const struct declared declared SEC(".rodata") = {};

char license_text[] SEC("license") = "Apache-2.0";
