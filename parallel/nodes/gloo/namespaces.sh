#!/usr/bin/env bash
# namespaces.sh <nodes> <rate> <program> ...: starts one process of the program in each of <nodes> network namespaces.
# They act like machines with a network card of this rate (in tc's form: 100mbit, 1gbit; none: unlimited) on one switch.
# The processes find each other by MUSTER_STORE, MUSTER_NODE, MUSTER_NODES and MUSTER_INTERFACE. Prints how many bytes
# each has sent, as counted by the kernel. Needs root. Cleans up even if this script is killed.
set -euo pipefail

nodes=$1 rate=$2
shift 2
fail() {
  echo "namespaces: $*" >&2
  exit 1
}
[[ $nodes =~ ^[1-9][0-9]?$ ]] || fail "from 1 to 99 nodes, not '$nodes'"
[[ $rate == none || $rate =~ ^[0-9]+[kmg]bit$ ]] || fail "a rate is as in 100mbit or 1gbit, not '$rate'"
[[ $(id -u) == 0 ]] || fail "network namespaces want root"
command -v ip >/dev/null && command -v tc >/dev/null || fail "there is no ip or tc (Debian: iproute2)"

name=muster$$ store=$(mktemp -d)
clean_up() {
  local space
  for space in $(ip netns list 2>/dev/null | sed -n "s/^\($name-[a-z0-9]*\).*/\1/p"); do
    ip netns pids "$space" 2>/dev/null | xargs -r kill -9 2>/dev/null || true
    ip netns del "$space" 2>/dev/null || true
  done
  rm -rf "$store"
}
# A separate process cleans up when this one ends in any way, which closes the pipe it reads.
export -f clean_up
exec {alive}> >(name=$name store=$store exec setsid bash -c 'trap "" INT TERM HUP; cat >/dev/null; clean_up')
cleaner=$!
finish() {
  exec {alive}>&-
  while kill -0 "$cleaner" 2>/dev/null; do sleep 0.05; done
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

problem=$(ip netns add "$name-switch" 2>&1) || fail "network namespaces are not allowed here: $problem"
switch=(ip -n "$name-switch")
"${switch[@]}" link add switch type bridge || fail "there are no bridges here"
"${switch[@]}" link set switch up
shape() {  # namespace, device
  [[ $rate != none ]] || return 0
  tc -n "$1" qdisc add dev "$2" root tbf rate "$rate" burst 64kb latency 100ms ||
    fail "the rate of $2 cannot be limited here"
}
for ((node = 0; node < nodes; ++node)); do
  space=$name-$node
  ip netns add "$space"
  ip -n "$space" link add eth0 type veth peer name "port$node" netns "$name-switch"
  ip -n "$space" address add "10.77.0.$((node + 1))/24" dev eth0
  ip -n "$space" link set eth0 up
  ip -n "$space" link set lo up
  "${switch[@]}" link set "port$node" master switch up
  shape "$space" eth0
  shape "$name-switch" "port$node"
done

pids=() status=0
for ((node = 0; node < nodes; ++node)); do
  MUSTER_STORE=$store MUSTER_NODE=$node MUSTER_NODES=$nodes MUSTER_INTERFACE=eth0 GLOO_SOCKET_IFNAME=eth0 \
    ip netns exec "$name-$node" "$@" {alive}>&- &
  pids+=($!)
done
for pid in "${pids[@]}"; do
  one=0
  wait "$pid" || one=$?
  if ((status == 0)); then status=$one; fi
done
for ((node = 0; node < nodes; ++node)); do
  sent=$(ip netns exec "$name-$node" cat /sys/class/net/eth0/statistics/tx_bytes)
  packets=$(ip netns exec "$name-$node" cat /sys/class/net/eth0/statistics/tx_packets)
  echo "node $node has sent $sent bytes in $packets packets" >&2
done
exit "$status"
