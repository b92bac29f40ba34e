import { policyState, word } from "../../host/drivers/network/diverter/program/layout.ts";
import { BpfMap, openPinned } from "../../host/drivers/network/diverter/program/libbpf.ts";

/**
 * Runs on a host and tells when its rules change: reads the map that the packets' programs read. Arguments: the pinned map,
 * the cell's number. Writes "VERSION NANOSECONDS" for every version that it sees, by the machine's monotonic clock. Ends
 * with its standard input.
 */
const [path = "", cell = "1"] = process.argv.slice(2);
const fd = openPinned(path);
if (fd === null) throw new Error(`${path} is not there`);
const map = new BpfMap(fd, word.size, policyState.size);
const key = word.encode({ value: Number(cell) });
let last = -1;
setInterval(() => {
  const value = map.get(key);
  const version = value === null ? 0 : policyState.decode(value).version;
  if (version === last) return;
  last = version;
  process.stdout.write(`${version} ${process.hrtime.bigint()}\n`);
}, 1);
process.stdin.on("end", () => process.exit(0)).resume();
