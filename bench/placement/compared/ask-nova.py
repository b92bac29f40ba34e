"""Places VMs with Nova's scheduler and Placement, one after the other: what `openstack.ts` starts in a directory with Debian in it.

Arguments: port of Placement, hosts, VMs, MiB and processors of a host, MiB that each keeps, MiB and processors of a VM. The last line that
it prints is what came of it, as JSON. Nova's conductor would ask by its message bus; here `select_destinations` is called as the scheduler's own
process calls it then. No nova-compute runs: what a VM takes of its host's record is written by this program, and not counted.
"""
import nova.monkey_patch  # noqa: F401  As each of Nova's programs begins.
import json
import sys
import time
import urllib.request
import uuid

from nova import config, context, objects
from nova.db import migration
from nova.objects import fields
from nova.scheduler import manager

port, hosts, vms, host_mib, host_cpus, kept_mib, vm_mib, vm_cpus = map(int, sys.argv[1:])


def placement(method, path, body):
    head = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.36", "Content-Type": "application/json"}
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), head, method=method)
    with urllib.request.urlopen(asked) as answer:
        return answer.status


def host(cell, at):
    name, own = f"h{at}", str(uuid.uuid4())
    service = objects.Service(cell, host=name, binary="nova-compute", topic="compute", report_count=1, disabled=False)
    service.create()
    ratios = dict(cpu_allocation_ratio=16.0, ram_allocation_ratio=1.0, disk_allocation_ratio=1.0)
    node = objects.ComputeNode(
        cell, uuid=own, service_id=service.id, host=name, hypervisor_hostname=name, hypervisor_type="QEMU",
        hypervisor_version=7002000, host_ip="127.0.0.1", cpu_info="{}", vcpus=host_cpus, vcpus_used=0,
        memory_mb=host_mib, memory_mb_used=kept_mib, free_ram_mb=host_mib - kept_mib, local_gb=1000, local_gb_used=0,
        free_disk_gb=1000, disk_available_least=1000, current_workload=0, running_vms=0, stats={},
        supported_hv_specs=[objects.HVSpec(arch=fields.Architecture.X86_64, hv_type="kvm", vm_mode="hvm")], **ratios)
    node.create()
    placement("POST", "/resource_providers", {"name": name, "uuid": own})
    placement("PUT", f"/resource_providers/{own}/inventories", {
        "resource_provider_generation": 0,
        "inventories": {
            "VCPU": {"total": host_cpus, "allocation_ratio": 16.0},
            "MEMORY_MB": {"total": host_mib, "reserved": kept_mib},
        },
    })
    return node


def request(admin, flavor, vm):
    image = objects.ImageMeta(id=str(uuid.uuid4()), properties=objects.ImageMetaProps())
    return objects.RequestSpec.from_components(
        admin, vm, image, flavor, None, None, {}, None, None, project_id="bench", user_id="bench")


def main():
    config.parse_args(["nova-scheduler", "--config-file", "/etc/nova/nova.conf"])
    objects.register_all()
    for database in ["api", "main"]:
        migration.db_sync(database=database)
    admin = context.get_admin_context()
    admin.project_id = admin.user_id = "bench"
    where = dict(transport_url="fake:///", database_connection=config.CONF.database.connection)
    objects.CellMapping(admin, uuid=str(uuid.uuid4()), name="cell1", disabled=False, **where).create()
    cell = context.get_admin_context()
    nodes = {f"h{at}": host(cell, at) for at in range(hosts)}
    scheduler = manager.SchedulerManager()
    client, taken = scheduler.placement_client, {"get_allocation_candidates": 0.0, "claim_resources": 0.0}

    def timed(name):
        inner = getattr(client, name)

        def outer(*args, **kwargs):
            began = time.perf_counter()
            try:
                return inner(*args, **kwargs)
            finally:
                taken[name] += time.perf_counter() - began
        setattr(client, name, outer)
    for name in list(taken):
        timed(name)
    flavor = objects.Flavor(
        id=1, flavorid="1", name="bench", memory_mb=vm_mib, vcpus=vm_cpus, root_gb=0, ephemeral_gb=0, swap=0,
        rxtx_factor=1.0, vcpu_weight=0, disabled=False, is_public=True, extra_specs={})
    took, spent, there = 0.0, 0.0, {}
    print("begins", flush=True)
    for at in range(vms):
        vm = str(uuid.uuid4())
        spec = request(admin, flavor, vm)
        began, cpu = time.perf_counter(), time.process_time()
        chosen = scheduler.select_destinations(
            admin, spec_obj=spec, instance_uuids=[vm], return_objects=True, return_alternates=False)
        took += time.perf_counter() - began
        spent += time.process_time() - cpu
        node = nodes[chosen[0][0].service_host]
        there[node.host] = there.get(node.host, 0) + 1
        node.memory_mb_used += vm_mib
        node.free_ram_mb -= vm_mib
        node.vcpus_used += vm_cpus
        node.running_vms += 1
        node.save()
    print(json.dumps({
        "placed": sum(there.values()), "hostsInUse": len(there), "tookMs": took * 1000, "cpuMs": spent * 1000,
        "candidatesMs": taken["get_allocation_candidates"] * 1000, "claimsMs": taken["claim_resources"] * 1000,
    }))


main()
