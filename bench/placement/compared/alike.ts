/** The VMs that others and our Placer are asked for alike. */
export const alike = { memoryMiB: 8192, cpus: 2 } as const;
