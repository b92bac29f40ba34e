#!/bin/sh
# Brings the guest up: modules, its data (x.data of the cell specification), its network, what its data tells it to serve.
mkdir -p /dev/pts /run /tmp /data /var /dev/virtio-ports
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mount -t devpts devpts /dev/pts
modprobe -a af_packet virtio_net virtio_console virtio_rng isofs
for port in /sys/class/virtio-ports/*; do
  [ -e "$port/name" ] && ln -sf "/dev/${port##*/}" "/dev/virtio-ports/$(cat "$port/name")"
done
ln -sfn /run /var/run
ip link set lo up

data=$(findfs LABEL=CIDATA 2>/dev/null) && mount -t iso9660 -o ro "$data" /data
name=$(sed -n 's/.*"\{0,1\}local-hostname"\{0,1\}: *"\{0,1\}\([A-Za-z0-9.-]*\).*/\1/p' /data/meta-data 2>/dev/null | head -n 1)
hostname "${name:-tiny}"

for card in /sys/class/net/eth*; do
  [ -e "$card" ] || continue
  device=${card##*/}
  ip link set "$device" up
  udhcpc -i "$device" -b -s /etc/udhcpc/default.script -t 20 -T 1 -A 5 -x "hostname:$(hostname)" >/dev/null 2>&1 &
done

/etc/rc.serve &
