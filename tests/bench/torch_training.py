#!/usr/bin/env python3
"""What muster's training on a GPU is measured against: the same networks in PyTorch, on random images that lie on
the GPU. Prints one line of JSON. Where there is no PyTorch, or it cannot use the device, that line says so."""

import argparse
import json
import math
import sys
import time

BATCHES = 480
CHUNK = 96  # steps between looks at the clock, each of which waits for the GPU


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", choices=["convnet", "resnet18"], default="convnet")
    parser.add_argument("--variant", choices=["eager", "compile", "graph"], default="eager",
                        help="eager; torch.compile with CUDA graphs (reduce-overhead); a graph captured by hand")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--warm-up", type=float, default=1)
    parser.add_argument("--math-mode", choices=["fp32", "tf32"], default="tf32")
    return parser.parse_args()


def skip(reason):
    print(json.dumps({"skipped": reason}))
    sys.exit(0)


options = parse()
try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError as error:
    skip(f"skipped: this Python has no PyTorch ({error})")
if options.device.startswith("cuda") and not torch.cuda.is_available():
    skip(f"skipped: PyTorch {torch.__version__} cannot use this GPU")
if options.variant == "graph" and not options.device.startswith("cuda"):
    skip("skipped: only a GPU has graphs")


def convnet():
    return nn.Sequential(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10))


def normalised(channels, out, kernel, stride):
    return nn.Sequential(nn.Conv2d(channels, out, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(out))


class Residual(nn.Module):
    """Two convolutions 3x3 and a shortcut, itself a convolution 1x1 where channels or size change."""

    def __init__(self, channels, out, stride):
        super().__init__()
        self.first = normalised(channels, out, 3, stride)
        self.second = normalised(out, out, 3, 1)
        same = channels == out and stride == 1
        self.shortcut = nn.Identity() if same else normalised(channels, out, 1, stride)

    def forward(self, x):
        return F.relu(self.second(F.relu(self.first(x))) + self.shortcut(x))


def resnet18():
    layers = [normalised(1, 64, 3, 1), nn.ReLU()]
    channels = 64
    for out in (64, 128, 256, 512):
        layers += [Residual(channels, out, 1 if out == channels else 2), Residual(out, out, 1)]
        channels = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def make_optimizer(model):
    """muster's updater and L2, which is not on biases; all tensors in as few kernels as PyTorch can."""
    fused = options.device.startswith("cuda")
    if options.network == "resnet18":
        return torch.optim.SGD(model.parameters(), lr=0.01, fused=fused)
    weights = [p for p in model.parameters() if p.dim() > 1]
    biases = [p for p in model.parameters() if p.dim() == 1]
    return torch.optim.SGD([{"params": weights, "weight_decay": 5e-4}, {"params": biases}], lr=0.01, momentum=0.9,
                           nesterov=True, fused=fused)


def make_step(model, optimizer, images, labels):
    """A function of images and labels that trains one step and gives the loss, without waiting for it."""

    def loss_of(x, y):
        return F.cross_entropy(model(x), y)

    loss_function = loss_of
    if options.variant == "compile":
        loss_function = torch.compile(loss_of, mode="reduce-overhead", dynamic=False)

    def step(x, y):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_function(x, y)
        loss.backward()
        optimizer.step()
        return loss

    if options.variant != "graph":
        return step

    # What a captured graph reads lies at fixed places; it allocates when it is warm.
    x, y = images.clone(), labels.clone()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(11):
            step(x, y)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(x, y)

    def replay(images, labels):
        x.copy_(images)
        y.copy_(labels)
        graph.replay()
        return loss

    return replay


def synchronize():
    if options.device.startswith("cuda"):
        torch.cuda.synchronize()


def main():
    torch.manual_seed(123)
    torch.set_float32_matmul_precision("high" if options.math_mode == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = options.math_mode == "tf32"
    torch.backends.cudnn.benchmark = True
    device = torch.device(options.device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    batches = BATCHES if options.network == "convnet" else 48
    images = torch.rand((batches, options.batch, 1, 28, 28), device=device)
    labels = torch.randint(10, (batches, options.batch), device=device)
    model = (convnet() if options.network == "convnet" else resnet18()).to(device)
    step = make_step(model, make_optimizer(model), images[0], labels[0])

    def train(seconds):
        """@return steps a second."""
        steps, begin = 0, time.perf_counter()
        while True:
            for _ in range(CHUNK if options.network == "convnet" else CHUNK // 8):
                loss = step(images[steps % batches], labels[steps % batches])
                steps += 1
            synchronize()
            elapsed = time.perf_counter() - begin
            if elapsed >= seconds:
                return steps / elapsed, loss.item()

    train(options.warm_up)
    speed, loss = train(options.seconds)
    if not math.isfinite(loss):
        sys.exit("torch_training.py: the loss is not finite")
    cudnn = torch.backends.cudnn.version() if device.type == "cuda" else None
    print(json.dumps({
        "samplesPerSecond": speed * options.batch,
        "about": f"PyTorch {torch.__version__}, cuDNN {cudnn}: images on the device, fused SGD, cudnn.benchmark, "
                 f"{options.math_mode}; torch.compile in mode reduce-overhead",
    }))


main()
