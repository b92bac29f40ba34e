// SPDX-License-Identifier: Apache-2.0
/*
 * Which groups a guest has joined, as its own reports say (IGMPv1 to v3: RFC 1112, 2236, 3376). They go nowhere: they are noted
 * here, for the driver to read. Sources are not looked at; who may send is what rules say.
 */
#pragma once

#define MOST_RECORDS 16
#define ALL_SYSTEMS bpf_htonl(0xe0000001)

/* Global, for the verifier: it goes on with any number, and not with each of those that there are one by one. */
__noinline int choose(int known, int other, int takes)
{
  return takes ? other : known;
}

/* Global for the same reason. */
__noinline int note_membership(__u32 ifindex, __be32 group, int joins)
{
  if (!is_group(group) || group == ALL_SYSTEMS)
    return 0;
  struct joined *known = bpf_map_lookup_elem(&memberships, &ifindex);
  if (!known && joins) {
    struct joined none = {};
    bpf_map_update_elem(&memberships, &ifindex, &none, BPF_NOEXIST);
    known = bpf_map_lookup_elem(&memberships, &ifindex);
  }
  if (!known)
    return 0;
  int at = -1;
  /* One that is there counts before a place that is free. */
  for (int i = 0; i < MOST_GROUPS; i++)
    at = choose(at, i, joins && !known->groups[i]);
  for (int i = 0; i < MOST_GROUPS; i++)
    at = choose(at, i, known->groups[i] == group);
  if (at < 0 || at >= MOST_GROUPS)
    return 0;
  known->heard[at & (MOST_GROUPS - 1)] = bpf_ktime_get_ns();
  known->groups[at & (MOST_GROUPS - 1)] = joins ? group : 0;
  return 0;
}

/* Does a record of version 3 make a member? 1: it does, 0: it ends that, -1: it says nothing of it. */
static __always_inline int record_joins(__u8 type, __u16 sources)
{
  if (type == 2 || type == 4 || type == 5)
    return 1;
  return type == 1 || type == 3 ? sources > 0 : -1;
}

/* Global, so that the verifier walks its loop once. */
__noinline int hear_igmp(struct __sk_buff *skb, __u32 ifindex, __u32 at)
{
  __u8 head[8];
  if (at > 80 || bpf_skb_load_bytes(skb, at, head, sizeof(head)))
    return 0;
  __be32 group;
  __builtin_memcpy(&group, head + 4, 4);
  if (head[0] == 0x12 || head[0] == 0x16)
    return note_membership(ifindex, group, 1);
  if (head[0] == 0x17)
    return note_membership(ifindex, group, 0);
  if (head[0] != 0x22)
    return 0;
  __u32 records = head[6] << 8 | head[7];
  at += 8;
  for (int i = 0; i < MOST_RECORDS && i < records; i++) {
    __u8 record[8];
    if (bpf_skb_load_bytes(skb, at, record, sizeof(record)))
      return 0;
    __u32 sources = record[2] << 8 | record[3];
    __builtin_memcpy(&group, record + 4, 4);
    int joins = record_joins(record[0], sources);
    if (joins >= 0)
      note_membership(ifindex, group, joins);
    at += 8 + 4 * (sources + record[1]);
  }
  return 0;
}
