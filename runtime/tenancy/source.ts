/** Header of a request by the gateway to `tenancy`: address of the client, as the gateway saw it. */
export const sourceHeader = "cells-client-address";
