// SPDX-License-Identifier: Apache-2.0
/* Which rule of a cell lets a flow be opened. */
#pragma once

struct question {
  __u32 cell;
  __be32 from;
  __be32 to;
  __u16 source_port;
  __u16 destination_port;
  __u8 protocol;
  __u32 only; /* identity that the rule has to name as its end; 0: any that `to` has */
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
  if (q->only) {
    to[0] = q->only;
    to[1] = to[2] = 0;
  } else
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
