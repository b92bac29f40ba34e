import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Bundle } from "../cell/cell.ts";
import { broken, shrunk, Texts } from "../specification/fuzz.testing.ts";
import { readSpecification } from "../specification/specification.ts";

/**
 * Tries texts for some seconds. Every text is named on the standard output before it is read, so that whoever watches
 * knows the one that never ended. Arguments: seed, seconds, number of texts to pass over first (to come back to one).
 */
const [seed, seconds, pass] = process.argv.slice(2).map(Number);
if (seed === undefined || seconds === undefined) throw new Error("the arguments are a seed and a number of seconds");

/** Every type of element, and what the cases have not. */
const everything = `params extends { memory 64; size (2 * memory); list [1, "a", [true]]; }
Base extends VM { x.memory ATTRIB memory; memory 32; x.data extends { role "web"; at LAZY memory; list ROOT:params:list; } }
shop extends Cell {
  x.policy.subnetConnectivity true;
  origin extends Volume { x.size ROOT:params:size; x.access "ro"; }
  disk extends VolumeCopy { x.image "<ref:../origin>"; }
  web extends Base { memory (ROOT:params:memory + 1); x.liveness.protocol "udp"; x.liveness.port 7; x.placement.host "h1"; }
  data extends Base, { x.cpus 2; }, { x.data "<ref:/params>"; x.desiredState IF (1 < 2) THEN "off" ELSE "on" FI; }
  net extends Subnet { x.cidr "10.64.1.0/24"; }
  c1 extends VolumeConnection { x.vm "<ref:../web>"; x.volume "<ref:../disk>"; x.bootOrder 0; }
  i1 extends VirtualInterface { x.vm "<ref:/shop/web>"; x.subnet "<ref:../net>"; x.address "10.64.1.9"; x.vifName "Web"; }
  i2 extends VirtualInterface { x.vm data; x.subnet net; x.mac "02:00:00:00:00:01"; }
  r1 extends NetworkRule { x.address1 "<ref:../web>"; x.address2 "internet"; x.protocol "tcp"; x.port2 "80-90"; }
  r2 extends NetworkRule { x.address1 net; x.address2 "<ref://other.cells.example.com/a/b>"; x.direction "1to2"; }
  g1 extends VolumeGrant { x.volume origin; x.grant "copy"; x.cell "<ref://other.cells.example.com/>"; }
  child extends CellController { x.name "child"; x.cell extends { a 1; } }
  group extends { inner extends VM { x.memory 16; x.movedFrom "shop/old"; x.public true; } } group:inner:x.cpus 3;
}`;

const folders = ["../../examples/", "../../examples/shop/", "../cases/", "../../../shared/cases/smartfrog/"];

/** The examples and cases, each with its folder around it, and the examples that are cells also as JSON. */
function corpus(): readonly Bundle[] {
  const found: Bundle[] = [];
  const add = (bundle: Bundle): void => {
    found.push(bundle);
    const read = readSpecification(bundle);
    if (!read.ok) return;
    const json = { main: "a.json", files: { "a.json": JSON.stringify(read.value.document, null, 1) } };
    // Few of the cases are cells: what is checked about cells is to be tried as often as the language.
    for (let weight = 0; weight < 20; weight++) found.push(bundle, json);
  };
  for (const folder of folders.map((each) => fileURLToPath(new URL(each, import.meta.url)))) {
    if (!existsSync(folder)) continue;
    const names = readdirSync(folder).filter((name) => name.endsWith(".sf"));
    const files = Object.fromEntries(names.sort().map((name) => [name, readFileSync(join(folder, name), "utf8")]));
    for (const [main, text] of Object.entries(files))
      add({ main, files: text.includes("#include") ? files : { [main]: text } });
  }
  const own = { main: "everything.sf", files: { "everything.sf": everything } };
  const read = readSpecification(own);
  if (!read.ok) throw new Error(`the fuzzer's own text is refused: ${JSON.stringify(read.error, null, 1)}`);
  add(own);
  return found;
}

const texts = new Texts(seed, corpus());
for (let skipped = 0; skipped < (pass ?? 0); skipped++) texts.next();
const end = performance.now() + seconds * 1000;
let [count, accepted] = [0, 0];
for (; performance.now() < end; count++) {
  const bundle = texts.next();
  const number = (pass ?? 0) + count;
  if (count % 100 === 0) process.stdout.write(`at ${number}\n`);
  const why = broken(bundle);
  if (readSpecification(bundle).ok) accepted++;
  if (why === null) continue;
  const kind = why.slice(0, 25);
  const smallest = shrunk(bundle, (smaller) => broken(smaller)?.startsWith(kind) ?? false);
  process.stdout.write(`broken ${number}: ${broken(smallest)}\n${JSON.stringify(smallest, null, 1)}\n`);
  process.exit(1);
}
process.stdout.write(`done ${JSON.stringify({ count, accepted })}\n`);
