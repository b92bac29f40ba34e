/**
 * The birth of a cloud that runs in itself, as its services recorded it: a row for each process, machine and wait, and the
 * critical path through them. What a row needs is written down (`needs`), not guessed from times: of what it needs, the one
 * that was there last is what it waited for, and from then on its own pieces are on the path. So the pieces of the path add
 * up to the whole, and a piece that is nobody's is shown as such. A guest takes the time of its host to the second, so when
 * a role began to listen is right to the second, too.
 */

/** One line of a log, whoever wrote it. */
export interface Happening {
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly service: string;
  readonly event: string;
  readonly path: string | null;
  readonly fields: { readonly [key: string]: unknown };
}
/** A machine or a process works, or it stands and something else has to come first. */
export type PieceKind = "works" | "starts" | "waits";
export interface Piece {
  readonly fromMs: number;
  readonly toMs: number;
  readonly kind: PieceKind;
  readonly text: string;
}
export interface Row {
  readonly name: string;
  /** In the order of time, without gaps. */
  readonly pieces: readonly Piece[];
  /** Moments, as when a role began to listen. */
  readonly ticks: readonly { readonly atMs: number; readonly text: string }[];
}
/** A piece of the path; `row` null: nobody did anything that was recorded. */
export interface Step extends Piece {
  readonly row: string | null;
}
export interface Birth {
  readonly startMs: number;
  readonly endMs: number;
  readonly rows: readonly Row[];
  readonly path: readonly Step[];
}
/** What the one knows who waits for it, milliseconds since 1970. */
export interface Moments {
  readonly startMs: number;
  readonly gatewayMs: number;
  readonly acceptedMs: number;
}

export const rowNames = {
  firstProcess: "first process",
  whole: "root cell accepted",
  gateway: "gateway answers",
  accepted: "tenant's cell accepted",
} as const;

interface Need {
  readonly row: RegExp;
  readonly needed: RegExp;
  /** It is enough that this service of the needed row listens; absent: the row has to be at its end. */
  readonly service?: RegExp;
}
/** What has to be there before a row can come to its end. */
const needs: readonly Need[] = [
  { row: /^first process$/, needed: /^host / },
  { row: /^root\/core1\/vm$/, needed: /^first process$/ },
  { row: /^root cell accepted$/, needed: /^root\/core1\/vm$/, service: /^controller\.root$/ },
  // Their volumes and hosts are asked for by what was accepted.
  { row: /^root\/(?!core1\/|controllers\/)/, needed: /^root cell accepted$/ },
  { row: /^root\/controllers\//, needed: /^root\//, service: /^cell-manager$/ },
  { row: /^root\/controllers\/primary\//, needed: /^root cell accepted$/ },
  { row: /^primary\/gateway\/vm$/, needed: /^root\/controllers\/primary\/vm$/, service: /^controller\.primary$/ },
  { row: /^gateway answers$/, needed: /^primary\/gateway\/vm$/, service: /^gateway$/ },
  { row: /^root\/controllers\/one\/vm$/, needed: /^gateway answers$/ },
  { row: /^tenant's cell accepted$/, needed: /^root\/controllers\/one\/vm$/, service: /^controller\.one$/ },
];

const endOf = ({ pieces }: Row): number => pieces.at(-1)?.toMs ?? Number.NaN;
const beginOf = ({ pieces }: Row): number => pieces[0]?.fromMs ?? Number.NaN;

const answersText = "it answers; its controller has yet to hear of it";
/** Of a service that has not told when it began to listen: when its machine answered, which it does when all of its services listen. */
const answersMs = ({ pieces }: Row): number => pieces.find(({ text }) => text === answersText)?.fromMs ?? Number.NaN;

/** When a row has what another one needs of it; NaN: never. */
function givenMs(row: Row, { service }: Need): number {
  if (service === undefined) return endOf(row);
  const listens = row.ticks.find(({ text }) => service.test(text))?.atMs ?? answersMs(row);
  // Its controller may hear that it is ready before its host says that it answers.
  return Number.isNaN(listens) ? endOf(row) : listens;
}

/** From the end back to the start. */
export function criticalPath(rows: readonly Row[], last: string, startMs: number): readonly Step[] {
  const steps: Step[] = [];
  const nobody = (fromMs: number, toMs: number): void => {
    if (toMs > fromMs) steps.push({ fromMs, toMs, kind: "waits", text: "nothing that was recorded", row: null });
  };
  const walked = new Set<string>();
  let row = rows.find(({ name }) => name === last);
  let untilMs = row === undefined ? startMs : endOf(row);
  while (row !== undefined) {
    const { name, pieces } = row;
    walked.add(name);
    const wanted = needs.filter((need) => need.row.test(name));
    const [needed] = rows
      .filter((other) => !walked.has(other.name))
      .flatMap((other) =>
        wanted
          .filter((need) => need.needed.test(other.name))
          .map((need) => ({ row: other, atMs: givenMs(other, need) })),
      )
      .filter(({ atMs }) => atMs <= untilMs)
      .toSorted((one, other) => other.atMs - one.atMs);
    const sinceMs = needed?.atMs ?? startMs;
    for (const piece of pieces.toReversed()) {
      const [fromMs, toMs] = [Math.max(piece.fromMs, sinceMs), Math.min(piece.toMs, untilMs)];
      if (fromMs >= toMs) continue;
      nobody(toMs, untilMs);
      steps.push({ ...piece, fromMs, toMs, row: name });
      untilMs = fromMs;
    }
    nobody(sinceMs, untilMs);
    untilMs = sinceMs;
    row = needed?.row;
  }
  return steps.toReversed();
}

const textOf = (value: unknown): string | null => (typeof value === "string" ? value : null);

/** A row of pieces from moments: each holds until the next one, the last one until `endMs`. */
interface Moment {
  readonly atMs: number;
  readonly kind: PieceKind;
  readonly text: string;
}
function piecesOf(moments: readonly Moment[], endMs: number): readonly Piece[] {
  return moments.flatMap(({ atMs, kind, text }, index) => {
    const toMs = Math.min(endMs, moments[index + 1]?.atMs ?? endMs);
    return toMs > atMs ? [{ fromMs: atMs, toMs, kind, text }] : [];
  });
}

function memberRows(happenings: readonly Happening[]): readonly Row[] {
  const started = new Map<string, number>();
  const rows: Row[] = [];
  for (const { atMs, event, fields } of happenings) {
    const peer = textOf(fields.peer) ?? textOf(fields.member);
    if (peer === null) continue;
    if (event === "service/started" && !started.has(peer)) started.set(peer, atMs);
    const fromMs = started.get(peer);
    if (event !== "service/answers" || fromMs === undefined || rows.some(({ name }) => name === nameOfMember(peer)))
      continue;
    const piece = { fromMs, toMs: atMs, kind: "starts" as const, text: "its process starts" };
    rows.push({ name: nameOfMember(peer), pieces: [piece], ticks: [] });
  }
  return rows;
}
const nameOfMember = (peer: string): string =>
  peer.replace(/^(host|agent)\./, (_all, kind) => (kind === "host" ? "host " : "server "));

/** Of what runs before there is a machine, by the steps that it says (host/bootstrap/bootstrap.ts). */
function firstProcessRow(happenings: readonly Happening[]): Row | null {
  const steps = happenings.filter(({ event }) => event === "bootstrap/step");
  const [first] = steps;
  const ends = steps.find(({ fields }) => /^the process has ended/.test(textOf(fields.text) ?? ""));
  const begins = happenings.find(({ event, service }) => event === "process/started" && service === first?.service);
  if (first === undefined || ends === undefined) return null;
  const moments = steps
    .filter(({ atMs }) => atMs <= ends.atMs)
    .map(({ atMs, fields }, index, all): Moment => {
      const fromMs = all[index - 1]?.atMs ?? begins?.atMs ?? atMs;
      return { atMs: fromMs, kind: "works", text: `until: ${textOf(fields.text) ?? ""}` };
    });
  return { name: rowNames.firstProcess, pieces: piecesOf(moments, ends.atMs), ticks: [] };
}

/** From when the root controller listens in its VM until it has the whole specification. */
function wholeRow(happenings: readonly Happening[], machines: readonly Row[]): Row | null {
  const accepted = happenings.find(
    ({ event, fields }) => event === "bootstrap/step" && /has accepted the whole/.test(textOf(fields.text) ?? ""),
  );
  const listens = machines.flatMap(({ ticks }) => ticks).find(({ text }) => text === "controller.root");
  if (accepted === undefined || listens === undefined || listens.atMs >= accepted.atMs) return null;
  const piece = {
    fromMs: listens.atMs,
    toMs: accepted.atMs,
    kind: "works" as const,
    text: "until the root controller has taken the whole specification",
  };
  return { name: rowNames.whole, pieces: [piece], ticks: [] };
}

/** What a VM's controller and its host say of it, one after the other. */
function momentOf({ event, fields }: Happening): Moment["kind"] | null {
  if (event === "element/state") return fields.phase === "working" ? "works" : "waits";
  if (event === "machine/stage") return "starts";
  return event === "machine/health" && fields.what === "answering" ? "waits" : null;
}
function wordsOf({ event, service, fields }: Happening): string {
  const at = service.replace(/^host\./, "");
  if (event === "machine/stage")
    return fields.stage === "starting" ? `${at} composes its disks and starts QEMU` : "its guest starts, and its roles";
  if (event === "machine/health") return answersText;
  const reason = textOf(fields.reason) ?? textOf(fields.because) ?? "";
  return reason === "" ? String(fields.phase) : reason;
}

/** Until it was ready for the first time. */
function machineRow(path: string, happenings: readonly Happening[], ticks: Row["ticks"]): Row | null {
  const own = happenings.filter((each) => each.path === path);
  const ready = own.find(({ event, fields }) => event === "element/state" && fields.phase === "ready");
  if (ready === undefined) return null;
  let stage = "";
  const moments: Moment[] = [];
  for (const each of own.filter(({ atMs }) => atMs < ready.atMs)) {
    const kind = momentOf(each);
    if (kind === null) continue;
    // From the order to start on, its host knows better than its controller.
    if (each.event === "element/state" && stage !== "") continue;
    if (each.event === "machine/stage") stage = String(each.fields.stage);
    moments.push({ atMs: each.atMs, kind, text: wordsOf(each) });
  }
  return { name: path, pieces: piecesOf(moments, ready.atMs), ticks };
}

/** What a role says when it begins to listen; the gateway listens to the outside later than its process starts. */
const listening = ["process/started", "gateway/listening"];
/** Which role began to listen when; `vmOf`: the VM that has it. */
const ticksOf = (
  path: string,
  happenings: readonly Happening[],
  vmOf: ReadonlyMap<string, string>,
  firstMs: number,
): Row["ticks"] =>
  happenings
    .filter(({ event, service, atMs }) => listening.includes(event) && vmOf.get(service) === path && atMs >= firstMs)
    .map(({ atMs, service }) => ({ atMs, text: service }));

/** @param vmOf which VM has which service, by peer name */
export function birthOf(
  all: readonly Happening[],
  moments: Moments,
  vmOf: ReadonlyMap<string, string> = new Map(),
): Birth {
  const { startMs, gatewayMs, acceptedMs } = moments;
  const happenings = all
    .filter(({ atMs }) => atMs >= startMs && atMs <= acceptedMs)
    .toSorted((one, other) => one.atMs - other.atMs);
  const isMachine = ({ path, event }: Happening): boolean => event === "machine/stage" && path !== null;
  const paths = [...new Set(happenings.filter(isMachine).map(({ path }) => path ?? ""))];
  const machines = paths.flatMap((path) => {
    const begun = happenings.find((each) => isMachine(each) && each.path === path)?.atMs ?? startMs;
    return machineRow(path, happenings, ticksOf(path, happenings, vmOf, begun)) ?? [];
  });
  const first = firstProcessRow(happenings);
  const whole = wholeRow(happenings, machines);
  const gateway = machines.find(({ name }) => name === "primary/gateway/vm");
  const answers = gateway === undefined ? Number.NaN : answersMs(gateway);
  const listens =
    gateway?.ticks.find(({ text }) => text === "gateway")?.atMs ?? (Number.isNaN(answers) ? gatewayMs : answers);
  const asked = (name: string, fromMs: number, toMs: number, text: string): Row => ({
    name,
    ticks: [],
    pieces: [{ fromMs, toMs, kind: "waits", text }],
  });
  const rows = [
    ...memberRows(happenings),
    ...(first === null ? [] : [first]),
    ...[...machines, ...(whole === null ? [] : [whole])].toSorted((one, other) => beginOf(one) - beginOf(other)),
    asked(rowNames.gateway, Math.min(gatewayMs, listens), gatewayMs, "`cells up` asks the gateway until it answers"),
    asked(rowNames.accepted, gatewayMs, acceptedMs, "`cells apply` until it is accepted"),
  ];
  return { startMs, endMs: acceptedMs, rows, path: criticalPath(rows, rowNames.accepted, startMs) };
}
