import type { HostName, PeerName } from "../../model/cell/identifiers.ts";
import type { HostView } from "./candidate.ts";

/** Hosts, and of which of them something else is known since it was last looked at. */
export class HostTable extends Map<PeerName, HostView> {
  readonly changed = new Set<HostName>();
  /** The same, since the root controller was told what stands there. */
  readonly unsaid = new Set<HostName>();
  /** The same, since those that wait were looked through. */
  readonly untried = new Set<HostName>();
  /** The same, since a copy of all was begun; null: none is being made. */
  since: Set<HostName> | null = null;
  override set(peer: PeerName, view: HostView): this {
    // A map that is made of entries sets them before it has its own fields.
    this.changed?.add(view.host);
    this.unsaid?.add(view.host);
    this.untried?.add(view.host);
    this.since?.add(view.host);
    return super.set(peer, view);
  }
}
