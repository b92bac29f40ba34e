/** Header of a request by the gateway to `tenancy`: address of the client, as the gateway saw it. */
export const sourceHeader = "cells-client-address";
/** `POST` by the gateway: what somebody has signed, for a session. */
export const signaturesPath = "/signatures";
