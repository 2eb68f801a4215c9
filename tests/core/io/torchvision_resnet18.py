"""For weights_in_torchvision_test: ResNet-18 in PyTorch.

    torchvision_resnet18.py make DIRECTORY     writes there.safetensors, its state dict, and run.safetensors, a run of it
    torchvision_resnet18.py read DIRECTORY     loads back.safetensors, and compares it with there.safetensors
"""

import sys

try:
    import torch
    import torchvision
    from safetensors.torch import load_file, save_file
except ImportError as error:
    print(error)
    sys.exit(77)

act, directory = sys.argv[1:]
torch.manual_seed(1)
torch.set_num_threads(1)
net = torchvision.models.resnet18(num_classes=7)
if act == "make":
    net.train()
    with torch.no_grad():
        for _ in range(2):  # makes running statistics differ from 0 and 1
            net(torch.rand(4, 3, 64, 64))
    net.eval()
    images = torch.rand(3, 3, 64, 64)
    save_file(net.state_dict(), directory + "/there.safetensors")
    save_file({"images": images, "logits": net(images).detach()}, directory + "/run.safetensors")
else:
    net.load_state_dict(load_file(directory + "/back.safetensors"))  # fails unless all names and shapes match
    there = load_file(directory + "/there.safetensors")
    for name, values in net.state_dict().items():
        if not name.endswith("num_batches_tracked") and not torch.equal(values, there[name]):
            sys.exit(name + " has other values")
