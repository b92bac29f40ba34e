#!/bin/sh
# Holds the control group in which this host's machines are limited. Only leaves may have processes (cgroups(7)), so that
# it sits in one itself, and the Host Manager fills `vms`.
set -eu
own=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
if [ -e "$own/cgroup.controllers" ]; then
  mkdir -p "$own/holder" "$own/vms"
  echo $$ >"$own/holder/cgroup.procs"
  for controller in cpu memory pids; do
    for group in "$own" "$own/vms"; do
      echo "+$controller" >"$group/cgroup.subtree_control" || echo "no controller $controller in $group" >&2
    done
  done
else
  echo "no unified control groups here: machines run without limits" >&2
fi
exec sleep infinity
