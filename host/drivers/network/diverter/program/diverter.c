// SPDX-License-Identifier: Apache-2.0
/*
 * Diverter's dataplane. Programs on clsact: `from_vm` at the ingress of every tap, `from_wire` at the ingress of the
 * uplink, `from_outside` at the ingress of a device of its own that leads out of the installation, and `from_service` at
 * the ingress of the taps that are ports of the host's bridge: those of VMs on the management network, which is the
 * underlay itself and has no rules.
 *
 * Every local interface has its own check, made by the rules of its own cell: on what it sends and on what it receives. A
 * packet between two interfaces of one host therefore meets both checks here, a packet across hosts one at each end. What
 * is decided for the first packet of a flow is remembered per interface, so that answers pass and nothing else does.
 *
 * One program, in parts that each know those before them.
 */
#include "parts/layouts.h"
#include "parts/maps.h"
#include "parts/packet.h"
#include "parts/rules.h"
#include "parts/flows.h"
#include "parts/outside.h"
#include "parts/router.h"
#include "parts/admit.h"
#include "parts/leave.h"
#include "parts/many.h"
#include "parts/igmp.h"
#include "parts/arp.h"
#include "parts/dhcp.h"
#include "parts/liveness.h"

/* A machine's packet to the outside goes to the router of its subnet, which is an interface of its cell. */
static __noinline int send_to_own_router(struct __sk_buff *skb, const struct interface_state *self, __be32 address,
                                         struct check *sender, const struct config *cfg)
{
  __u32 *local = bpf_map_lookup_elem(&endpoints, &address);
  if (local) {
    __u32 ifindex = *local;
    struct interface_state *router = bpf_map_lookup_elem(&interfaces, &ifindex);
    if (!router || router->cell != self->cell)
      return drop(self, NO_ROUTER);
    count_sent(skb, self);
    return deliver(skb, ifindex, router, cfg);
  }
  struct location *location = bpf_map_lookup_elem(&locations, &address);
  if (!location || location->cell != self->cell)
    return drop(self, NO_ROUTER);
  __u64 host = mac_number(location->mac);
  if (sender->flow && is_of(sender->flow, sender->local_port, sender->remote_port))
    learn_host(sender->flow, host, sender->generation);
  return leave_by(skb, self, host, cfg);
}

/* Is that the broadcast address of another subnet, of this cell or of one that its rules name? */
static __noinline int is_directed(const struct interface_state *self, __be32 destination)
{
  struct identity_key key = {.cell = self->cell, .address = destination};
  return bpf_map_lookup_elem(&broadcasts, &key) != NULL;
}

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
  int forwards = p.source != self->address;
  if (forwards && !routes_between(self, p.destination, p.source))
    return drop(self, SPOOFED_ADDRESS);
  if (is_dhcp_answer(&p))
    return drop(self, ROGUE_DHCP);
  if (has_bad_size(skb, &p, self->mtu) || checksum_hits_header(skb, &p, eth))
    return drop(self, MALFORMED);
  if (p.destination == EVERYBODY || (self->mask != 0xffffffff && p.destination == broadcast) ||
      is_group(p.destination)) {
    bpf_tail_call(skb, &parts, FAN_OUT);
    return drop(self, BROADCAST);
  }
  /* What a VM sends to its gateway goes nowhere, and its answers to probes need no rule. */
  if (p.destination == self->gateway)
    return answers_probe(skb, &p, ifindex) ? TC_ACT_SHOT : answer_question(skb, &p, ifindex, self, cfg);
  /* An error quotes a packet that its receiver sent to this interface; anything else is made up. */
  if (p.error && p.about_source != p.destination)
    return drop(self, NO_RULE);
  /* A router says why a packet did not get there, as if its receiver did. */
  if (p.error && p.about_destination != p.source) {
    if (!routes_between(self, p.destination, p.about_destination))
      return drop(self, NO_RULE);
    p.source = p.about_destination;
    forwards = 1;
  }

  struct check sender = {.self = self, .packet = &p, .bytes = skb->len, .out = 1};
  reason = forwards ? PASS : admit(&sender);
  if (reason) {
    if (reason == NO_RULE && is_directed(self, p.destination))
      bpf_tail_call(skb, &parts, FAN_OUT);
    return drop(self, reason);
  }

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
                          .counted = !forwards && receiver->cell == self->cell};
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
      if (is_directed(self, p.destination)) {
        bpf_tail_call(skb, &parts, FAN_OUT);
        return drop(self, BROADCAST);
      }
      struct own_router way = {.cell = self->cell, .inside = p.source, .outside = p.destination};
      if (find_own_router(&way) && way.address != self->address)
        return send_to_own_router(skb, self, way.address, &sender, cfg);
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
  /* Looked at here too: no host has done it for what comes from outside, and none can be relied upon to. */
  if (is_dhcp_answer(p))
    return drop(self, ROGUE_DHCP);
  if (p->error && p->about_source != p->destination)
    return drop(self, NO_RULE);
  struct check check = {.self = self, .packet = p, .bytes = skb->len, .here = !arrival->device, .from_wire = 1,
                        .device = arrival->device, .wire = arrival->from};
  /* Any router on the way outside may say why a packet did not get there (RFC 1812, 5.2.7), as if its receiver did. */
  if (p->error && p->about_destination != p->source) {
    if (believe_outside(&check) && !believe_own_router(&check, p->about_destination))
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
  if (is_dhcp_answer(&p))
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

/* From another host, for nobody here, and not for the host either: a machine's packet to its router, which is here? */
static __noinline int to_own_router_here(struct __sk_buff *skb, const struct config *cfg, const struct ethhdr *eth,
                                         __be32 destination)
{
  __be32 source;
  if (load(skb, ETH_LENGTH + 12, &source, 4))
    return TC_ACT_OK;
  struct location *location = bpf_map_lookup_elem(&locations, &source);
  if (!location)
    return TC_ACT_OK;
  struct own_router way = {.cell = location->cell, .inside = source, .outside = destination};
  if (!find_own_router(&way))
    return TC_ACT_OK;
  __be32 address = way.address;
  __u32 *local = bpf_map_lookup_elem(&endpoints, &address);
  if (!local)
    return TC_ACT_OK;
  __u32 ifindex = *local;
  struct interface_state *self = bpf_map_lookup_elem(&interfaces, &ifindex);
  if (!self || self->cell != way.cell)
    return TC_ACT_SHOT;
  if (!same_mac(location->mac, eth->h_source))
    return drop(self, WRONG_HOST);
  struct packet p = {};
  int reason = parse(skb, &p);
  if (reason)
    return drop(self, reason);
  if (is_dhcp_answer(&p))
    return drop(self, ROGUE_DHCP);
  if (p.error && (p.about_source != p.destination || p.about_destination != p.source))
    return drop(self, NO_RULE);
  return deliver(skb, ifindex, self, cfg);
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
  if (!local) {
    if (destination == cfg->host_address || arrival->from || !same_mac(eth.h_dest, own))
      return TC_ACT_OK;
    struct identity_key many = {.address = destination};
    if (destination == EVERYBODY || is_group(destination) || bpf_map_lookup_elem(&broadcasts, &many)) {
      bpf_tail_call(skb, &parts, FAN_IN);
      return TC_ACT_SHOT;
    }
    return to_own_router_here(skb, cfg, &eth, destination);
  }
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
  if (skb->protocol == bpf_htons(ETH_P_QUESTION))
    return hear_question(skb, cfg);
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

/* What a VM sends to many; `from_vm` has looked at all that is not about who gets it. */
SEC("tc")
int fan_out(struct __sk_buff *skb)
{
  __u32 ifindex = skb->ingress_ifindex ? skb->ingress_ifindex : skb->ifindex, zero = 0;
  struct interface_state *self = bpf_map_lookup_elem(&interfaces, &ifindex);
  struct walk *walk = bpf_map_lookup_elem(&walks, &zero);
  if (!self || !walk)
    return TC_ACT_SHOT;
  __builtin_memset(walk, 0, sizeof(*walk));
  int reason = parse_into(skb, walk);
  if (reason)
    return drop(self, reason);
  /* A report is this host's to hear, and nobody else's. */
  if (walk->packet.protocol == IPPROTO_IGMP && walk->packet.fragment == WHOLE && is_group(walk->packet.destination)) {
    hear_igmp(skb, ifindex, ETH_LENGTH + walk->packet.header_length);
    return TC_ACT_SHOT;
  }
  walk->sender = ifindex;
  walk->cell = self->cell;
  __be32 broadcast = self->mask == 0xffffffff ? EVERYBODY : self->address | ~self->mask;
  struct copies *copies = bpf_map_lookup_elem(&copies_left, &self->slot);
  if (!copies || !can_be_copied(&walk->packet) || !find_members(walk, self->subnet_identity, broadcast, self->cell) ||
      !bpf_map_lookup_elem(&fanout, &walk->key))
    return drop(self, BROADCAST);
  __u64 now = bpf_ktime_get_coarse_ns(), earned = copies->left + (now - copies->last);
  if (earned > MOST_COPIES)
    earned = MOST_COPIES;
  /* To look for members takes its time, too, whether anybody gets a copy or not. */
  if (earned < COPY_COST)
    return drop(self, TOO_MANY_COPIES);
  walk->left = earned;
  remember_sent_to_many(self, &walk->packet);
  copy_for_all(skb, walk);
  copies->last = now;
  copies->left = walk->left == earned ? earned - COPY_COST : walk->left;
  if (walk->copies)
    count_sent(skb, self);
  if (walk->exhausted)
    return drop(self, TOO_MANY_COPIES);
  return walk->copies ? TC_ACT_SHOT : drop(self, NO_RULE);
}

/* What a VM of another host sends to many: a copy for each member here. */
SEC("tc")
int fan_in(struct __sk_buff *skb)
{
  __u32 zero = 0;
  struct walk *walk = bpf_map_lookup_elem(&walks, &zero);
  struct ethhdr eth;
  if (!walk || load(skb, 0, &eth, sizeof(eth)))
    return TC_ACT_SHOT;
  __builtin_memset(walk, 0, sizeof(*walk));
  if (parse_into(skb, walk) || !can_be_copied(&walk->packet) || is_dhcp_answer(&walk->packet))
    return TC_ACT_SHOT;
  struct location *location = bpf_map_lookup_elem(&locations, &walk->packet.source);
  if (!location || !same_mac(location->mac, eth.h_source))
    return TC_ACT_SHOT;
  walk->cell = location->cell;
  walk->wire = mac_number(eth.h_source);
  struct identity_key sender = {.cell = walk->cell, .address = walk->packet.source};
  struct identities *known = bpf_map_lookup_elem(&identities, &sender);
  if (find_members(walk, known ? known->subnet_identity : 0, EVERYBODY, 0))
    copy_for_all(skb, walk);
  return TC_ACT_SHOT;
}

/* Types that no map declaration names, kept in the BTF for the comparison with layout.ts. */
struct declared {
  struct policy_key policy_key;
  struct policy_entry policy_entry;
  struct flow_key flow_key;
  struct flow flow;
  struct member member;
  enum network_kind network_kind;
  enum drop_reason drop_reason;
};
const struct declared declared SEC(".rodata") = {};

char license_text[] SEC("license") = "Apache-2.0";
