#include "examples/lenet_from_scratch/options.h"

#include <boost/program_options.hpp>
#include <cmath>
#include <iostream>
#include <string>

#include "examples/support/command_line.h"
#include "examples/support/data_options.h"

namespace example {
namespace {

namespace po = boost::program_options;

constexpr std::string_view kIntroduction =
    R"(Trains LeNet on several devices by hand, to show what data-parallel training is made of: every batch is
split among the devices, each computes the gradients of its piece with its own copy of the parameters, the
gradients are summed over the devices, and each takes the same step with the sum. No model class and no
trainer is used; examples/lenet_from_scratch.cpp is to be read.

  lenet_from_scratch                             5 epochs of MNIST with one device
  lenet_from_scratch --devices 2 --data fashion  Fashion-MNIST with two
  lenet_from_scratch --device cuda:0,cuda:1      with two GPUs

With more devices the same numbers come out, but for rounding; what changes is the seconds an epoch. On the CPU
each device is a thread, so more of them than cores gain nothing.
)";

po::options_description describeTraining(Options& o, DeviceOption& device) {
  po::options_description training("Training", kLineLength);
  device.describe(training, "replica");
  training.add_options()  //
      ("devices", value(o.devices, "N"),
       "devices that share each batch, each with its own parameters (default: those of --device); beyond the "
       "end of that list several are on one")                                                      //
      ("batch", withDefault(o.batch, "N"), "examples a batch, over all devices")                   //
      ("epochs", withDefault(o.epochs, "N"), "passes over the data")                               //
      ("lr", withDefault(o.learningRate, "X"), "learning rate of plain SGD")                       //
      ("seed", withDefault(o.seed, "N"), "of the first weights and of the order of the examples")  //
      ("model", po::value<std::string>()->value_name("FILE")->notifier([&](const std::string& path) {
        o.model = path;
      }),
       "save the parameters there when done, in the safetensors format")  //
      ("help", "this text");
  return training;
}

void check(const Options& o) {
  requireRange("devices", o.devices, 1, 64);
  requireRange<std::int64_t>("batch", o.batch, 1, 65536);
  requireRange<std::int64_t>("epochs", o.epochs, 1, 1'000'000);
  muster::require(o.learningRate > 0 && std::isfinite(o.learningRate),
                  "--lr must be a positive number, got {}", o.learningRate);
  requireAtLeast<std::int64_t>("seed", o.seed, 0);
  checkData(o.data);
}

}  // namespace

std::optional<Options> readOptions(int argc, const char* const* argv) {
  Options o;
  po::options_description all(kLineLength);
  DeviceOption device;
  all.add(describeTraining(o, device)).add(describeData(o.data));
  const auto given = parseCommandLine(argc, argv, all);
  if (given.count("help") > 0) {
    std::cout << kIntroduction << all;
    return std::nullopt;
  }
  o.device = device.choose();
  const auto listed = static_cast<int>(o.device.devices.size());
  if (!said(given, "devices")) o.devices = listed;
  check(o);
  muster::require(o.devices >= listed, "--devices {} leaves some of the {} that --device names without work",
                  o.devices, listed);
  return o;
}

std::vector<muster::Device> Options::replicas() const {
  std::vector<muster::Device> all;
  for (int d = 0; d < devices; ++d)
    all.push_back(device.devices[static_cast<std::size_t>(d) % device.devices.size()]);
  return all;
}

}  // namespace example
