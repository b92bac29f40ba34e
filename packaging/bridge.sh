#!/bin/sh
# The bridge of the underlay, `bridge.sh up|down INTERFACE`: it takes the interface as a port and has its address, MAC and
# routes itself. VMs of the management network are its other ports. Done again, it changes nothing.
set -eu
verb=$1 port=$2 bridge=cells0

# Bridged frames must not meet the machine's packet filter: what may pass is decided at each VM's own device.
for table in iptables ip6tables arptables; do
  echo 0 2>/dev/null >"/proc/sys/net/bridge/bridge-nf-call-$table" || :
done

# Addresses and the routes that somebody gave, from one device to another. The kernel's own follow from the addresses.
move() {
  addresses=$(ip -o -4 address show dev "$1" scope global | sed -n 's/.* inet \([0-9./]*\).*/\1/p')
  routes=$(ip -4 route show dev "$1" | grep -v 'proto kernel' | sed 's/ linkdown//' || :)
  for address in $addresses; do
    ip address del "$address" dev "$1"
    ip address replace "$address" dev "$2"
  done
  printf '%s\n' "$routes" | while read -r route; do
    # shellcheck disable=SC2086
    [ -z "$route" ] || ip route replace $route dev "$2"
  done
}
# systemd-networkd would take a port out of a bridge that it does not know, and give it its address back, whenever it is
# started again or the cable is put in again. Its file here goes before those of the machine (systemd.network(5)).
networkd=/run/systemd/network/00-cells
reload() {
  if systemctl -q is-active systemd-networkd.service; then networkctl reload; fi
}
keep() {
  if [ ! -d /run/systemd/system ] || [ -e "$networkd-port.network" ]; then return 0; fi
  mkdir -p "${networkd%/*}"
  printf '[Match]\nName=%s\n[Link]\nRequiredForOnline=no\n[Network]\nKeepMaster=yes\n' "$port" >"$networkd-port.network"
  printf '[Match]\nName=%s\n[Link]\nUnmanaged=yes\n' "$bridge" >"$networkd-bridge.network"
  reload
}
give_back() {
  [ -e "$networkd-port.network" ] || return 0
  rm -f "$networkd-port.network" "$networkd-bridge.network"
  reload
}
is_port() { ip -o link show dev "$port" | grep -q " master $bridge "; }

case $verb in
  up)
    if ! ip link show dev "$bridge" >/dev/null 2>&1; then
      mac=$(ip -o link show dev "$port" | sed -n 's/.* link\/ether \([0-9a-f:]*\).*/\1/p')
      ip link add "$bridge" address "$mac" type bridge stp_state 0 forward_delay 0 mcast_snooping 0
    fi
    ip link set "$bridge" up
    is_port || ip link set "$port" master "$bridge"
    ip link set "$port" up
    move "$port" "$bridge"
    keep
    ;;
  down)
    ip link show dev "$bridge" >/dev/null 2>&1 || exit 0
    if is_port; then ip link set "$port" nomaster; fi
    move "$bridge" "$port"
    ip link del "$bridge"
    give_back
    ;;
  *)
    echo "usage: bridge.sh up|down INTERFACE" >&2
    exit 2
    ;;
esac
