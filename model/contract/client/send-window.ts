/**
 * A client's input on its way to a VM (`inputWindowBytes`): only so much is under way, and the rest waits here for as long as there is room.
 */
export class SendWindow {
  readonly #most: number;
  readonly #mostWaiting: number;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #untaken = 0;

  /** @param most bytes that are not acknowledged */
  constructor(most: number, mostWaiting = 1024 * 1024) {
    this.#most = most;
    this.#mostWaiting = mostWaiting;
  }

  /** Null: there is no room, and none of it is sent. Else what may be sent now. */
  add(bytes: Uint8Array): readonly Uint8Array[] | null {
    if (this.#waitingBytes + bytes.length > this.#mostWaiting) return null;
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    return this.#ready();
  }
  /** Nothing waits here. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }
  /** So many have arrived. */
  taken(bytes: number): readonly Uint8Array[] {
    this.#untaken = Math.max(0, this.#untaken - bytes);
    return this.#ready();
  }

  #ready(): readonly Uint8Array[] {
    const ready: Uint8Array[] = [];
    for (;;) {
      const [first] = this.#waiting;
      const room = Math.min(this.#most - this.#untaken, longestPiece);
      if (first === undefined || room <= 0) return ready;
      const piece = first.subarray(0, room);
      if (piece.length === first.length) this.#waiting.shift();
      else this.#waiting[0] = first.subarray(piece.length);
      this.#waitingBytes -= piece.length;
      this.#untaken += piece.length;
      ready.push(piece);
    }
  }
}
/** Of one message, in bytes. */
const longestPiece = 16 * 1024;
