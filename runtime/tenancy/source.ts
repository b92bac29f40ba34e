/** `POST` by the gateway: what somebody has signed, for a session. */
export const signaturesPath = "/signatures";
/** Header of a request by the gateway: which tunnel to the outside is this request's (`tunnels.ts`). */
export const tunnelHeader = "cells-tunnel";
const tunnel = /^\/tunnels\/([0-9a-f]{32})$/;
export const tunnelPath = (id: string): string => `/tunnels/${id}`;
export const tunnelAt = (url: string): string | null => tunnel.exec(url)?.[1] ?? null;
