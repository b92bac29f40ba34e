import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compile } from "../program/build.ts";

/**
 * Checks of the program, each with what the source is without it. The fuzz finds every one: a check that can be taken out
 * unnoticed protects nothing, or is not tried.
 */
export interface Mutation {
  readonly name: string;
  /** Below `program/`. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}
const packet = "parts/packet.h";
const rules = "parts/rules.h";
const flows = "parts/flows.h";
const outside = "parts/outside.h";
const router = "parts/router.h";
const many = "parts/many.h";
const admit = "parts/admit.h";
const leave = "parts/leave.h";
const arp = "parts/arp.h";
const dhcp = "parts/dhcp.h";
const main = "diverter.c";

export const mutations: readonly Mutation[] = [
  {
    name: "a packet does not name its own way",
    file: packet,
    find: "    if (option[0] == 0x83 || option[0] == 0x89)\n      return 1;\n",
    replace: "",
  },
  {
    name: "a packet is no longer than its frame",
    file: packet,
    find: " || total + ETH_LENGTH > skb->len",
    replace: "",
  },
  {
    name: "a fragment does not overwrite the flags of its header",
    file: packet,
    find: "== 1 && ip.protocol == IPPROTO_TCP ? MALFORMED : PASS",
    replace: "== 1 && ip.protocol == IPPROTO_TCP ? PASS : PASS",
  },
  { name: "a header of TCP has its least length", file: packet, find: "    if (length < 20 ||", replace: "    if (" },
  {
    name: "a segment does not open and end at once",
    file: packet,
    find: "((l4[13] & TCP_SYN) && (l4[13] & (TCP_FIN | TCP_RST))) ||",
    replace: "",
  },
  {
    name: "a datagram is no longer than its packet",
    file: packet,
    find: "(length < 8 || header + length > total)",
    replace: "length < 8",
  },
  {
    name: "an ICMP error is whole",
    file: packet,
    find: "      if (p->fragment != WHOLE)\n        return MALFORMED;\n",
    replace: "",
  },
  {
    name: "a frame that is cut is cut into few",
    file: packet,
    find: "  if (piece && piece < SMALLEST_PIECE && skb->len > piece * MOST_SMALL_PIECES)\n    return 1;\n",
    replace: "",
  },
  {
    name: "what is cut fits the underlay with its header",
    file: packet,
    find: "piece + p->header_length + p->tcp_length",
    replace: "piece",
  },
  {
    name: "no network stands for the controller",
    file: rules,
    find: "if (controller && controller->address == address)",
    replace: "if (controller && !address)",
  },
  {
    name: "a rule's source ports count",
    file: rules,
    find: " && source_port >= entry->ranges[i].first && source_port <= entry->ranges[i].last",
    replace: "",
  },
  {
    name: "a rule's destination port counts",
    file: rules,
    find: ".port = bpf_htons(q->destination_port)",
    replace: ".port = bpf_htons(80)",
  },
  {
    name: "a flow that is idle is no more",
    file: admit,
    find: "  if (flow && (__s64)(now - flow->last_seen) > (__s64)idle_limit(&key, flow))\n    flow = NULL;\n",
    replace: "",
  },
  {
    name: "a connection that has ended is soon no more",
    file: flows,
    find: "flow->finished >= 3 ? 10 * SECOND : 3600 * SECOND",
    replace: "3600 * SECOND",
  },
  {
    name: "an echo's flow is of who asked",
    file: flows,
    find: "key->remote_port = c->out == (p->icmp_type == 8);",
    replace: "key->remote_port = 1;",
  },
  {
    name: "an error's flow is of the packet that it is about",
    file: flows,
    find: "key->local_port = c->out ? p->about_destination_port : p->about_source_port;",
    replace: "key->local_port = c->out ? p->about_source_port : p->about_source_port;",
  },
  {
    name: "a first fragment that is refused takes those behind it along",
    file: flows,
    find: "  bpf_map_delete_elem(openings_of(c, table), &key);\n",
    replace: "",
  },
  {
    name: "the end of a connection is seen",
    file: flows,
    find: "    flow->finished |= 4;",
    replace: "    flow->finished |= 0;",
  },
  {
    name: "what comes in from outside is for an external address",
    file: outside,
    find: " || kind_of(c->self->address) != EXTERNAL)",
    replace: ")",
  },
  {
    name: "what comes in from outside is not of the inside",
    file: outside,
    find: "if (kind_of(source) != ELSEWHERE || bpf_map_lookup_elem(&endpoints, &source))",
    replace: "if (!source)",
  },
  {
    name: "what comes in from outside comes from a router",
    file: outside,
    find: "return routed ? PASS : NOT_FROM_ROUTER;\n}\n\n/*",
    replace: "return PASS;\n}\n\n/*",
  },
  {
    name: "what comes in from outside comes by the way out",
    file: outside,
    find: "!out || out->device != c->device || kind_of",
    replace: "!out || kind_of",
  },
  {
    name: "a member's own cell judges its copy",
    file: many,
    find: "  int reason = admit(&check);\n",
    replace: "  int reason = check.self ? PASS : NO_RULE;\n",
  },
  {
    name: "the sender's cell judges each copy",
    file: many,
    find: "  if (!is_admitted(w, w->cell, address, w->only))\n    return 0;\n",
    replace: "",
  },
  {
    name: "nobody pings all of another subnet",
    file: many,
    find: "  return !w->directed || w->packet.protocol != IPPROTO_ICMP;\n",
    replace: "  return 1;\n",
  },
  {
    name: "what goes to all of a subnet is let out by a rule about it",
    file: many,
    find: "  w->only = w->directed ? found->subnet : 0;\n",
    replace: "",
  },
  {
    name: "what is copied is one packet",
    file: many,
    find: "  return p->fragment == WHOLE && !p->error &&\n         (",
    replace: "  return (",
  },
  {
    name: "a group of a subnet is of that one",
    file: many,
    find: "    if (!is_of_subnet(destination))\n",
    replace: "",
  },
  {
    name: "who answers what was sent to many could have had it",
    file: admit,
    find: "    rule = evaluate_opening(c, &key, 1);\n",
    replace: "    rule = 0;\n",
  },
  {
    name: "a router speaks for its networks alone",
    file: router,
    find: "  if (!bpf_map_lookup_elem(trie, &key))\n    return 0;\n",
    replace: "",
  },
  {
    name: "a router speaks for nobody of the installation",
    file: router,
    find: "  if (kind_of(outside) != ELSEWHERE || bpf_map_lookup_elem(&endpoints, &outside) ||\n      bpf_map_lookup_elem(&locations, &outside))\n    return 0;\n",
    replace: "",
  },
  {
    name: "a router speaks to the machines that it routes for",
    file: router,
    find: " && way.address == self->address",
    replace: "",
  },
  {
    name: "what a router sends comes from the machine where it is",
    file: router,
    find: " && mac_number(location->mac) == c->wire",
    replace: "",
  },
  {
    name: "what comes to a router comes from where its sender is",
    file: main,
    find: "  if (!same_mac(location->mac, eth->h_source))\n    return drop(self, WRONG_HOST);\n",
    replace: "",
  },
  {
    name: "a router's error is about what came by it",
    file: main,
    find: "    if (!routes_between(self, p.destination, p.about_destination))\n      return drop(self, NO_RULE);\n",
    replace: "",
  },
  {
    name: "a frame comes from the machine where its source is",
    file: admit,
    find: "  } else if (mac_number(mac) != c->wire)\n    return other_host(c, mac_number(mac));\n",
    replace: "  }\n",
  },
  {
    name: "a frame of a known flow comes from the machine where its source is",
    file: admit,
    find: "return host == c->wire ? PASS : other_host(c, host);",
    replace: "return PASS;",
  },
  {
    name: "answers go to the router in use",
    file: admit,
    find: "    if (!reason)\n      next = router_in_use();\n",
    replace: "",
  },
  {
    name: "a later fragment has a first one",
    file: admit,
    find: "  if (!first)\n    return FRAGMENT;\n",
    replace: "  if (!first)\n    return PASS;\n",
  },
  {
    name: "later fragments pass by the rules of now",
    file: admit,
    find: "    if (rule == NO_RULE_FOUND)\n      return FRAGMENT;\n",
    replace: "    if (rule == NO_RULE_FOUND)\n      return PASS;\n",
  },
  {
    name: "a server opens nothing from its service port",
    file: admit,
    find: "if (flow && !(opens && (flow->opened_out != c->out || flow->finished >= 3)))",
    replace: "if (flow)",
  },
  {
    name: "a flow of echoes is of echoes",
    file: admit,
    find: "  if (flow && p->protocol == IPPROTO_ICMP && !p->error && p->icmp_type != 0 && p->icmp_type != 8)\n    flow = NULL;\n",
    replace: "",
  },
  {
    name: "a rule that is gone ends its flows",
    file: admit,
    find: "    if (flow->generation != now_in_force) {\n      struct flow renewed",
    replace: "    if (!now_in_force) {\n      struct flow renewed",
  },
  {
    name: "errors belong to a flow or to nothing",
    file: admit,
    find: "  if (p->error || (is_reply && c->out) ||",
    replace: "  if ((is_reply && c->out) ||",
  },
  { name: "nobody sends redirects", file: admit, find: " || p->icmp_type == 5 ||", replace: " ||" },
  {
    name: "a VM sends from its own MAC",
    file: main,
    find: "if (!same_mac(eth.h_source, self->mac))\n    return drop(self, SPOOFED_MAC);\n  if (skb->vlan_present)\n    return drop(self, OTHER_ETHERTYPE);\n  if (eth.h_proto == bpf_htons(ETH_P_IP))\n    return ipv4_from_vm",
    replace: "if (eth.h_proto == bpf_htons(ETH_P_IP))\n    return ipv4_from_vm",
  },
  {
    name: "a VM sends from its own address",
    file: main,
    find: "  if (forwards && !routes_between(self, p.destination, p.source))\n    return drop(self, SPOOFED_ADDRESS);\n",
    replace: "",
  },
  {
    name: "a VM gives nobody an address",
    file: main,
    find: "  if (is_dhcp_answer(&p))\n    return drop(self, ROGUE_DHCP);\n  if (has_bad_size",
    replace: "  if (has_bad_size",
  },
  {
    name: "what is sent to a gateway goes nowhere",
    file: main,
    find: "  if (p.destination == self->gateway)\n",
    replace: "  if (p.destination == self->gateway && !p.id)\n",
  },
  {
    name: "an error quotes what its receiver sent to this VM",
    file: main,
    find: "  if (p.error && p.about_source != p.destination)\n    return drop(self, NO_RULE);\n",
    replace: "",
  },
  {
    name: "a VM of the same host has its own check",
    file: main,
    find: "    reason = admit(&check);\n    if (reason)\n      return drop(receiver, reason);\n",
    replace: "    admit(&check);\n",
  },
  {
    name: "what goes outside has an external address",
    file: leave,
    find: "kind_of(from) != EXTERNAL || ",
    replace: "",
  },
  {
    name: "what goes outside is for somebody outside",
    file: leave,
    find: " || kind_of(to) != ELSEWHERE",
    replace: "",
  },
  {
    name: "nobody gives a VM an address over the wire",
    file: main,
    find: "  if (is_dhcp_answer(p))\n    return drop(self, ROGUE_DHCP);\n",
    replace: "",
  },
  {
    name: "an error from the wire quotes what its receiver sent",
    file: main,
    find: "  if (p->error && p->about_source != p->destination)\n    return drop(self, NO_RULE);\n",
    replace: "",
  },
  {
    name: "an error from somebody on the way comes from outside",
    file: main,
    find: "    if (believe_outside(&check) && !believe_own_router(&check, p->about_destination))\n      return drop(self, NO_RULE);\n",
    replace: "",
  },
  {
    name: "a frame from the wire is for this host",
    file: main,
    find: "if (!self || !same_mac(eth.h_dest, own))",
    replace: "if (!self)",
  },
  {
    name: "a frame from the wire is of a machine",
    file: main,
    find: "  if (!mac_number(eth.h_source) || (eth.h_source[0] & 1))\n    return drop(self, SPOOFED_MAC);\n",
    replace: "",
  },
  {
    name: "what came by the way out is told from the underlay",
    file: main,
    find: ".device = out->device, .from = OUTSIDE}",
    replace: ".device = out->device}",
  },
  {
    name: "a VM speaks for itself in ARP",
    file: arp,
    find: "  if (!same_mac(arp.sender_mac, self->mac) || (sender != self->address && sender != 0))\n    return drop(self, ROGUE_ARP);\n  /* Nobody",
    replace: "  /* Nobody",
  },
  {
    name: "a VM's own address is answered by nobody",
    file: arp,
    find: " || target == self->address)\n    return TC_ACT_SHOT;\n",
    replace: ")\n    return TC_ACT_SHOT;\n",
  },
  {
    name: "a VM asks for its subnet alone",
    file: arp,
    find: "  if (target != self->gateway && ((target ^ self->address) & self->mask))\n    return TC_ACT_SHOT;\n",
    replace: "",
  },
  {
    name: "a VM is told of on the underlay to its controller alone",
    file: arp,
    find: "|| controller->address != address_of(arp.sender) || !same_mac(controller->mac, arp.sender_mac))",
    replace: ")",
  },
  {
    name: "a host answers outside for external addresses alone",
    file: arp,
    find: " || kind_of(address_of(arp->target)) != EXTERNAL)",
    replace: ")",
  },
  {
    name: "a VM asks for its own address alone",
    file: dhcp,
    find: " || !same_mac(message.mac, self->mac))",
    replace: ")",
  },
];

const program = join(import.meta.dirname, "../program");
/** The source of the program without a check. Throws when it is not as the list knows it. */
export function sourceWithout({ name, file, find, replace }: Mutation): string {
  const text = readFileSync(join(program, file), "utf8");
  const found = text.split(find).length - 1;
  if (found !== 1) throw new Error(`"${name}": ${file} has ${found} places like that, and should have one`);
  return text.replace(find, () => replace);
}

/** The program without a check, compiled into a directory of its own. What only that check used may stay, unused. */
export function compileWithout(mutation: Mutation, directory: string): string {
  mkdirSync(directory, { recursive: true });
  cpSync(join(program, "diverter.c"), join(directory, "diverter.c"));
  cpSync(join(program, "parts"), join(directory, "parts"), { recursive: true });
  writeFileSync(join(directory, mutation.file), sourceWithout(mutation));
  const object = join(directory, "diverter.o");
  compile(object, directory, ["-Wno-unused"]);
  return object;
}
