import { serviceModules } from "./compile-cache.ts";

/**
 * Loads every module of the services, so that Node's compile cache (named by `NODE_COMPILE_CACHE`) holds them all, those too
 * that a process loads only for its role. Programs are left out: loading one runs it.
 */
for (const path of serviceModules()) if (!path.endsWith("/main.ts")) await import(path);
