import type { Role } from "./members.ts";

/** What `up` tells the supervisor, in a file: nothing secret. */
export interface Instructions {
  readonly directory: string;
  readonly cacheDirectory: string;
  /** Images that storage servers offer. */
  readonly imagesDirectory: string;
  /** Control groups that may be filled, see `cgroupRoots`. */
  readonly cgroupRoots: readonly string[];
  /**
   * Tests of the testbed itself put another command in the place of a role's process; the configuration's path is
   * appended to it. Empty otherwise.
   */
  readonly commands: Readonly<Partial<Record<Role, readonly string[]>>>;
}
