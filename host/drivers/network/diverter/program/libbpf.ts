import { constants } from "node:os";
import koffi from "koffi";

/**
 * The few functions of libbpf 1 and libc that the driver needs, called without a process in between (0.7 million map
 * updates a second, against 0.1 million through `bpftool batch`). Buffers are passed as they are; descriptors are numbers.
 */
const bpf = koffi.load("libbpf.so.1");
const libc = koffi.load("libc.so.6");

const setPrint = bpf.func("void *libbpf_set_print(void *print)");
const objectOpen = bpf.func("void *bpf_object__open_file(const char *path, void *options)");
const objectLoad = bpf.func("int bpf_object__load(void *object)");
const objectClose = bpf.func("void bpf_object__close(void *object)");
const findMap = bpf.func("void *bpf_object__find_map_by_name(void *object, const char *name)");
const setPinPath = bpf.func("int bpf_map__set_pin_path(void *map, const char *path)");
const findProgram = bpf.func("void *bpf_object__find_program_by_name(void *object, const char *name)");
const programPin = bpf.func("int bpf_program__pin(void *program, const char *path)");
const objGet = bpf.func("int bpf_obj_get(const char *path)");
const objInfo = bpf.func("int bpf_obj_get_info_by_fd(int fd, void *info, void *length)");
const mapCreate = bpf.func(
  "int bpf_map_create(int type, const char *name, uint32_t keySize, uint32_t valueSize, uint32_t entries, void *options)",
);
const mapFdById = bpf.func("int bpf_map_get_fd_by_id(uint32_t id)");
const mapUpdate = bpf.func("int bpf_map_update_elem(int fd, void *key, void *value, uint64_t flags)");
const mapUpdateBatch = bpf.func(
  "int bpf_map_update_batch(int fd, void *keys, void *values, void *count, void *options)",
);
const mapDeleteBatch = bpf.func("int bpf_map_delete_batch(int fd, void *keys, void *count, void *options)");
const mapLookupBatch = bpf.func(
  "int bpf_map_lookup_batch(int fd, void *from, void *next, void *keys, void *values, void *count, void *options)",
);
const mapLookup = bpf.func("int bpf_map_lookup_elem(int fd, void *key, void *value)");
const mapDelete = bpf.func("int bpf_map_delete_elem(int fd, void *key)");
const mapNextKey = bpf.func("int bpf_map_get_next_key(int fd, void *key, void *next)");
const possibleCpus = bpf.func("int libbpf_num_possible_cpus()");
const tcHookCreate = bpf.func("int bpf_tc_hook_create(void *hook)");
const tcHookDestroy = bpf.func("int bpf_tc_hook_destroy(void *hook)");
const tcAttach = bpf.func("int bpf_tc_attach(void *hook, void *options)");
const tcQuery = bpf.func("int bpf_tc_query(void *hook, void *options)");
const programById = bpf.func("int bpf_prog_get_fd_by_id(uint32_t id)");
const programAttach = bpf.func("int bpf_prog_attach(int program, int target, int type, unsigned int flags)");
const programDetach = bpf.func("int bpf_prog_detach2(int program, int target, int type)");
const programQuery = bpf.func(
  "int bpf_prog_query(int target, int type, uint32_t flags, void *attachFlags, void *ids, void *count)",
);
const nameToIndex = libc.func("unsigned int if_nametoindex(const char *name)");
const ioctlBuffer = libc.func("ioctl", "int", ["int", "unsigned long", "void *"]);
const ioctlNumber = libc.func("ioctl", "int", ["int", "unsigned long", "long"]);
const closeFd = libc.func("int close(int fd)");
const socket = libc.func("int socket(int domain, int type, int protocol)");
const sendTo = libc.func(
  "long sendto(int fd, void *bytes, size_t length, int flags, void *address, uint32_t addressLength)",
);

/** libbpf explains itself on the standard error otherwise; what is expected (an existing clsact) would look like trouble. */
setPrint(null);

const errorName = (code: number): string =>
  Object.entries(constants.errno).find(([, value]) => value === Math.abs(code))?.[0] ?? `error ${code}`;
/** The kernel writes entries of this kind of map one by one alone: EOPNOTSUPP, or ENOTSUPP, which is none of libc's. */
const isUnsupported = (code: number): boolean => code === -constants.errno.EOPNOTSUPP || code === -524;
function check(code: number, what: string): number {
  if (code < 0) throw new Error(`${what}: ${errorName(code)}`);
  return code;
}

/** A kernel map with fixed sizes of keys and values. `valueSize` is the size of one CPU's value where values are per CPU. */
export class BpfMap {
  readonly fd: number;
  readonly keySize: number;
  readonly valueSize: number;
  readonly #cpus: number;

  constructor(fd: number, keySize: number, valueSize: number, perCpu = false) {
    this.fd = fd;
    this.keySize = keySize;
    this.valueSize = valueSize;
    this.#cpus = perCpu ? possibleCpus() : 1;
  }
  get(key: Buffer): Buffer | null {
    const value = Buffer.alloc(this.valueSize * this.#cpus);
    return mapLookup(this.fd, key, value) === 0 ? value : null;
  }
  /** Values of all CPUs. */
  getPerCpu(key: Buffer): readonly Buffer[] {
    const all = this.get(key);
    if (all === null) return [];
    return Array.from({ length: this.#cpus }, (_, cpu) =>
      all.subarray(cpu * this.valueSize, (cpu + 1) * this.valueSize),
    );
  }
  set(key: Buffer, value: Buffer): void {
    check(mapUpdate(this.fd, key, value, 0), "writing a map of the Diverter");
  }
  /** Puts a value of zeros, for every CPU. */
  clear(key: Buffer): void {
    this.set(key, Buffer.alloc(this.valueSize * this.#cpus));
  }
  setAll(entries: readonly { readonly key: Buffer; readonly value: Buffer }[]): void {
    this.setMany(Buffer.concat(entries.map(({ key }) => key)), Buffer.concat(entries.map(({ value }) => value)));
  }
  /** Keys one behind the other, and their values. */
  setMany(keys: Buffer, values: Buffer): void {
    const number = keys.length / this.keySize;
    if (number === 0) return;
    const count = Buffer.alloc(4);
    count.writeUInt32LE(number);
    const outcome: number = mapUpdateBatch(this.fd, keys, values, count, null);
    if (!isUnsupported(outcome)) {
      check(outcome, `writing ${number} entries of a map of the Diverter`);
      return;
    }
    for (let at = 0; at < number; at += 1) {
      const value = values.subarray(at * this.valueSize, (at + 1) * this.valueSize);
      this.set(keys.subarray(at * this.keySize, (at + 1) * this.keySize), value);
    }
  }
  delete(key: Buffer): boolean {
    return mapDelete(this.fd, key) === 0;
  }
  /** Those of them that are there. */
  deleteAll(keys: readonly Buffer[]): void {
    if (keys.length === 0) return;
    const count = Buffer.alloc(4);
    count.writeUInt32LE(keys.length);
    const outcome: number = mapDeleteBatch(this.fd, Buffer.concat(keys), count, null);
    if (outcome < 0) for (const key of keys) this.delete(key);
  }
  keys(): readonly Buffer[] {
    const keys: Buffer[] = [];
    let key: Buffer | null = null;
    for (;;) {
      const next: Buffer = Buffer.alloc(this.keySize);
      if (mapNextKey(this.fd, key, next) !== 0) return keys;
      keys.push(next);
      key = next;
    }
  }
  /** All entries, many at a time; not of maps with a value per CPU. */
  entries(): readonly { readonly key: Buffer; readonly value: Buffer }[] {
    const entries: { key: Buffer; value: Buffer }[] = [];
    const atOnce = 1024;
    const keys = Buffer.alloc(atOnce * this.keySize);
    const values = Buffer.alloc(atOnce * this.valueSize);
    const count = Buffer.alloc(4);
    /* A hash goes on from a bucket's number, a trie from its last key. */
    const tokens = [Buffer.alloc(Math.max(4, this.keySize)), Buffer.alloc(Math.max(4, this.keySize))] as const;
    for (let round = 0; ; round++) {
      count.writeUInt32LE(atOnce);
      const from = round === 0 ? null : tokens[round % 2 === 0 ? 0 : 1];
      const next = tokens[round % 2 === 0 ? 1 : 0];
      const outcome: number = mapLookupBatch(this.fd, from, next, keys, values, count, null);
      if (outcome !== 0 && outcome !== -constants.errno.ENOENT) return this.#entriesOneByOne();
      const got = count.readUInt32LE();
      const [theseKeys, theseValues] = [
        Buffer.from(keys.subarray(0, got * this.keySize)),
        Buffer.from(values.subarray(0, got * this.valueSize)),
      ];
      for (let at = 0; at < got; at++)
        entries.push({
          key: theseKeys.subarray(at * this.keySize, (at + 1) * this.keySize),
          value: theseValues.subarray(at * this.valueSize, (at + 1) * this.valueSize),
        });
      if (outcome !== 0) return entries;
    }
  }
  #entriesOneByOne(): readonly { readonly key: Buffer; readonly value: Buffer }[] {
    return this.keys().flatMap((key) => {
      const value = this.get(key);
      return value === null ? [] : [{ key, value }];
    });
  }
  /** How many entries it was made for. */
  mostEntries(): number {
    return infoOf(this.fd, "a map's size").readUInt32LE(16);
  }
  close(): void {
    closeFd(this.fd);
  }
}

export const mapTypes = { array: 2, lruHash: 9, lpmTrie: 11 } as const;
/** `BPF_F_NO_PREALLOC`, which a trie demands. */
export const noPreallocation = 1;
export function createMap(
  type: number,
  name: string,
  keySize: number,
  valueSize: number,
  entries: number,
  flags: number,
): BpfMap {
  const options = Buffer.alloc(48);
  options.writeBigUInt64LE(48n, 0);
  options.writeUInt32LE(flags, 28);
  const fd = check(mapCreate(type, name, keySize, valueSize, entries, options), `creating map ${name}`);
  return new BpfMap(fd, keySize, valueSize);
}
/** `BPF_F_INNER_MAP`: arrays of different lengths may be in one outer map. */
const ofAnyLength = 0x1000;
/** An array with these values, one behind the other. */
export function createArray(name: string, valueSize: number, values: Buffer): BpfMap {
  const length = values.length / valueSize;
  const made = createMap(mapTypes.array, name, 4, valueSize, length, ofAnyLength);
  const indices = Uint32Array.from({ length }, (_, at) => at);
  try {
    made.setMany(Buffer.from(indices.buffer), values);
    return made;
  } catch (problem) {
    made.close();
    throw problem;
  }
}
/** A map inside another one, from the id that the outer map shows. Null if it is gone. */
export function openInner(id: number, keySize: number, valueSize: number): BpfMap | null {
  const fd: number = mapFdById(id);
  return fd < 0 ? null : new BpfMap(fd, keySize, valueSize);
}
/** Descriptor of a pinned map or program, or null where nothing is pinned. */
export function openPinned(path: string): number | null {
  const fd: number = objGet(path);
  return fd < 0 ? null : fd;
}
export const close = (fd: number): void => {
  closeFd(fd);
};
/** The kernel's id of a program. */
export const programId = (fd: number): number => infoOf(fd, "a program's id").readUInt32LE(4);
/** `struct bpf_map_info` or `struct bpf_prog_info`. */
function infoOf(fd: number, what: string): Buffer {
  const info = Buffer.alloc(256);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(256);
  check(objInfo(fd, info, length), `asking for ${what}`);
  return info;
}

/**
 * Loads a compiled object. Maps that are pinned under `mapDirectory` are taken over with their content if their layout is
 * the same, others are created and pinned there; programs are pinned under `programDirectory`, which must be empty.
 */
export function loadObject(
  path: string,
  maps: readonly string[],
  mapDirectory: string,
  programs: readonly string[],
  programDirectory: string,
): void {
  const object: unknown = objectOpen(path, null);
  if (object === null) throw new Error(`${path} is no eBPF object that libbpf can open`);
  try {
    for (const name of maps) {
      const map: unknown = findMap(object, name);
      if (map === null) throw new Error(`${path} declares no map "${name}"`);
      check(setPinPath(map, `${mapDirectory}/${name}`), `pinning map ${name}`);
    }
    check(objectLoad(object), `loading ${path} into the kernel`);
    for (const name of programs) {
      const program: unknown = findProgram(object, name);
      if (program === null) throw new Error(`${path} has no program "${name}"`);
      check(programPin(program, `${programDirectory}/${name}`), `pinning program ${name}`);
    }
  } finally {
    objectClose(object);
  }
}

const ingress = 1;
function hookOf(ifindex: number, attachPoint: number): Buffer {
  const hook = Buffer.alloc(24);
  hook.writeBigUInt64LE(24n, 0);
  hook.writeInt32LE(ifindex, 8);
  hook.writeInt32LE(attachPoint, 12);
  return hook;
}
/** Program of the one filter that the Diverter uses (handle 1, priority 1) at a device's ingress; null: none. */
export function attachedProgram(ifindex: number): number | null {
  const options = Buffer.alloc(32);
  options.writeBigUInt64LE(32n, 0);
  options.writeUInt32LE(1, 20);
  options.writeUInt32LE(1, 24);
  return tcQuery(hookOf(ifindex, ingress), options) < 0 ? null : options.readUInt32LE(16);
}
/** Attaches a program at a device's ingress, in the place of the one that is there, without a moment of none. */
export function attach(ifindex: number, programFd: number): void {
  const created: number = tcHookCreate(hookOf(ifindex, ingress));
  if (created !== -constants.errno.EEXIST) check(created, `adding clsact to interface ${ifindex}`);
  const options = Buffer.alloc(32);
  options.writeBigUInt64LE(32n, 0);
  options.writeInt32LE(programFd, 8);
  options.writeUInt32LE(1, 12);
  options.writeUInt32LE(1, 20);
  options.writeUInt32LE(1, 24);
  check(tcAttach(hookOf(ifindex, ingress), options), `attaching a program to interface ${ifindex}`);
}
export function ensureAttached(ifindex: number, programFd: number): void {
  if (attachedProgram(ifindex) !== programId(programFd)) attach(ifindex, programFd);
}
/** Takes clsact with all its filters away from a device. */
export const detachAll = (ifindex: number): void => {
  tcHookDestroy(hookOf(ifindex, 3));
};

/**
 * Where the kernel asks programs before clsact, one after the other (`tcx`, from Linux 6.6 on): they go on working when this process ends, until
 * the device goes.
 */
export const beforeClsact = { ingress: 46, egress: 47 } as const;
type Side = keyof typeof beforeClsact;
const mostAtOneDevice = 64;
/** Programs at that side of a device, with their names. */
function programsAt(ifindex: number, side: Side): readonly { readonly id: number; readonly name: string }[] {
  const [ids, count, flags] = [Buffer.alloc(4 * mostAtOneDevice), Buffer.alloc(4), Buffer.alloc(4)];
  count.writeUInt32LE(mostAtOneDevice);
  if (programQuery(ifindex, beforeClsact[side], 0, flags, ids, count) < 0) return [];
  return Array.from({ length: count.readUInt32LE() }, (_, at) => ids.readUInt32LE(at * 4)).flatMap((id) => {
    const fd: number = programById(id);
    if (fd < 0) return [];
    const name = infoOf(fd, "a program's name").subarray(64, 80).toString().replace(/\0.*$/s, "");
    closeFd(fd);
    return [{ id, name }];
  });
}
/** Is this program the only one of its name there? */
export function isBeforeClsact(ifindex: number, side: Side, name: string, programFd: number): boolean {
  const ids = programsAt(ifindex, side).filter((each) => each.name === name);
  return ids.length === 1 && ids[0]?.id === programId(programFd);
}
/** @param programFd the program that is to be there, in the place of others of its name; null: none of that name */
export function attachBeforeClsact(ifindex: number, side: Side, name: string, programFd: number | null): void {
  const wanted = programFd === null ? null : programId(programFd);
  const found = programsAt(ifindex, side).filter((each) => each.name === name);
  if (programFd !== null && !found.some(({ id }) => id === wanted))
    check(programAttach(programFd, ifindex, beforeClsact[side], 0), `attaching ${name} to interface ${ifindex}`);
  for (const { id } of found) {
    const fd: number = id === wanted ? -1 : programById(id);
    if (fd < 0) continue;
    programDetach(fd, ifindex, beforeClsact[side]);
    closeFd(fd);
  }
}

/** Index of a network device of this process's namespace; 0: there is none. */
export const indexOf = (device: string): number => nameToIndex(device);
export function ioctl(fd: number, request: number, argument: Buffer | number, what: string): void {
  const outcome: number =
    typeof argument === "number" ? ioctlNumber(fd, request, argument) : ioctlBuffer(fd, request, argument);
  if (outcome < 0) throw new Error(`${what}: ${errorName(koffi.errno())}`);
}

const packetFamily = 17;
/** A packet socket for whole frames that is bound to no protocol, so that it never receives anything. */
export function openPacketSocket(): { readonly fd: number; close(): void } {
  const rawCloseOnExec = 3 | 0o2000000;
  const fd: number = socket(packetFamily, rawCloseOnExec, 0);
  if (fd < 0) throw new Error(`opening a packet socket: ${errorName(koffi.errno())}`);
  return { fd, close: () => void closeFd(fd) };
}
/** Sends a frame out of a device, or drops it when the device cannot take it now. */
export function sendFrame({ fd }: { readonly fd: number }, ifindex: number, frame: Buffer): boolean {
  const address = Buffer.alloc(20);
  address.writeUInt16LE(packetFamily, 0);
  address.writeInt32LE(ifindex, 4);
  address[11] = 6;
  const dontWait = 0x40;
  return sendTo(fd, frame, frame.length, dontWait, address, address.length) === frame.length;
}
