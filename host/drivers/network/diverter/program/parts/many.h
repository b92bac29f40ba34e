// SPDX-License-Identifier: Apache-2.0
/*
 * Broadcast and multicast: one copy for each host with a member to whom a rule of the sender's cell admits the same packet,
 * and there one for each member to whom its own cell's rules do. Programs of their own, which others go on with: an ordinary
 * packet costs no more, and these have a stack of their own.
 */
#pragma once

#define MOST_MEMBERS 1024
/* 200 copies a second, and 400 at once. */
#define COPY_COST (SECOND / 200)
#define MOST_COPIES (400 * COPY_COST)
enum part { FAN_OUT = 0, FAN_IN = 1 };

static __always_inline int is_group(__be32 address)
{
  return (bpf_ntohl(address) >> 28) == 14;
}

/* A group of the subnet: 224.0.0/24, 239.255/16 (RFC 5771, RFC 2365); every other one is of the cell. */
static __always_inline int is_of_subnet(__be32 group)
{
  __u32 number = bpf_ntohl(group);
  return number >> 8 == 0xe00000 || number >> 16 == 0xefff;
}

/* Only what is one packet, and of which an answer can be told: no flow stands for a part of one. */
static __always_inline int can_be_copied(const struct packet *p)
{
  return p->fragment == WHOLE && !p->error &&
         (p->protocol == IPPROTO_UDP || (p->protocol == IPPROTO_ICMP && p->icmp_type == 8));
}

/* What one walk over the members knows. It lies in a map: a stack has not the room for it and for what is called. */
struct walk {
  struct packet packet;
  struct fanout_key key;
  __u32 at;     /* which member is next */
  __u32 sender; /* its interface here; 0: it came by the wire */
  __u32 cell;   /* of the sender */
  __u64 wire;   /* by which host it came */
  __u64 left;   /* what may still be spent on copies */
  __u32 only;   /* of a directed broadcast: the subnet's identity in the sender's cell */
  __u32 copies;
  __u8 directed;
  __u8 exhausted;
  __u8 sent_to[6]; /* the host that got the last one: members of one host are neighbours in the list */
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __type(key, __u32);
  __type(value, struct walk);
  __uint(max_entries, 1);
} walks SEC(".maps");

static __noinline int copy_to(struct __sk_buff *skb, const __u8 *to, const __u8 *from, __u32 ifindex)
{
  __u8 macs[12];
  __builtin_memcpy(macs, to, 6);
  __builtin_memcpy(macs + 6, from, 6);
  if (bpf_skb_store_bytes(skb, 0, macs, sizeof(macs), 0))
    return 1;
  /* Whether a device takes it is not asked of any other packet either. */
  bpf_clone_redirect(skb, ifindex, 0);
  return 0;
}

/* Would a rule of that cell admit it as a packet to that member alone? */
static __noinline int is_admitted(const struct walk *w, __u32 cell, __be32 to, __u32 only)
{
  const struct packet *p = &w->packet;
  struct question q = {.cell = cell, .from = p->source, .to = to, .protocol = p->protocol, .only = only};
  if (p->protocol != IPPROTO_ICMP) {
    q.source_port = p->source_port;
    q.destination_port = p->destination_port;
  }
  return evaluate(&q) != NO_RULE_FOUND;
}

/* The copy of a member here, by the rules of its own cell. */
static __always_inline void copy_here(struct __sk_buff *skb, struct walk *w, const struct config *cfg, __u32 ifindex,
                                      __be32 address)
{
  struct interface_state *to = bpf_map_lookup_elem(&interfaces, &ifindex);
  if (!to || to->address != address)
    return;
  if (w->directed && !is_admitted(w, to->cell, address, to->subnet_identity)) {
    drop(to, NO_RULE);
    return;
  }
  struct check check = {.self = to, .packet = &w->packet, .bytes = skb->len, .from_wire = !w->sender, .wire = w->wire,
                        .device = cfg->uplink, .counted = w->sender && w->cell == to->cell};
  int reason = admit(&check);
  if (reason) {
    drop(to, reason);
    return;
  }
  if (copy_to(skb, to->mac, cfg->gateway_mac, ifindex))
    return;
  struct interface_counters *c = counters_of(to);
  if (c) {
    c->received_packets++;
    c->received_bytes += skb->len;
  }
  w->copies++;
}

/* The next member, and whether it was the last one. Global, so that the verifier walks it once and not for each member. */
__noinline int copy_for_member(struct __sk_buff *skb, struct walk *w)
{
  __u32 zero = 0;
  struct config *cfg = bpf_map_lookup_elem(&config, &zero);
  if (!w || !cfg)
    return 1;
  struct fanout_key key = w->key;
  void *list = bpf_map_lookup_elem(&fanout, &key);
  if (!list)
    return 1;
  __u32 at = w->at++;
  struct member *member = bpf_map_lookup_elem(list, &at);
  if (!member)
    return 1;
  __be32 address = member->address;
  __u32 ifindex = member->ifindex;
  if (address == w->packet.source)
    return 0;
  if (!w->sender) {
    if (ifindex)
      copy_here(skb, w, cfg, ifindex, address);
    return 0;
  }
  if (!ifindex && same_mac(member->mac, w->sent_to))
    return 0;
  if (!is_admitted(w, w->cell, address, w->only))
    return 0;
  if (w->left < COPY_COST) {
    w->exhausted = 1;
    return 1;
  }
  w->left -= COPY_COST;
  if (ifindex) {
    copy_here(skb, w, cfg, ifindex, address);
    return 0;
  }
  __builtin_memcpy(w->sent_to, member->mac, 6);
  if (!copy_to(skb, member->mac, cfg->host_mac, cfg->uplink))
    w->copies++;
  return 0;
}

static __always_inline void copy_for_all(struct __sk_buff *skb, struct walk *w)
{
  for (int i = 0; i < MOST_MEMBERS; i++)
    if (copy_for_member(skb, w))
      break;
}

static __noinline int parse_into(struct __sk_buff *skb, struct walk *w)
{
  struct packet p = {};
  int reason = parse(skb, &p);
  w->packet = p;
  return reason;
}

/* Answers of members are told by it: what has been sent to many, whichever address that was. */
static __noinline int remember_sent_to_many(const struct interface_state *self, struct packet *p)
{
  struct check c = {.self = self, .packet = p, .out = 1};
  struct flow_key key = {};
  key_of(&c, &key);
  key.remote = EVERYBODY;
  void *table = bpf_map_lookup_elem(&openings, &self->slot);
  struct flow opened = {.last_seen = bpf_ktime_get_coarse_ns(),
                        .local_port = key.local_port,
                        .remote_port = key.remote_port,
                        .opened_out = 1};
  return table ? bpf_map_update_elem(table, &key, &opened, BPF_ANY) : 0;
}

/* Who is to get what a machine of that cell and subnet sends there; 0: that address is nobody's. */
static __noinline int find_members(struct walk *w, __u32 subnet, __be32 own_broadcast, __u32 asking)
{
  __be32 destination = w->packet.destination;
  w->key.cell = w->cell;
  w->key.subnet = subnet;
  w->key.group = EVERYBODY;
  if (is_group(destination)) {
    w->key.group = destination;
    if (!is_of_subnet(destination))
      w->key.subnet = 0;
    return 1;
  }
  if (destination == EVERYBODY || destination == own_broadcast)
    return 1;
  struct identity_key directed = {.cell = asking, .address = destination};
  struct subnet_key *found = bpf_map_lookup_elem(&broadcasts, &directed);
  if (!found)
    return 0;
  w->directed = found->cell != w->cell || found->subnet != subnet;
  w->only = w->directed ? found->subnet : 0;
  w->key.cell = found->cell;
  w->key.subnet = found->subnet;
  /* One question that all answer to an address that anybody can forge (RFC 2644). */
  return !w->directed || w->packet.protocol != IPPROTO_ICMP;
}
