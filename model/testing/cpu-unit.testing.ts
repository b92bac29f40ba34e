/**
 * How fast this machine is at this moment: the CPU time, in milliseconds, of a fixed piece of work such as reading a text
 * is made of. What a test measures beside it is told as so many of these: whatever slows the one slows the other.
 */
export function cpuUnitMs(): number {
  const measured = Array.from({ length: 5 }, () => {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  });
  return measured.sort((a, b) => a - b)[2] ?? 0;
}

/** Words of a text, objects of them, a look-up of each, and all of it written out and read again. */
function work(): void {
  const text = Array.from({ length: 10_000 }, (_, index) => `name${(index * 7919) % 10_007} ${index};`).join("\n");
  const found = new Map<string, { readonly name: string; readonly at: number }>();
  for (const match of text.matchAll(/([a-z0-9]+) ([0-9]+);/g)) {
    const [, name = "", at = ""] = match;
    found.set(name, { name, at: Number(at) });
  }
  const sorted = [...found.values()].sort((a, b) => a.at - b.at || (a.name < b.name ? -1 : 1));
  const again = JSON.parse(JSON.stringify(sorted)) as typeof sorted;
  if (again.some(({ name }) => !found.has(name))) throw new Error("the unit of work is wrong");
}

/** What a text may cost: a second of CPU on a machine on which a unit takes 10 ms. */
export const unitsOfASecond = 100;
