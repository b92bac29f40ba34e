/** Of grants: their part of the one table (`schema.ts`). */
export const grantAttributes = {
  "x.volume": {
    kind: { kind: "link", to: ["Volume", "VolumeCopy"], foreign: false },
    required: true,
    effect: "change",
    docs: "The volume that is opened to others.",
  },
  "x.vm": { kind: { kind: "link", to: ["VM"], foreign: true }, effect: "change", docs: "The VM that may use it." },
  "x.cell": { kind: { kind: "domain" }, effect: "change", docs: "The cell that may use it, as `<ref://domain/>`." },
  "x.account": { kind: { kind: "text" }, effect: "change", docs: 'The account whose cells may: "ROOT/acme/dev".' },
  "x.domain": { kind: { kind: "text" }, effect: "change", docs: 'The domain whose cells may: "ROOT/acme", "ROOT".' },
  "x.grant": {
    kind: { kind: "choice", values: ["copy", "connect"] },
    required: true,
    effect: "change",
    docs: 'What is permitted: to make copies of the volume ("copy"), or to connect it as a disk ("connect").',
  },
  "x.hold": {
    kind: { kind: "path" },
    effect: "change",
    docs: "The path of a copy in the cell that `x.cell` names, such as `primary/volumes/a1`. Until that copy has been made the volume is shown to other cells and not destroyed: it may leave the model, or its cell be deleted, and its bytes stay. Taken back by removing the grant or this attribute, and the volume not with it.",
  },
  "x.holder": {
    kind: { kind: "text" },
    effect: "change",
    docs: "The UID of the account or the domain that `x.account` or `x.domain` names, as `cells account list` and `cells domain list` show it; beside `x.cell`, of the account that has the cell. One that is made later by the same name is another, and may not use the volume. Without it whoever has the name may.",
  },
} as const;
