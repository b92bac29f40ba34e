// SPDX-License-Identifier: Apache-2.0
/* All maps. They are pinned, and what user space writes there is what packets meet. */
#pragma once

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
struct member_list {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(key_size, sizeof(__u32));
  __uint(value_size, sizeof(struct member));
  __uint(max_entries, 1);
  __uint(map_flags, BPF_F_INNER_MAP);
};
struct {
  __uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
  __type(key, struct fanout_key);
  __uint(max_entries, 65536);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __array(values, struct member_list);
} fanout SEC(".maps");
/* Of a cell's own subnets and of others that its rules name; with the cell 0 of those that have an interface here. */
HASH(broadcasts, struct identity_key, struct subnet_key, 65536);
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __type(key, __u32);
  __type(value, struct copies);
  __uint(max_entries, 4096);
} copies_left SEC(".maps");
/* By an interface's device. Read by the driver, which ends those of guests that do not answer it any more. */
HASH(memberships, __u32, struct joined, 4096);
/* Programs that others go on with: `fan_out` and `fan_in`. */
struct {
  __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
  __type(key, __u32);
  __type(value, __u32);
  __uint(max_entries, 2);
} parts SEC(".maps");
HASH(dhcp, __u32, struct dhcp_answer, 4096);
HASH(probes, struct probe_key, __u32, 16384);
/* Questions of this host to machines of others. */
HASH(asked, struct asked_key, __u32, 4096);
/* Questions of other hosts to machines here: of what is never answered the oldest goes. */
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __type(key, struct probe_key);
  __type(value, struct asker);
  __uint(max_entries, 1024);
} askers SEC(".maps");

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
