// SPDX-License-Identifier: Apache-2.0
/* The check of one interface on one packet. */
#pragma once

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
  __u64 next = c->wire;
  if (!mac) {
    int reason = believe_outside(c);
    if (reason && !believe_own_router(c, source))
      return reason;
    /* Answers go to the router in use, whichever sent this: of that one alone every flow hears when it is another. */
    if (!reason)
      next = router_in_use();
  } else if (mac_number(mac) != c->wire)
    return other_host(c, mac_number(mac));
  if (flow && (c->packet->fragment == LATER || is_of(flow, c->local_port, c->remote_port))) {
    flow->counted = c->counted;
    if (!c->here && next)
      learn_host(flow, next, generation);
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
  int is_reply = p->protocol == IPPROTO_ICMP && p->icmp_type == 0;
  if (p->error || (is_reply && c->out) ||
      (p->protocol == IPPROTO_ICMP && (p->icmp_type == 4 || p->icmp_type == 5 || p->icmp_type == 9 || p->icmp_type == 10)))
    return NO_RULE;
  int opened_out = c->out;
  long rule = is_reply ? NO_RULE_FOUND : evaluate_opening(c, &key, c->out);
  /* What this interface has sent to many is answered by whom its rules let have a copy; to an echo, with its reply. */
  int may_answer = !c->out && p->fragment == WHOLE && (p->protocol == IPPROTO_UDP || is_reply);
  if (rule == NO_RULE_FOUND && may_answer && answers_many(openings_of(c, table), &key, now)) {
    opened_out = 1;
    rule = evaluate_opening(c, &key, 1);
  }
  if (rule == NO_RULE_FOUND) {
    if (!is_reply)
      forget_fragments(table, c);
    return NO_RULE;
  }
  struct flow opened = {.last_seen = now,
                        .rule = rule,
                        .generation = now_in_force,
                        .local_port = key.local_port,
                        .remote_port = key.remote_port,
                        .opened_out = opened_out};
  if (p->protocol != IPPROTO_ICMP || p->icmp_type == 8)
    bpf_map_update_elem(in, &key, &opened, BPF_ANY);
  remember_fragments(table, c, &key, &opened);
  return passes(c, rule);
}
