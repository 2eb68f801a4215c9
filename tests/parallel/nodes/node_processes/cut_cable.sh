#!/usr/bin/env bash
# One process of elastic_cable_test in its network namespace, for namespaces.sh: <folder> <store> <elastic_node> <its
# other options>. Some time after all nodes train together, cuts the cable between node 2's machine and the switch. A
# Redis store runs on node 0's machine.
set -euo pipefail
folder=$1 store=$2 program=$3
shift 3

if [[ $store == redis:* && $MUSTER_NODE == 0 ]]; then
  ln -s "$MUSTER_REDIS_SERVER" "$folder/redis-server"
  "$folder/redis-server" --port 6379 --bind 10.77.0.1 --protected-mode no --save '' --dir "$folder" \
    --logfile "$folder/redis" &
fi
if [[ $store == redis:* ]]; then
  until (: </dev/tcp/10.77.0.1/6379) 2>/dev/null; do sleep 0.1; done
fi
if [[ $MUSTER_NODE == 2 ]]; then
  space=$(ip netns identify $$)
  {
    until grep -q ' of 3, from iteration' "$folder/log-2" 2>/dev/null; do sleep 0.05; done
    sleep 0.3
    ip -n "${space%-*}-switch" link set port2 down
    touch "$folder/cut"
  } &
fi
exec "$program" "$folder" "$MUSTER_NODE" "$@" "$store"
