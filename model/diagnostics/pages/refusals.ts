import { type DiagnosticPage, requestPage } from "../diagnostic-page.ts";

/** What a request is refused with that is sound in itself: by the gateway, and by the controller of a cell behind it. */
export const refusalPages: Readonly<Record<string, DiagnosticPage>> = {
  unauthorized: requestPage(
    "no valid credential",
    "Every request names a credential: the operator's, one of a cell, or a user's session. This one has none, or one that was never given out, was revoked or has ended. `cells credential add CELL` gives a new one, `cells login USER` a new session.",
    "GET /cells",
    "GET /cells   Authorization: Bearer <credential>",
  ),
  "signed-out": requestPage(
    "a sign-in that is over",
    "A browser's sign-in ends when it is ended, after an hour in which nothing was asked with it, after twelve hours at the latest, with the session behind it, and when the gateway begins anew. Whoever is still somebody signs in again.",
    "GET /status   Cookie: __Host-cells=…   (of yesterday)",
    'POST /login   {"user": "ann", "domain": "ROOT/acme", "password": "…"}',
  ),
  "no-cookie": requestPage(
    "there is no sign-in to end",
    "`DELETE /login` ends the sign-in of a browser, which is its cookie. Whoever shows a credential is not signed in: a user's session ends by `DELETE /logins/current`, and a cell's credential when it is revoked.",
    "DELETE /login   Authorization: Bearer <credential>",
    "DELETE /login   Cookie: __Host-cells=…",
  ),
  "page-foreign": requestPage(
    "a request with the sign-in's cookie that is none of the gateway's own page",
    "A browser sends a cookie along with whatever any page has it ask, so with one the gateway takes only what its own page asks: `Sec-Fetch-Site` is `same-origin`, and what changes something has the gateway's own `Origin` and the header `Cells-Page`. A program shows a credential instead (`Authorization: Bearer …`), of which none of this is asked. A proxy in front passes `Host` and `Origin` on as they are.",
    "POST /domains   Cookie: __Host-cells=…   Origin: https://elsewhere.example",
    "POST /domains   Cookie: __Host-cells=…   Origin: https://cloud.example   Cells-Page: 1   (under Host: cloud.example)",
  ),
  "page-host": requestPage(
    "the page under a name that is not the gateway's",
    "The page is there under the gateway's address, and under the names in its certificate: any other name may have been made to lead here by somebody who would like to be taken for the gateway.",
    "GET /status   Cookie: __Host-cells=…   Host: elsewhere.example",
    "GET /status   Cookie: __Host-cells=…   Host: cloud.example",
  ),
  forbidden: requestPage(
    "a credential that does not open this",
    "A cell's credential opens what is below `/cells/<cell>`, and no other cell; a user's session what the rules of his role allow, and the message names the rule that decides (`cells whoami`, `cells can`). What concerns the installation is the operator's.",
    "GET /cells/bank/model   (with a credential of the cell shop)",
    "GET /cells/shop/model   (with a credential of the cell shop)",
  ),
  capability: requestPage(
    "a capability that opens nothing",
    "A session (console, exec, cp) is opened once, by a capability that was asked for with a credential. It was used before, has expired, or was given to a credential that is revoked since: ask for another one.",
    "GET /cells/shop/sessions   (a second time with one capability)",
    "POST /cells/shop/sessions   (gives a capability, for one GET of the same path)",
  ),
  "idempotency/not-taken": requestPage(
    "a request that is not made once",
    "This request takes no `Idempotency-Key`: asked for again it is done again, or its answer is a secret that is not kept. Leave the header out; `docs/rest.md` says which requests take it.",
    "POST /cells/shop/exec   Idempotency-Key: 7f1c",
    "POST /cells/shop/exec",
  ),
  busy: requestPage(
    "too much is under way",
    "Requests, uploads and sessions are bounded, in all and for each cell, so that no cell is in another one's way. Nothing was changed: try again in a moment, and ask less at once.",
    "PUT /cells/shop/model   (while too many requests of the cell are under way)",
    "PUT /cells/shop/model   (a moment later)",
  ),
  "registration-closed": requestPage(
    "a domain in which nobody registers with such an address",
    "Who registers names a domain and an address of e-mail, and the domain is open to that part of it behind the `@`: its administrator says so with `cells registration open`. A domain that nobody has, and one that is closed, are answered alike. An administrator can also invite you (`cells invitation add`).",
    "POST /applications   (ann@example.com, in a domain that is open to example.org)",
    "POST /applications   (ann@example.org)",
  ),
  login: requestPage(
    "a login that fails",
    "There is no such user in that domain, or the password is not right: which of the two is not said. After three failures the next one waits a second, then two, four and up to a minute, for this user from this address.",
    'POST /logins   {"user": "ann", "domain": "ROOT/acme", "password": "…"}   (another one\'s)',
    'POST /logins   {"user": "ann", "domain": "ROOT/acme", "password": "…"}   (hers)',
  ),
  oidc: requestPage(
    "a logout of a provider that does not count",
    "A provider of OpenID Connect says who has logged out there by a signed token, which counts once, for a few minutes, and only with the issuer and the client of a provider that is declared here (OpenID Connect Back-Channel Logout 1.0, section 2.6). The message says which of it is not so; the operator compares the provider's settings with `cells provider list`.",
    "POST /logins/oidc/logout   logout_token=…   (for another client)",
    "POST /logins/oidc/logout   logout_token=…   (for the client that `cells provider list` has)",
  ),
  "oidc-unmapped": requestPage(
    "a login by a provider who says nothing that makes it a user's",
    "The provider of OpenID Connect knows this person, and by the claims that the operator has mapped nobody is a user here: no mapping fits, what one maps to is gone, or the claim for the name holds none that a user may have. The operator changes the mappings of the provider, or the provider its claims.",
    'POST /logins/oidc   {"session": "…"}   (the claim "groups" has no group that is mapped)',
    'POST /logins/oidc   {"session": "…"}   (the claim "groups" has one)',
  ),
  "second-factor": requestPage(
    "a login without its second code",
    "The password is right, and this user also has a second factor: the code that his app shows now, or one of his recovery codes. A code opens once, for some 30 s before and after its time. After three wrong ones the next waits a second, then two and up to a minute. Who has lost the telephone and the recovery codes asks an administrator (`cells user totp-off`).",
    'POST /logins   {"user": "ann", "domain": "ROOT/acme", "password": "…"}',
    'POST /logins   {"user": "ann", "domain": "ROOT/acme", "password": "…", "code": "123456"}',
  ),
  signature: requestPage(
    "a signature that opens nothing",
    "There is no such access key, the signature is not that of this request, or the request does not say what was signed as the standard has it: the message says which of the last it is, and of the first two not which. Whatever lies between (a proxy that changes the path, the query or a signed header) makes it another request.",
    "POST /logins/signed   Authorization: AWS4-HMAC-SHA256 Credential=CELL…, SignedHeaders=x-amz-date, Signature=…",
    "POST /logins/signed   Authorization: AWS4-HMAC-SHA256 Credential=CELL…, SignedHeaders=host;x-amz-date, Signature=…",
  ),
  "signature-late": requestPage(
    "a signature whose time is over",
    "A request that is signed counts for five minutes before and after, so that what somebody overheard is worth nothing later; one of CloudStack until its `expires`, which is at most 15 minutes ahead. The clock of whoever signs may be wrong.",
    "POST /logins/signed   X-Amz-Date: 20260102T030405Z   (an hour later)",
    "POST /logins/signed   X-Amz-Date: 20260102T040405Z   (signed anew)",
  ),
  disabled: requestPage(
    "a user or a key that is disabled",
    "The user, its account, a domain that this is in, or the access key is disabled: nobody gets in until somebody enables it again (`cells user enable`, `cells key enable`).",
    "POST /logins   (of a user whose account is disabled)",
    "POST /logins   (after `cells account enable`)",
  ),
  held: requestPage(
    "the service that knows users has an older store",
    "Whose rights were taken back since that store was written would have them again. So root administrators alone get in, and the operator's credential works, until an operator has looked and lets the store count: `cells orphans release tenancy`.",
    "POST /logins   (of any other user)",
    "POST /logins   (after `cells orphans release tenancy`)",
  ),
  "tenancy-unreachable": requestPage(
    "the service that knows users does not answer",
    "Who is in goes on for five minutes; new logins, and changes of accounts, users and roles, wait until the service is there again. The operator's credential and those of cells do not need it.",
    "POST /logins   (while the service tenancy is being started again)",
    "POST /logins   (once it answers; `cells status` shows it)",
  ),
  "no-volumes": requestPage(
    "no persistent volumes beside this gateway",
    "Persistent volumes are kept by CaaS, a door of its own beside the gateway. This installation has none: the operator takes `personality.caas extends { }` into the gateway's roles (docs/operator.md), and applies the primary cell.",
    "GET /volumes   (the gateway's VM has no CaaS)",
    "GET /volumes   (once the primary cell has `personality.caas`)",
  ),
  "controller-unreachable": requestPage(
    "the cell's controller does not answer",
    "The gateway passes on to the cell's controller, which is starting, is away with its host, or is overloaded. Whether a change arrived is then not known: read the model before you repeat it. `cells status` shows the controller.",
    "PUT /cells/shop/model   (the controller of shop is being started again)",
    "GET /cells/shop/model   (once it answers)",
  ),
  unreachable: requestPage(
    "somebody whose answer is needed does not give it",
    "The message names the host, storage server or service. `cells status` shows what is known of it.",
    "POST /cells/shop/sessions   (the host of the VM is away)",
    "POST /cells/shop/sessions   (once the host is there again)",
  ),
  supervisor: requestPage(
    "the testbed's supervisor refuses, or does not answer",
    "On one machine with `--profile processes` the supervisor makes and ends the controllers' processes. Its message says what is wrong; its log is `logs/supervisor.log` in the testbed's directory.",
    "PUT /cells/shop/model   (a new cell, while the supervisor is ending)",
    "PUT /cells/shop/model   (after `cells up`)",
  ),
  "too-large": requestPage(
    "a body above the bound",
    "What is sent is bounded before it is read; the message says by how much. A specification that is too large is rather several cells.",
    "PUT /cells/shop/model   (17 MiB of JSON)",
    "PUT /cells/shop/model   (1 MiB of JSON)",
  ),
};

/** Images from outside: `cells image add` and `delete`. */
export const imagePages: Readonly<Record<string, DiagnosticPage>> = {
  "image/format": requestPage(
    "an image whose format is not declared",
    "What is uploaded is never guessed at: a raw disk whose first bytes say that it is qcow2 would be read as one. `cells image add --format` says it, or `?format=` of the API.",
    "PUT /images/debian",
    "PUT /images/debian?format=qcow2",
  ),
  "image/bad-name": requestPage(
    "a name that no image can have",
    "A volume names its image in `x.import`, and storage servers keep it in a directory of that name. The message says what a name may consist of.",
    "PUT /images/Debian%2012?format=raw",
    "PUT /images/debian-12?format=raw",
  ),
  "image/length": requestPage(
    "an upload that does not say how long it is",
    "A server has to know before the first byte whether there is room: send `Content-Length`. What arrives is compared with it.",
    "PUT /images/debian?format=raw   Transfer-Encoding: chunked",
    "PUT /images/debian?format=raw   Content-Length: 67108864",
  ),
  "image/broken": requestPage(
    "an upload that ended before its bytes did",
    "The connection broke, or who sends it has stopped. Nothing of it is kept, and the same upload may be made again.",
    "PUT /images/debian?format=raw   Content-Length: 67108864, and 1048576 bytes",
    "PUT /images/debian?format=raw   Content-Length: 67108864, and as many bytes",
  ),
  "image/too-large": requestPage(
    "an image above what a server takes",
    "The bound is the installation's; the message says how much it is. Send it as qcow2, which leaves out what is empty, or make its disk smaller.",
    "PUT /images/debian?format=raw   Content-Length: 137438953472",
    "PUT /images/debian?format=qcow2   Content-Length: 536870912",
  ),
  "image/no-space": requestPage(
    "no room for the image",
    "A storage server keeps the upload and what it makes of it. Delete images that nobody needs (`cells image delete`), or add a storage server.",
    "PUT /images/debian?format=raw   (a server's disk is full)",
    "PUT /images/debian?format=raw   (after DELETE /images/old)",
  ),
  "image/exists": requestPage(
    "an image of this name is there already",
    "Volumes that were made from it stay as they are, but new ones would come from another image: that is said with `--replace` (`?replace=true`).",
    "PUT /images/debian?format=qcow2   (there is one)",
    "PUT /images/debian?format=qcow2&replace=true",
  ),
  "image/provided": requestPage(
    "an image that comes with the installation",
    "It is neither replaced nor deleted: the next start of a storage server would bring it back. Choose another name.",
    "PUT /images/tiny?format=raw",
    "PUT /images/my-tiny?format=raw",
  ),
  "image/unknown": requestPage(
    "no image of this name",
    "`cells image list` shows those that there are.",
    "DELETE /images/debain",
    "DELETE /images/debian",
  ),
  "image/refused": requestPage(
    "an image that is not taken as it is",
    "What comes from outside is looked at and converted in a sandbox. It refers to another file, is encrypted, or is not what its format says: the message tells. `qemu-img convert` makes a plain one.",
    "PUT /images/debian?format=qcow2   (it has a backing file)",
    "PUT /images/debian?format=qcow2   (after `qemu-img convert -O qcow2`)",
  ),
  "image/busy": requestPage(
    "a storage server adds as many images as it can at once",
    "Try again when one of them is done.",
    "PUT /images/debian?format=qcow2   (while others are being added)",
    "PUT /images/debian?format=qcow2   (after them)",
  ),
  "image/not-staged": requestPage(
    "an upload that a storage server has no more",
    "All servers take an image before it is visible at any. One started again in between, or the others took too long: upload it anew.",
    "PUT /images/debian?format=qcow2   (a server starts again meanwhile)",
    "PUT /images/debian?format=qcow2   (anew)",
  ),
  "image/unreachable": requestPage(
    "a storage server that is needed does not answer",
    "To add or delete an image, it is enough that one server answers: the answer names the others. To replace one, all must be there, or one that is away would go on giving out the old one.",
    "PUT /images/debian?format=qcow2&replace=true   (one server is away)",
    "PUT /images/debian?format=qcow2&replace=true   (all are there)",
  ),
  "image/failed": requestPage(
    "a storage server failed, and did not say why",
    "Its log says it. Nothing of the image is visible; upload it anew once the cause is mended.",
    "PUT /images/debian?format=qcow2   (the server's disk gives an error)",
    "PUT /images/debian?format=qcow2   (after that is mended)",
  ),
};
