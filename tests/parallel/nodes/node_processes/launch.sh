#!/usr/bin/env bash
# launch.sh <nodes> <store> <fate of node 1> <program> ...: starts <nodes> processes of a program that connect through
# <store>. Waits for all; if node 1 is to be lost, waits for the others, then kills node 1. Exits with the status of a
# failed process.
set -u
nodes=$1 store=$2 fate=$3
shift 3
export MUSTER_NODES=$nodes MUSTER_STORE=$store MUSTER_INTERFACE=lo
pids=() status=0
for ((node = 0; node < nodes; ++node)); do
  MUSTER_NODE=$node "$@" &
  pids+=($!)
done
for ((node = 0; node < nodes; ++node)); do
  if [[ $node != 1 || $fate == well ]]; then wait "${pids[node]}" || status=$?; fi
done
if [[ $fate != well ]]; then kill -9 "${pids[1]}" 2>/dev/null; fi
wait
exit $status
