/** How long an upgrade of a VM is on trial (`upgrade/upgrade.ts`): where it does not answer by then, the VM starts from its old disk. */
export const trialTimeoutMs = 240_000;
