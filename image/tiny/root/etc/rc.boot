#!/bin/sh
# Brings the guest up: modules and devices here; who it is and its data in /etc/cells/become, once there is a seed volume.
# Without one it stays nobody, with a root file system that is only read: that is the state that is saved.
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mkdir -p /dev/pts /dev/virtio-ports
mount -t devpts devpts /dev/pts
modprobe -a af_packet virtio_net virtio_console virtio_rng isofs pvpanic-mmio
# A port has its name a moment after its driver was loaded: the host tells it, and a busy host takes its time.
until_port() {
  tries=500
  until [ -e "/dev/virtio-ports/$1" ] || [ "$tries" = 0 ]; do
    [ "$tries" = 500 ] || usleep 20000
    for port in /sys/class/virtio-ports/*; do
      [ -e "$port/name" ] && read -r name <"$port/name" && ln -sf "/dev/${port##*/}" "/dev/virtio-ports/$name"
    done
    tries=$((tries - 1))
  done
}
until_port org.qemu.guest_agent.0
ip link set lo up
hostname tiny

seed=$(findfs LABEL=CIDATA 2>/dev/null) || {
  until_port cells.identity
  [ -e /dev/virtio-ports/cells.identity ] && /etc/cells/wait &
  exit 0
}
. /etc/cells/become
for card in /sys/class/net/eth*; do
  [ -e "$card" ] || continue
  device=${card##*/}
  ip link set "$device" up
  udhcpc -i "$device" -b -s /etc/udhcpc/default.script -t 20 -T 1 -A 5 -x "hostname:$(hostname)" >/dev/null 2>&1 &
done

/etc/rc.serve &
