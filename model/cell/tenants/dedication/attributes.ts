/** Attributes of elements that say where hosts stand and whose they are: a part of the one table (`model/cell/schema.ts`). */
export const hostPlaceAttributes = {
  "x.cluster": {
    kind: { kind: "text" },
    effect: "change",
    docs: 'Where the machine stands: the names of zone, pod and cluster, "z1/p1/c1". Absent: in no place that has a name.',
  },
  "x.properties": {
    kind: { kind: "data" },
    effect: "change",
    docs: 'What the machine has, by names: texts and whole numbers, `{ gpu: "a100", sriov: 8 }`. A VM asks for the same text, or for at least that number, by `x.placement.properties`.',
  },
} as const;

export const dedicationAttributes = {
  "x.of": {
    kind: { kind: "text" },
    required: true,
    effect: "change",
    docs: 'The zone, pod, cluster or host that is somebody\'s: "z1", "z1/p1", "z1/p1/c1", or the name of a host.',
  },
  "x.to": {
    kind: { kind: "text" },
    required: true,
    effect: "change",
    docs: 'The domain whose it is, by its path: "ROOT/acme".',
  },
  "x.account": {
    kind: { kind: "label", mixedCase: false },
    effect: "change",
    docs: "Name of the account in that domain whose it is alone; absent: all accounts of the domain and below may use it.",
  },
} as const;
