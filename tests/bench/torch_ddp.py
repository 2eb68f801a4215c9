#!/usr/bin/env python3
"""What muster's training over nodes is measured against: its convnet in PyTorch, by DistributedDataParallel over Gloo,
on random images. One process a node, which finds the others as muster's do (MUSTER_STORE, MUSTER_NODE, MUSTER_NODES,
GLOO_SOCKET_IFNAME), so that parallel/nodes/gloo/namespaces.sh runs both:

    parallel/nodes/gloo/namespaces.sh 3 100mbit tests/bench/torch_ddp.py --batch 128 --seconds 20

Node 0 prints one line of JSON: the samples per second of all nodes. Where there is no PyTorch, the line says so."""

import argparse
import json
import os
import sys
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--batch", type=int, default=128, help="examples of each node in a step")
parser.add_argument("--seconds", type=float, default=20)
parser.add_argument("--alone", action="store_true", help="without the network: each node trains by itself")
options = parser.parse_args()
try:
    import torch
    import torch.distributed as distributed
    from torch import nn
except ImportError as error:
    print(json.dumps({"skipped": f"this Python has no PyTorch ({error})"}))
    sys.exit(0)

node, nodes = int(os.environ.get("MUSTER_NODE", 0)), int(os.environ.get("MUSTER_NODES", 1))
torch.set_num_threads(1)
torch.manual_seed(123)
model = nn.Sequential(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.Flatten(),
                      nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10))
together = not options.alone and nodes > 1
if together:
    distributed.init_process_group("gloo", init_method=f"file://{os.environ['MUSTER_STORE']}/ddp", rank=node,
                                   world_size=nodes)
    model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True, weight_decay=5e-4)
images, labels = torch.rand(options.batch, 1, 28, 28), torch.randint(10, (options.batch,))


def step():
    optimizer.zero_grad(set_to_none=True)
    nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()


for _ in range(3):
    step()
steps, begin = 0, time.perf_counter()
goes_on = torch.ones(1)
while goes_on.item() > 0:
    step()
    steps += 1
    if steps % 5 == 0:  # all stop after the same step
        goes_on[0] = time.perf_counter() - begin < options.seconds
        if together:
            distributed.broadcast(goes_on, 0)
elapsed = time.perf_counter() - begin
if node == 0:
    print(json.dumps({"samplesPerSecond": nodes * steps * options.batch / elapsed, "steps": steps, "nodes": nodes,
                      "torch": torch.__version__}))
