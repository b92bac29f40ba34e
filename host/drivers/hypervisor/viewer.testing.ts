import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** A viewer of a screen, by RFB (RFC 6143). */
export class Viewer {
  readonly #socket: Socket;
  #held = Buffer.alloc(0);

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (bytes: Buffer) => {
      this.#held = Buffer.concat([this.#held, bytes]);
    });
  }
  async #take(length: number): Promise<Buffer> {
    while (this.#held.length < length) {
      assert.ok(!this.#socket.destroyed, "the server has ended it");
      await sleep(5);
    }
    const taken = this.#held.subarray(0, length);
    this.#held = this.#held.subarray(length);
    return taken;
  }
  /** Width, height and the name of the screen, and how many pixels of it came. */
  async shakeHands() {
    assert.equal(String(await this.#take(12)), "RFB 003.008\n");
    this.#socket.write("RFB 003.008\n");
    const types = await this.#take((await this.#take(1))[0] ?? 0);
    assert.deepEqual([...types], [1], "nobody asks for a password: who is here was let in by a capability");
    this.#socket.write(Buffer.of(1));
    assert.equal((await this.#take(4)).readUInt32BE(), 0);
    // ClientInit: it wants the screen for itself, and is not given it.
    this.#socket.write(Buffer.of(0));
    const start = await this.#take(24);
    const [width, height] = [start.readUInt16BE(0), start.readUInt16BE(2)];
    const name = String(await this.#take(start.readUInt32BE(20)));
    return { width, height, name };
  }
  /** One whole screen, as it is; resolves with its first rectangle's width and height. */
  async look(width: number, height: number): Promise<readonly number[]> {
    const ask = Buffer.alloc(10);
    ask[0] = 3;
    ask.writeUInt16BE(width, 6);
    ask.writeUInt16BE(height, 8);
    // SetEncodings: raw.
    this.#socket.write(Buffer.from([2, 0, 0, 1, 0, 0, 0, 0]));
    this.#socket.write(ask);
    const head = await this.#take(4);
    assert.equal(head[0], 0, "FramebufferUpdate");
    const rectangle = await this.#take(12);
    return [rectangle.readUInt16BE(4), rectangle.readUInt16BE(6)];
  }
  key(symbol: number): void {
    for (const isDown of [1, 0]) {
      const message = Buffer.from([4, isDown, 0, 0, 0, 0, 0, 0]);
      message.writeUInt32BE(symbol, 4);
      this.#socket.write(message);
    }
  }
  get isOpen(): boolean {
    return !this.#socket.destroyed;
  }
}
