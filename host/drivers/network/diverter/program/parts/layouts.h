// SPDX-License-Identifier: Apache-2.0
/*
 * Keys, values and numbers that user space shares with the programs. They are declared in ../layout.ts as well, and a test
 * compares the two by the BTF of the object.
 */
#pragma once

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
#define EVERYBODY 0xffffffff
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
/* More copies than an interface may have made of what it sends to many. Counted where PASS would be, which drops nothing. */
#define TOO_MANY_COPIES PASS

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
/* Who may get a copy of what is sent to a group: of a subnet, or of a cell (subnet 0). `everybody`: to all of the subnet. */
struct fanout_key {
  __u32 cell;
  __u32 subnet;
  __be32 group;
};
struct member {
  __be32 address;
  __u32 ifindex; /* 0: it is on another host, which has that MAC */
  __u8 mac[6];
  __u8 padding[2];
};
/* Whose broadcast address that is. */
struct subnet_key {
  __u32 cell;
  __u32 subnet;
};
/* Copies that an interface may still have made, in nanoseconds of the time in which it earns them, and when that was. */
struct copies {
  __u64 last;
  __u64 left;
};
/* Groups that a guest is a member of by its own reports, and when each was heard of last. 0: none. */
#define MOST_GROUPS 16
struct joined {
  __u64 heard[MOST_GROUPS];
  __be32 groups[MOST_GROUPS];
};
struct policy_state {
  __u32 version;
};
/*
 * One trie holds the rules and the networks of a cell and who routes for whom, so that all change in the same instant.
 * ROUTER: from a subnet's identity to an interface, its address and its identity in the first two ranges. FORWARDS: from an
 * interface's identity to networks outside in whose name it may speak.
 */
enum policy_kind { NETWORK = 1, RULE = 2, ROUTER = 3, FORWARDS = 4 };
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
/*
 * A question from one host to a machine of another, and its answer, are on the underlay as IP packets with an Ethernet type of their own
 * (local experimental, IEEE 802 9.2.4): no machine can send one, and no host's own stack takes it.
 */
#define ETH_P_QUESTION 0x88b5
/* What a host waits for: from that machine on the underlay, from that address, with identifier and sequence of its echo. */
struct asked_key {
  __u64 host;
  __be32 address;
  __u16 here;
  __u16 there;
};
/* Who has put a question to an interface here. Its key is that of a probe. */
struct asker {
  __u8 mac[6];
  __u8 padding[2];
};
/* What follows a BOOTP message's fixed fields: sname and file (empty), the cookie, the options; 576 octets of IP in all. */
struct dhcp_answer {
  __u8 names[192];
  __u8 cookie[4];
  __u8 options[308];
};
