/**
 * The time to power off of a guest that never answered and never wrote to a disk: the power button is pressed all the same, but
 * most such machines have no operating system, and what has one and only reads loses nothing.
 */
const noGuestMs = 1000;

/** How long a machine has to power off by itself, of the time that it was given. `hasGuest`: something in it was heard or wrote. */
export const timeToPowerOff = (graceMs: number, hasGuest: boolean): number =>
  hasGuest ? graceMs : Math.min(graceMs, noGuestMs);
