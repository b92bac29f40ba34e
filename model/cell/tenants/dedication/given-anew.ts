import type { Cell } from "../../cell.ts";
import type { ElementPath } from "../../identifiers.ts";
import { alwaysThere, isSameOwner, type Owner, ownerIn } from "./dedication.ts";

/** What a text of the root cell gives to whom. */
export interface GivenAnew {
  readonly path: ElementPath;
  /** Name of the place or host. */
  readonly of: string;
  readonly to: Owner;
}
/**
 * What a model gives anew to whom it does not declare itself: who has to be looked up before it is taken. What is so already is let be, and who is always there.
 *
 * @param declared paths of the domains and accounts that the model has in `tenants`, as `kind path`
 */
export function givenAnew(before: Cell | null, after: Cell, declared: ReadonlySet<string>): readonly GivenAnew[] {
  const owners = new Map(dedicationsIn(before).map(({ of, to }) => [of, to]));
  return dedicationsIn(after).filter(({ of, to }) => {
    const had = owners.get(of);
    if (had !== undefined && isSameOwner(had, to)) return false;
    return !declared.has(`${to.kind} ${to.path}`) && !alwaysThere.some((each) => isSameOwner(each, to));
  });
}
const dedicationsIn = (cell: Cell | null): readonly GivenAnew[] =>
  [...(cell?.elements.values() ?? [])].flatMap((element) =>
    element.type === "Dedication"
      ? [{ path: element.path, of: element.of, to: ownerIn(element.to, element.account) }]
      : [],
  );
