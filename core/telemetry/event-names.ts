/**
 * Every event that a process of Cells logs, as `<area>/<what-happened>`, and what it says. One line of log is one change of
 * state: nothing is logged per packet, per poll or per tick. A name that is not here does not compile; `event-names.test.ts`
 * reads the sources, and `testbed/hosts/observability.test.ts` what processes really wrote. Which of them the users of a cell see,
 * and by what name, is said in `runtime/controller/events.ts`.
 *
 * Fields that mean the same everywhere: `cell`, `path` (of an element), `uid`, `vm` and `volume` (UIDs), `peer`, `host`,
 * `incarnation`, `epoch`, `phase`, `reason` (a sentence; null when there is nothing to say). No field ever holds a secret.
 */
export const eventNames = {
  // Processes.
  "process/started": "a service listens: role, port, pid",
  "process/stopped": "a service ends in order",
  "process/failed": "a process could not start or ends because of an error: why",
  "process/held":
    "one step or commit of this service held up its process, and what else runs in it, for more than a second: by what, ms",
  "service/restored": "a service has read its store: how many of what it keeps it found",
  "store/restored": "a service's store was put back from a copy since its last start: what was noted with it",
  "store/waits":
    "a service without a store waits for the authority to say whether a restored backup has one, or to note that it was put in: why, attempts",
  "store/blank": "a service without a store begins with none, though a restored backup had one: why",
  "store/lost":
    "the authority's store was blank or older beside the key of one that has run, so it goes on with what lies beside the key: enrolments, and what to do",
  "service/started": "the supervisor started a member's process: pid",
  "service/answers": "a member's ports answer for the first time since its process was started",
  "service/ended": "a member's process ended: how, and when it is started again",
  "service/stopped": "a member's process ended on request",
  "supervisor/serving": "the supervisor listens",
  "supervisor/started": "every member was started",
  "supervisor/relay-failed": "the supervisor cannot pass connections on to the gateway's VM: why",
  "supervisor/stopping": "the supervisor ends every member",
  "host/router": "an upstream router answers, or does not answer any more: its address, its MAC and whether it answers",
  // State distribution.
  "peer/reachable": "a peer is in step: everything it says is known",
  "peer/unreachable": "the connection to a peer is gone; what it said last is old now",
  "transport/unreachable": "a connection could not be made: the 1st, 2nd, 4th, 8th, … attempt",
  "transport/refused":
    "a connection was not taken, or was ended: no certificate of this installation, no frames, too slow or too many; with how many by then, once a minute for a sender and a reason",
  "distribution/refused":
    "frames or documents of a peer were not taken; with how many by then, once a minute for a peer and a reason",
  "distribution/orphans":
    "a client did not repeat documents that it never took back: how many stay in force here, and the first keys",
  "distribution/forked":
    "a store does not contain what was seen of it, so it was lost or is older: whose (side), at which peer; what was there stays as it is until somebody releases it",
  "distribution/kept":
    "a peer keeps documents as they are, whatever this service says of them; with how many by then, once a minute for a peer",
  "distribution/released": "what a client that had forked desires here counts again: who said so",
  "distribution/reunited": "a client has its store again from which a later one had forked",
  "distribution/another":
    "another one has the name of a receiver: a machine that took another's place, or a cell made anew; how many documents it is asked for, and how often by then, once a minute for a peer",
  "distribution/ended": "an operator ended documents of a client: how many",
  "distribution/repaired":
    "what is here differed from what the peer had given, and is asked for once more: in how many of 64 parts",
  "distribution/reborn": "this host was declared dead and is not: what it says is said anew, under a new generation",
  "distribution/misuse": "a defect of this service: an effect that cannot be carried out",
  "document/too-long":
    "a document has more characters than can be sent, so its receiver goes on with what it had: to whom, key and how many",
  "document/refused":
    "documents of a peer are not acceptable for what is in them: key and why of this one; with how many by then, once a minute for a peer",
  "https/handler-failed": "a request over HTTPS failed by a defect of this service",
  "https/upgrade-failed": "a session could not be opened by a defect of this service",
  // The birth of an installation.
  "bootstrap/step": "the bootstrap host got one step further: text",
  "bootstrap/waits": "the bootstrap waits for something: why, once for each reason",
  "bootstrap/failed": "the bootstrap cannot go on: why",
  // The root controller's VM is started by another host.
  "succession/asked": "this host asks a storage agent for a lease of the root controller's VM: volume, epoch, why",
  "succession/taken": "this host has all leases of the root controller's VM and starts its next incarnation",
  "succession/lost": "another host holds what this one asked for, or ran: it withdraws",
  "succession/waits":
    "the root controller's VM cannot be taken over by this host now: why; null: nothing is in the way",
  "succession/adopted": "the root controller finds that another host has started its VM: where, which incarnation",
  // Backups of the management.
  "backup/made":
    "a backup by the schedule is on storage servers: its name, bytes, how many servers have it, how many parts are missing",
  "backup/failed":
    "a backup by the schedule could not be made, is not on a server, or lacks a part: why; tried again in 15 minutes where there is none",
  "backup/waits":
    "a backup by the schedule may be due and no storage server answers: how many there are, why and what to do; said once, until one answers",
  // Identity.
  "identity/enrolled": "a token was shown and certificates were issued: to which name and enrolment, again or not",
  "identity/renewed": "a certificate was issued over a key that is known: to which name",
  "identity/adopted":
    "the authority's store is older than a certificate that it had issued, so the name keeps the key of that: which name",
  "identity/ended": "a name is not renewed any more: its enrolment was taken back",
  "identity/refused": "enrolments and renewals that were refused: how many in all; once a minute for a reason",
  "gossip/waits":
    "the key of hosts' datagrams is being changed, and that waits for hosts which have not said that they have the next one: epoch, how many and which",
  "gossip/rotated": "hosts' datagrams are sealed and read under a new key alone: epoch",
  "gossip/changed":
    "this host has other keys for datagrams: the epochs that it reads, and the one under which it seals",
  "identity/changed": "this process has a new certificate, for new connections: until when",
  "identity/waiting": "this process asked for a new certificate in vain: why; the 1st, 2nd, 4th, … time",
  "identity/pinned": "a peer was let in by its pinned key, since its certificate's dates are not right: why",
  "identity/clock": "this machine's clock and the authority's differ by more than certificates bear: why",
  // Where everybody is.
  "peers/changed": "this process has another book of where everybody is: its version and how many are in it",
  "peers/waiting": "this process asked the authority in vain where everybody is: why; the 1st, 2nd, 4th, … time",
  // Cells, their models and elements.
  "cell/found": "a Cell Manager took over a child cell of which its store knew nothing, or something else",
  "cell/given": "an operator said that a child cell which its parent has forgotten is the one that it declares anew",
  "cell/bound": "a child cell got its Placer and its Storage Manager, for good",
  "cell/made": "a cell's controller was made, by the gateway or as a child's",
  "cell/ended": "nothing is left of a cell, and its controller was ended",
  "quota/granted": "a child cell may have more, or gave some back: how much of each",
  "children/end-first": "a cell is being deleted, its child cells first",
  "children/adopted":
    "an operator said that a child cell which is there is the one that its parent declares anew: its UID, and the one of the declaration",
  "children/refused": "a child cell's first model was not accepted: why",
  "model/accepted": "a cell's model was changed: version and how many elements each action concerns",
  "model/plan-refused": "a defect of this service: the plan of a change was not right, and was not executed",
  "element/state": "an element's phase or reason changed",
  "element/moved": "an element goes on under another path; `from` is the one before",
  "element/removed": "nothing is left of a deleted element",
  "reservation/complete": "an all-or-none deployment has everything it needs: how many elements",
  "reservation/given-back":
    "an all-or-none deployment could not have everything and gave back what it had: what was short, and when it asks again",
  "vm/forced":
    "the operator frees a VM of a host that cannot say whether it has ended, and nobody has looked: incarnation and host",
  "volume/hold-dropped":
    "somebody gave up what is held, of a volume that had left the model: its path and UID, and the copies that it stayed for",
  "volume/recreated":
    "a volume with `x.recreatable` is made anew for a machine whose host is lost, since nothing could end what may write there: `uid` is the one that is given up",
  "upgrade/image-changed":
    "a boot volume of this cell's services is made anew, since the other cell shows another image there: which",
  "upgrade/trying": "a service VM is about to start from another boot volume: which",
  "upgrade/proved": "a service VM has proved itself with its new boot volume; the old one goes",
  "upgrade/went-back":
    "a service VM did not come up with its new boot volume and starts from the old one: why; the upgrade has stopped",
  "upgrade/complete": "every service VM runs from the boot volume that the model says",
  "controller/forked":
    "the store of a cell's controller was lost or is older than what a receiver holds: it stands still until somebody looks",
  "controller/went-on":
    "a service has seen a later store of this cell's controller: numbers go on beyond what that may have given out",
  "controller/released": "the store of a cell's controller counts again",
  "vm/strays":
    "an operator let an older store of this controller count: these hosts may run an incarnation that it does not know, and end it first",
  "vm/adopted":
    "a controller with an older store finds that a host runs another incarnation than it knows of, and takes it for the present one",
  "vm/stage": "a VM's incarnation went on: placing, connecting, running, stopping, or none",
  "vm/rebooted": "a VM's guest reset itself: how often in this incarnation",
  "credential/added": "a credential of the cell was made: its id and for whom",
  "credential/revoked": "a credential of the cell opens nothing any more",
  "controller/overlooked":
    "a controller found work that it should have seen before: a mistake of the program, mended by this",
  "ticket/ended": "a ticket for this cell is worth nothing any more, or less than it was: what was opened with it ends",
  // Tenants.
  "tenancy/changed": "somebody changed domains, accounts, users, roles, or whose a cell is: verb, by whom, what",
  "tenancy/held":
    "the store of the service tenancy is older than it was, so root administrators alone get in until somebody lets it count: why",
  "tenancy/released": "the store of the service tenancy counts again",
  "login/accepted": "a user logged in: who, from which address",
  "login/refused": "a login failed: from which address",
  "policy/version": "a cell's compiled rules changed: version and number of rules",
  // Addresses and names.
  "subnet/allocated": "a subnet got its range",
  "pools/left-out":
    "external pools that are declared and not in force, since internal subnets have a part of them: pools",
  "subnet/freed": "a subnet's range is free again",
  "subnet/range-given-up": "another subnet has its range and no machine uses it here, so a subnet asks for another one",
  "subnet/state": "what a controller is told of a subnet changed",
  "subnet/removed": "a controller is told that a subnet is gone",
  "name/state": "what a controller is told of a name changed",
  "name/removed": "a controller is told that a name is gone",
  // Placement.
  "host/watchdog-counts":
    "VMs write here that others start elsewhere when nobody hears this host, so its watchdog counts: device",
  "host/metadata-not-answered": "this machine cannot listen where its instances ask for metadata: why",
  "host/network-allocation-not-written":
    "what became of addresses cannot be told to whoever gave the network view: why",
  "host/network-configuration-refused":
    "this machine's network configuration has faults, and the last good one stays in force: which",
  "host/network-lease-over":
    "this network host has not heard in time that it carries its cluster, and lets it go: cluster",
  "host/network-lease-not-in-place": "addresses of a network host cannot be given the time of its lease: why",
  "host/network-left-in-place": "something of a network view that nobody wants any more cannot be taken away: what",
  "host/network-plan-warns": "something of a network view is left out on this machine, or may go wrong: what",
  "host/network-stops-late":
    "a Host Manager that ends did not wait for all that a networking mode has running: for what, and why",
  "host/network-addresses-unsteady":
    "an instance says another address again and again: which two; one is told, and another at most once a minute",
  "host/network-view-not-written": "a network view that has come is not where this machine looks for it: why",
  "host/network-not-in-place": "a network view is not in force whole on this machine: why",
  "host/watchdog-failed": "a watchdog does not do what it is told: why",
  "host/watchdog-rests": "the watchdog of a host counts no more: device",
  "host/isolated": "no storage server hears a host, nor does it hear most hosts: it ends a machine that writes: vm",
  "hosts/adopted": "hosts that have joined got an element in the root cell's model: which",
  "host/administered": "the operator lets a host take VMs, or lets it take no more",
  "host/dedicated": "a host is one domain's or account's from now on",
  "pools/taken": "a host goes into a pool: which, of what flavour, and whose pool it is",
  "pools/kept":
    "the root controller's store is older than what a Placer has of a host: of which flavour it is, and whose PoolHost has it",
  "pools/given-back": "a host has left a pool, and is its flavour's again",
  "host/pooled": "a host is of a flavour from now on (null: of none any more), and in which pool",
  "host/released": "a host is everybody's again",
  "placement/crosses":
    "a VM is to move, or was started elsewhere since its host was lost (`restart`), between hosts whose dedication is not the same, by the alerts E1 to E3 and I1 to I3",
  "placement/leaves":
    "room is kept at another host for the next incarnation of a VM that is to leave its own: from, to",
  "vm/move-asked": "the operator has a VM go to another host: from, to",
  "vm/moves": "a VM is stopped in order, and starts again at another host: from, to",
  "host/joined": "a host offers itself for VMs",
  "host/changed": "a host's state or resources changed",
  "host/left": "a host took itself back",
  "placement/reserved": "an incarnation has a host",
  "placement/released": "an incarnation's place is free again",
  "placement/state": "what a controller is told of a placement changed",
  "placement/removed": "a controller is told that a placement is gone",
  // Presence.
  "presence/called":
    "all evidence that a host is dead is there, and this member of the Presence group asks who hears it",
  "presence/voted": "this member of the Presence group would declare a host dead: generation and number of reports",
  "presence/vote-withdrawn": "it would no longer",
  "presence/declared": "a generation of a host is dead by the word of a majority: how many hosts reported it",
  "presence/power-off":
    "the power of a host was off for certain, as its operator said: what began in this boot of it, or before, is over",
  "presence/returned": "a host that was declared dead is back, in a later generation",
  "presence/no-majority":
    "this member hears too few of the Presence group: no host is declared dead until it hears more",
  "presence/majority": "it hears a majority of the Presence group again",
  // High availability.
  "ha/scheduled": "something is to be done about a VM whose host is lost: type and why",
  "ha/step": "an item of the HA Manager's queue has gone on: to which step, and why",
  "ha/guard":
    "the HA Manager of a cell is gone, and another one looks after its VMs from now on: which cell, both of them",
  "ha/suspected": "a host with VMs is suspected: whether it has power is asked, and its neighbours whether it answers",
  "ha/not-suspected": "it is not any more: it has refuted that, or was declared dead",
  "ha/held": "an item of the HA Manager's queue waits for a person: why",
  "ha/paused":
    "many hosts were lost at once, so tenants' machines are not started elsewhere until a person has looked: which hosts",
  "alert/opened": "something waits for a person: its kind, what it is about, and what helps",
  "alert/acknowledged": "somebody has said that he looks after it: kind, subject",
  "alert/webhook": "where alerts are told to is another place from now on: the URL; null: nowhere",
  "alert/mail": "alerts are told by mail to somebody else from now on: by which server, to whom; null: to nobody",
  "notice/unsent": "a notice to a user's URL was given up: of which subscription, its number, and why",
  "alert/unsent": "a notice of an alert was given up: of the webhook or of mail, its number, which event, why",
  "alert/ended": "it does not any more: kind, subject",
  "ha/released": "a person has looked, and what was held goes on: of which VM; null: after the loss of many hosts",
  "ha/cancelled": "the operator has said that an incarnation is left alone, until he has it tried again: which one",
  "ha/retried": "the operator has something tried at once, or what he had cancelled taken up again: which incarnation",
  "ha/power-registered":
    "the management controller of a host was tried, and is known from now on: host, by what, address, uuid",
  "ha/power-removed": "the management controller of a host is forgotten",
  "ha/power-off": "the power of a lost host is ordered to be cut: host, the boot that it is in",
  "ha/power-not-cut":
    "nobody has carried that order out, since who was to was lost as well, so it is given again: host, the boot that it is in",
  "ha/end-told":
    "the Presence group has taken that a boot of a host is over, since its power was read as off: host, boot",
  "ha/power-is-off": "the power of a lost host was read as off: host, the boot that is over",
  "ha/over":
    "nothing of an incarnation can write any more, and its controller is told so: by which fence, or that it was seen stopped",
  "ha/fencing": "a Storage Manager ends the leases of an incarnation for good: vm, incarnation",
  "ha/fenced": "they have ended: vm, incarnation, how many volumes",
  // Storage.
  "volume/anew":
    "the root controller, whose store was put back, gives a service VM another volume for its stores: path, volume, the one before",
  "volume/placed": "a volume got its storage server",
  "volume/left-to-bin":
    "a volume is desired whose file was deleted, by a store from before that: it waits for an operator: path, agent",
  "volume/adopted": "the Storage Manager found a volume that it did not know where it is: path, agent",
  "recovery/waits":
    "a service has lost what it knew, or has an older store: the Storage Manager places no volume before these servers have said what they have, the IP Address Manager gives no new range before these controllers have",
  "recovery/behind":
    "a controller has seen more of this Storage Manager's store than it contains: whose volumes wait, and for which servers",
  "recovery/complete": "all have said what they have",
  "recovery/adopted": "an operator adopted what a storage server has whose store or files are older",
  "store/older":
    "this storage server, its store or its files were put back from a copy: nothing is started until an operator adopts it; why, null: no longer",
  "volume/grows": "the Storage Manager promised a volume more room: path, agent, size",
  "volume/grown": "a volume became larger",
  "volume/frozen": "a volume is immutable from now on",
  "volume/left": "a volume's cell has ended; it stays with the provider as the origin of other cells' copies",
  "volume/created": "a volume's file is there",
  "volume/found": "a volume's file is there, as the store said that was put back",
  "volume/deleted": "a volume's file is gone from among the volumes: file, its name in the bin if there was any",
  "bin/emptied": "a file in the bin is removed for good: file, volume, path and why",
  "bin/kept": "an operator wanted a file in the bin emptied that is still needed: why",
  "bin/offered": "an operator brings a file in the bin back: the next volume with its cell and path begins with it",
  "server/held-back":
    "a storage server has little room left, and ends the exports of a cell that uses more than its share of it",
  "server/let-go": "the exports of a cell that was held back come again",
  "volume/failed": "work on a volume's file or export failed; it is repeated",
  "volume/state": "what a controller is told of a volume changed",
  "volume/removed": "a controller is told that a volume is gone",
  "connection/state": "what a controller is told of a VM's connection to a volume changed",
  "connection/removed": "a controller is told that a connection is over",
  "grant/state": "what a controller is told of a grant changed",
  "grant/removed": "a controller is told that a grant is gone",
  "lease/asked": "the Storage Manager asks for the next epoch: for whom, or to fence",
  "lease/adopted": "the Storage Manager found an agent's lease other than it remembered, and follows it",
  "lease/granted": "an agent granted an epoch to a holder",
  "lease/fencing": "an agent cuts an epoch's holder off",
  "lease/fenced": "nobody can write under an epoch any more",
  "export/started": "an export's daemon runs",
  "export/adopted": "an export of an earlier agent's life is taken over",
  "export/ended": "an export's daemon was ended",
  "export/strangers":
    "half of the places of an export are taken, by others than those that it is for among them: how many were put out",
  "export/died": "an export's daemon ended by itself; it is started again",
  "agent/adopt-asked":
    "root of a storage server asked, by a file `adopt` beside the store, that what it has is adopted: how many leases ended; null: it is not older",
  "agent/adopt-failed": "what root asked for by the file `adopt` failed: why",
  "agent/mark-unwritten":
    "no mark can be written beside the volumes' files, so none more is counted; it is repeated: why",
  "agent/work-unknown": "an agent's executor could not ask for its work",
  "image/staged": "an uploaded image was looked at and converted; it is not visible yet",
  "image/refused": "an uploaded image was refused: why",
  "image/added": "an uploaded image is there, in place of the one with the digest `replaced` if there was one",
  "image/deleted": "an uploaded image is gone; volumes made from it stay",
  // Hosts.
  "machine/stage": "a machine at a host went on: starting, running, ended, gone",
  "machine/disk-grown": "a disk of a machine that runs became larger, and its guest sees that: connection, size",
  "machine/condition": "a machine that goes on rebooted, panicked, stands still because of a disk, or runs again",
  "machine/trial":
    "the VM that its host starts again starts from another boot volume, or its host has gone back to the former: which and why",
  "machine/health": "a VM began to answer its liveness probes, or stopped",
  "machine/guest": "a guest came up, which is that its agent answered, or did not within its time",
  "instance/vanished":
    "nothing is heard of a host, and its instance has left the view: which, host and after how many minutes",
  "instance/returned":
    "a host is heard again, and its instance is in the view: with which address, and which one was its own before, if that is another",
  "network/host-fenced":
    "the power of a host was off: what it had in place of a mode is gone, and is waited for no more: host, boot",
  "network/host-named": "a cluster of a MANAGED mode has another network host, or a first one: cluster, host",
  "network/host-lapsed":
    "a network host has not asked for its lease in time, and another one may take over: cluster, host",
  "network/implemented": "a host's interfaces, rules and locations are in force: how many",
  "host/emulates": "a host emulates its guests' processors, since KVM has not answered in time",
  "host/boot-ended":
    "it was said for certain that this host's machine had ended, and it runs: its machines end, and it goes on as a new one",
  "host/action-failed": "an action at a host failed; it is repeated",
  "host/report-failed": "a host's executor could not report an action",
  "host/probe-failed": "a liveness probe could not be sent",
  "session/opened": "somebody opened a console or a command at a VM: verb, vm, incarnation, peer",
  "session/ended": "that session is over",
  "host/executor-stopped": "a host's executor stopped asking for actions",
  // Gateway.
  "gateway/listening": "the gateway takes requests",
  "personality/listening": "a personality takes requests",
  "personality/failed": "a personality failed to answer a request by a defect of its own",
  "timeline/incomplete":
    "the last line of a time line that is not whole: which services did not answer when they were asked for theirs, and how many older events were too many; in no log",
  "gateway/pass": "the gateway does not listen where it passes connections on to a door, and tries again",
  "gateway/failed": "the gateway failed to answer a request by a defect of its own",
} as const;

export type EventName = keyof typeof eventNames;

export const isEventName = (name: string): name is EventName => Object.hasOwn(eventNames, name);
