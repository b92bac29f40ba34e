import koffi from "koffi";

/**
 * One run of a loaded program on one frame, without a device (`BPF_PROG_TEST_RUN`). The buffers are made once: a run costs
 * some microseconds, and a fuzz makes twenty million of them.
 */
const bpf = koffi.load("libbpf.so.1");
const testRun = bpf.func("int bpf_prog_test_run_opts(int program, void *options)");

/** Of `struct bpf_test_run_opts`. */
const options = {
  size: 80,
  data: 8,
  dataOut: 16,
  length: 24,
  lengthOut: 28,
  context: 32,
  contextLength: 48,
  verdict: 56,
};
/** Of `struct __sk_buff`. */
const context = { size: 192, device: 40, pieces: 176 };
/** The kernel gives the frame one page, with room before and behind it. */
const longestFrame = 3500;

export interface Ran {
  /** `TC_ACT_…`. */
  readonly verdict: number;
  /** As the program left it; overwritten by the next run. */
  readonly frame: Buffer;
}

/** The kernel tries no frame that says it is IP and has no header of it; a real device takes one. */
export function canBeTried(frame: Buffer): boolean {
  const type = frame.length < 14 ? 0 : frame.readUInt16BE(12);
  return frame.length >= 14 + (type === 0x0800 ? 20 : type === 0x86dd ? 40 : 0) && frame.length <= longestFrame;
}

export class ProgramRun {
  readonly #in = Buffer.alloc(longestFrame);
  readonly #out = Buffer.alloc(longestFrame);
  readonly #context = Buffer.alloc(context.size);
  readonly #options = Buffer.alloc(options.size);

  constructor() {
    const at = (buffer: Buffer): bigint => BigInt(koffi.address(buffer));
    this.#options.writeBigUInt64LE(BigInt(options.size), 0);
    this.#options.writeBigUInt64LE(at(this.#in), options.data);
    this.#options.writeBigUInt64LE(at(this.#out), options.dataOut);
    this.#options.writeBigUInt64LE(at(this.#context), options.context);
    this.#options.writeUInt32LE(context.size, options.contextLength);
  }
  /** @param pieces bytes of each piece that the kernel is to cut the frame into; 0: it is not */
  run(program: number, frame: Buffer, device: number, pieces = 0): Ran {
    frame.copy(this.#in);
    this.#options.writeUInt32LE(frame.length, options.length);
    this.#options.writeUInt32LE(longestFrame, options.lengthOut);
    this.#context.writeUInt32LE(device, context.device);
    this.#context.writeUInt32LE(pieces, context.pieces);
    const outcome: number = testRun(program, this.#options);
    if (outcome !== 0) throw new Error(`running the program on a frame of ${frame.length} bytes: error ${-outcome}`);
    const length = this.#options.readUInt32LE(options.lengthOut);
    return { verdict: this.#options.readUInt32LE(options.verdict), frame: this.#out.subarray(0, length) };
  }
}
