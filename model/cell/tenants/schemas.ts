/** Of domains, accounts and roles: their part of the one table (`../schema.ts`). */
const choice = <const V extends readonly string[]>(...values: V) => ({ kind: "choice", values }) as const;

const state = (whose: string) =>
  ({
    ...({ kind: choice("enabled", "locked", "disabled"), default: "enabled", effect: "change" } as const),
    docs: `Whether ${whose} is used: "locked" lets nothing new be made, "disabled" lets nobody in, and its machines are off.`,
  }) as const;
/** Of all cells together. */
const limits = (whose: string) => {
  const most = (what: string) =>
    ({
      ...({ kind: { kind: "integer", minimum: 0, maximum: 2 ** 40 }, effect: "change" } as const),
      docs: `Most ${what} of ${whose} together. Absent: not limited.`,
    }) as const;
  return {
    "x.limits.vms": most("VMs"),
    "x.limits.memory": { ...most("memory of all VMs"), unit: "MiB" },
    "x.limits.cpus": most("processors of all VMs"),
    "x.limits.volumes": most("volumes and volume copies"),
    "x.limits.storage": { ...most("storage of all volumes"), unit: "MiB" },
    "x.limits.subnets": most("subnets"),
    "x.limits.addresses": most("addresses of all subnets"),
    "x.limits.publicAddresses": most('addresses of subnets with `x.addressRange "external"`'),
    "x.limits.cells": most("cells"),
    "x.limits.units": most("units of whole hosts in pools"),
  };
};

export const tenantSchemas = {
  Domain: {
    "x.state": state("the domain, with all that is in it,"),
    ...limits("all accounts in the domain and below"),
  },
  Account: { "x.state": state("the account"), ...limits("all cells of the account") },
  Role: {
    "x.reach": {
      kind: choice("account", "domain", "installation"),
      default: "account",
      effect: "change",
      docs: "On what it counts: the account of the user who has it, the domain of that account and all below, or everything.",
    },
    "x.rules": {
      kind: { kind: "rules" },
      required: true,
      effect: "change",
      docs: "What it allows: the first rule that has a verb decides, and what none has is denied.",
    },
    "x.secondFactor": {
      kind: { kind: "boolean" },
      default: false,
      effect: "change",
      docs: "Whether who has it may nothing before he has a second factor.",
    },
  },
} as const;

export const tenantDocs = {
  Domain:
    "A domain of tenants, in the root cell alone: `root/tenants/acme` is `ROOT/acme`. What is declared there changes only there; what leaves the text goes on as it is, and is changed by commands again.",
  Account:
    "An account of tenants, in the root cell alone: `root/tenants/acme/dev` is `ROOT/acme/dev`. As of a domain, what leaves the text goes on as it is, with its users and cells.",
  Role: "A role of tenants, in the root cell alone: `root/tenants/acme/operators` is the role `operators` of `ROOT/acme`. What leaves the text stays a role, and is changed by commands again.",
} as const;
