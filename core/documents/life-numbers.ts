/**
 * How far the numbers of lives reach, in one place. A generation (a life of a host) and an incarnation (within it) stand in
 * datagrams with six and four bytes, a boot is milliseconds since 1970 or a little more. Whoever has one of these from
 * outside asks here before it goes on with it: a host that once took the highest number has no next one, durably.
 */
export const greatestGeneration = 2 ** 48 - 1;
export const greatestIncarnation = 2 ** 32 - 1;
/** A year of many thousands; what is above is no time of any clock. */
export const greatestBoot = 2 ** 48 - 1;

const isUpTo = (value: unknown, most: number): value is number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= most;
/** One that has a next one. */
export const isGeneration = (value: unknown): value is number => isUpTo(value, greatestGeneration - 1);
export const isIncarnation = (value: unknown): value is number => isUpTo(value, greatestIncarnation);
export const isBoot = (value: unknown): value is number => isUpTo(value, greatestBoot - 1);
/** What a datagram carries. */
export const isEncodable = (generation: number, incarnation: number): boolean =>
  isGeneration(generation) && isIncarnation(incarnation);

/**
 * Lives by which somebody may be behind the others: who was away, or whose store was lost. What is said beyond that of a host
 * by another one is no word of a life that there was. So a forged number moves a host by a thousand at most, of 2^48.
 */
export const mostAhead = 1024;
/** Whether others may be believed that a host is in that life, by whoever knows it in this one. */
export const isPlausible = (generation: number, known: number): boolean =>
  isGeneration(generation) && generation <= known + mostAhead;
