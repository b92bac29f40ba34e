import type { SignedIn } from "../../model/contract/tenancy/sign-in.ts";

/** What each page is given. */
export interface PageProps {
  /** Of the address. */
  readonly cell: string | null;
  readonly who: SignedIn;
  /** Cells that the stream has no room for. */
  readonly left: readonly string[];
}
/** Whose texts are kept in this tab. */
export const nameOf = ({ name, kind }: SignedIn): string => name ?? kind;
