#!/usr/bin/env bash
# One process of namespaces_test in its network namespace, for namespaces.sh: <file> <program> ... On node 1, cuts the
# cable between its machine and the switch once the file is there.
set -euo pipefail
file=$1
shift
if [[ $MUSTER_NODE == 1 ]]; then
  space=$(ip netns identify $$)
  {
    until [[ -e $file ]]; do sleep 0.02; done
    ip -n "${space%-*}-switch" link set port1 down
  } &
fi
exec "$@"
