/**
 * Options of Node for a process of services on a large machine. A service answers to news all day, and each piece leaves some
 * garbage that lives a little longer than most. How far the heap may grow before V8 looks for it follows from the machine's
 * memory: on one of 24 GiB to several times what is held, so that a controller of 10,000 elements, which holds 90 MiB, had 500
 * resident. With these it has 270; in its busiest seconds it costs a quarter more processor time.
 *
 * Not for a service VM: it has little memory, and V8 goes by that.
 *
 * Rejected: `v8.setFlagsFromString` in the process. What Node keeps compiled is bound to the flags that V8 had, and would be
 * compiled again at every start.
 */
export const heapOptions: readonly string[] = ["--max-semi-space-size=8", "--max-old-space-size=1024"];

/** A personality keeps nothing, so most of what it makes is over at once; room for more of that would be resident for good. */
export const heapOptionsOf = (role: string): readonly string[] =>
  role.startsWith("personality.") ? ["--max-semi-space-size=1", "--max-old-space-size=1024"] : heapOptions;
