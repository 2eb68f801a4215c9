#include "examples/lenet_from_scratch/options.h"

namespace example {
namespace {

constexpr std::string_view kIntroduction =
    R"(Trains LeNet on several devices by hand, to show what data-parallel training is made of: every batch is
split among the devices, each computes the gradients of its piece with its own copy of the parameters, the
gradients are summed over the devices, and each takes the same step with the sum. No model class and no
trainer is used; examples/lenet_from_scratch.cpp is to be read.

  lenet_from_scratch                             5 epochs of MNIST with one device
  lenet_from_scratch --devices 2 --data fashion  Fashion-MNIST with two
  lenet_from_scratch --device cuda:0,cuda:1      with two GPUs

Ctrl-C finishes the current step, saves what was trained and exits with 130; a second one quits.

More devices give the same numbers, except for rounding; only the time of an epoch changes. On the CPU each device
is a thread, so more devices than cores gain nothing.
)";

}  // namespace

std::optional<LenetOptions> readLenetOptions(int argc, const char* const* argv) {
  LenetOptions o;
  DeviceOption device;
  std::optional<int> devices;
  CommandLine line(kIntroduction);
  line.group("Training");
  device.describe(line, "replica");
  line.add("devices", devices, "N",
           "replicas that share each batch, each with its own parameters (default: one for each device of "
           "--device; more replicas than devices share devices)",
           between(1, 64));
  line.add("batch", o.batch, "N", "examples a batch, over all devices", between(1, 65536));
  line.add("epochs", o.epochs, "N", "passes over the data", between(1, 1'000'000));
  line.add("lr", o.learningRate, "X", "learning rate of plain SGD", positive);
  line.add("seed", o.seed, "N", "seed of the initial weights and of the order of the examples", atLeast(0));
  line.add("model", o.model, "FILE", "save the parameters there when done, in the safetensors format");
  o.data.describe(line);
  if (!line.read(argc, argv)) return std::nullopt;
  o.data.check();
  o.device = device.choose();
  const auto listed = static_cast<int>(o.device.devices.size());
  o.devices = devices.value_or(listed);
  muster::require(o.devices >= listed, "--devices {} leaves some of the {} that --device names without work",
                  o.devices, listed);
  return o;
}

std::vector<muster::Device> LenetOptions::replicas() const {
  std::vector<muster::Device> all;
  for (int d = 0; d < devices; ++d)
    all.push_back(device.devices[static_cast<std::size_t>(d) % device.devices.size()]);
  return all;
}

}  // namespace example
