#!/usr/bin/env python3
"""What muster's training on a GPU is measured against: the same networks in PyTorch, on random images that lie on
the GPU. Prints one line of JSON. Where there is no PyTorch, or it cannot use the device, that line says so.

Each variant is tried with images in both memory layouts, and the faster one is measured."""

import argparse
import json
import math
import sys
import time

BATCHES = 480
CHUNK = 96  # steps between readings of the clock, which wait for the GPU
VARIANTS = {
    "eager": "call by call",
    "compile": "torch.compile with CUDA graphs (mode reduce-overhead)",
    "graph": "the whole step in a CUDA graph, captured by hand",
    "compiled-graph": "the same of forward and backward passes that torch.compile has fused",
}


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", choices=["convnet", "resnet18"], default="convnet")
    parser.add_argument("--variant", choices=VARIANTS, default="eager",
                        help="; ".join(f"{name}: {what}" for name, what in VARIANTS.items()))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--warm-up", type=float, default=0.5, help="seconds, of each layout")
    parser.add_argument("--profile", action="store_true", help="only list the GPU's kernels, with the time of each in a step")
    parser.add_argument("--math-mode", choices=["fp32", "tf32", "bf16"], default="tf32")
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
if options.variant.endswith("graph") and not options.device.startswith("cuda"):
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


def initialise(model):
    """As muster does: weights by Glorot and Bengio (normal), biases 0."""
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.xavier_normal_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


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
        with torch.autocast(images.device.type, torch.bfloat16, enabled=options.math_mode == "bf16"):
            return F.cross_entropy(model(x), y)

    loss_function = loss_of
    if options.variant == "compile":
        loss_function = torch.compile(loss_of, mode="reduce-overhead", dynamic=False)
    elif options.variant == "compiled-graph":
        loss_function = torch.compile(loss_of, dynamic=False)

    def step(x, y):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_function(x, y)
        loss.backward()
        optimizer.step()
        return loss

    if not options.variant.endswith("graph"):
        return step

    # A captured graph reads fixed addresses; it allocates during warm-up.
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


def make_training(memory_format, images, labels):
    """A function of seconds that trains for so long. @return  how many steps, in how many seconds, and the last loss"""
    torch.manual_seed(123)
    model = convnet() if options.network == "convnet" else resnet18()
    initialise(model)
    model = model.to(images[0].device, memory_format=memory_format)
    images = [batch.contiguous(memory_format=memory_format) for batch in images]
    step = make_step(model, make_optimizer(model), images[0], labels[0])
    chunk = CHUNK if options.network == "convnet" else CHUNK // 8
    if not options.device.startswith("cuda"):
        chunk //= 12

    def train(seconds):
        steps, begin = 0, time.perf_counter()
        while True:
            for _ in range(chunk):
                loss = step(images[steps % len(images)], labels[steps % len(images)])
                steps += 1
            synchronize()
            elapsed = time.perf_counter() - begin
            if elapsed >= seconds:
                return steps, elapsed, loss.item()

    return train


def profile(train, seconds):
    """The kernels of training, as torch.profiler sees them: in the columns of gpu_end_to_end --trace."""
    train(options.warm_up)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        steps = train(seconds)[0]
    rows = sorted(((getattr(row, "self_device_time_total", None) or getattr(row, "self_cuda_time_total", 0), row.count, row.key)
                   for row in seen.key_averages()), reverse=True)
    rows = [row for row in rows if row[0] > 0]
    total = sum(row[0] for row in rows) or 1
    print(f"PyTorch {torch.__version__}, {VARIANTS[options.variant]}, batch {options.batch}: the GPU works "
          f"{total / max(1, steps):.1f} us a step\n")
    print(f"{'us a step':>10} {'a step':>9} {'us each':>10} {'share':>7}")
    for microseconds, count, name in rows[:25]:
        print(f"{microseconds / max(1, steps):>10.2f} {count / max(1, steps):>9.2f} {microseconds / count:>10.2f} "
              f"{100 * microseconds / total:>5.1f} %  {name[:90]}")


def main():
    tf32 = options.math_mode != "fp32"
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True
    device = torch.device(options.device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    batches = BATCHES if options.network == "convnet" else BATCHES // 10
    torch.manual_seed(1)
    images = [torch.rand((options.batch, 1, 28, 28), device=device) for _ in range(batches)]
    labels = [torch.randint(10, (options.batch,), device=device) for _ in range(batches)]

    fastest, train, layout = 0.0, None, None
    for name, memory_format in (("contiguous", torch.contiguous_format), ("channels last", torch.channels_last)):
        candidate = make_training(memory_format, images, labels)
        candidate(options.warm_up)
        steps, seconds, _ = candidate(options.warm_up / 2)
        if steps / seconds > fastest:
            fastest, train, layout = steps / seconds, candidate, name
    if options.profile:
        profile(train, options.seconds / 4)
        return
    steps, seconds, loss = train(options.seconds)
    if not math.isfinite(loss):
        sys.exit("torch_training.py: the loss is not finite")
    cudnn = torch.backends.cudnn.version() if device.type == "cuda" else None
    print(json.dumps({
        "samplesPerSecond": steps / seconds * options.batch,
        "layout": layout,
        "loss": loss,
        "about": f"PyTorch {torch.__version__}, cuDNN {cudnn}: images on the device as float32, fused SGD, "
                 f"cudnn.benchmark, {options.math_mode}, each in the faster of both memory layouts",
    }))


main()
