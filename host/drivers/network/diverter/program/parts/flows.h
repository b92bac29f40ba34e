// SPDX-License-Identifier: Apache-2.0
/* What an interface remembers of flows: whose packets belong together, how long, and by which rule. */
#pragma once

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

/* Is it an answer to what this interface has sent to many? That has the same ports, and nobody's address. */
static __always_inline int answers_many(void *openings_table, const struct flow_key *key, __u64 now)
{
  struct flow_key many = *key;
  many.remote = EVERYBODY;
  struct flow *flow = bpf_map_lookup_elem(openings_table, &many);
  return flow && (__s64)(now - flow->last_seen) <= (__s64)idle_limit(&many, flow) &&
         is_of(flow, key->local_port, key->remote_port);
}

static __always_inline int passes(const struct check *c, __u32 rule)
{
  if (!c->counted)
    count_rule(c->self->cell, rule, c->bytes);
  return PASS;
}
