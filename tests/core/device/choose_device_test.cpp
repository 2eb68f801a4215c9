#include "muster/core/device/choose_device.h"

#include "tests/support/test.h"

namespace muster {
namespace {

/// A machine with one GPU per reason why it cannot be used; "": usable.
MachineGpus machineWith(std::vector<std::string> reasons) {
  MachineGpus machine;
  machine.whyNone = "this build has no CUDA";
  machine.hasDriver = true;
  for (std::size_t i = 0; i < reasons.size(); ++i) machine.gpus.push_back(Device::cuda(static_cast<int>(i)));
  machine.whyUnusable = [reasons](Device gpu) { return reasons.at(static_cast<std::size_t>(gpu.index())); };
  machine.nameOf = [](Device gpu) { return fmt::format("Toy {}", gpu.index()); };
  return machine;
}

}  // namespace

TEST_CASE("the first GPU that can be used is chosen, and the reasons against those before it are reported") {
  CHECK(chooseDevice(machineWith({"", "it is busy"})).device == Device::cuda(0));
  const auto next = chooseDevice(machineWith({"it is busy", ""}));
  CHECK(next.device == Device::cuda(1));
  CHECK(next.why == "cuda:1, Toy 1; cuda:0 cannot be used: it is busy");
  const auto none = chooseDevice(machineWith({"it is busy", "out of memory"}));
  CHECK(none.device == Device::cpu());
  CHECK(none.why == "cpu; cuda:0 cannot be used: it is busy; cuda:1 cannot be used: out of memory");
}

TEST_CASE("a missing GPU is reported only if its driver is installed") {
  auto machine = machineWith({});
  CHECK(chooseDevice(machine).device == Device::cpu());
  CHECK(chooseDevice(machine).why == "cpu: this build has no CUDA");
  machine.hasDriver = false;
  CHECK(chooseDevice(machine).why.empty());
}

TEST_CASE("all GPUs are all of the machine, and none are an error") {
  CHECK(allGpus(machineWith({"", "it is busy"})) == std::vector{Device::cuda(0), Device::cuda(1)});
  CHECK(test::thrown<DeviceUnavailable>([] { allGpus(machineWith({})); }) ==
        "allGpus: there is no GPU: this build has no CUDA");
}

TEST_CASE("the device chosen on this machine can be used") {
  CHECK(whyUnusable(chooseDevice().device).empty());
  CHECK_NOTHROW(requireUsable(std::vector{Device::cpu(), chooseDevice().device}));
  const auto text = test::thrown<DeviceUnavailable>([] { requireUsable(std::vector{Device::cuda(99)}); });
  CHECK_MESSAGE(text.starts_with("cuda:99 cannot be used: "), text);
}

TEST_CASE("a device's failure is recognised, also as the cause of a TrainingError") {
  const auto isDevice = [](const auto& error) {
    const auto bare = std::make_exception_ptr(error);
    const bool known = isDeviceError(bare);
    CHECK(isDeviceError(std::make_exception_ptr(TrainingError("worker 0 failed", 0, bare))) == known);
    return known;
  };
  CHECK(isDevice(OutOfMemory("all is full")));
  CHECK(isDevice(DeviceFailure("it is lost")));
  CHECK(isDevice(DeviceUnavailable("it is busy")));
  CHECK_FALSE(isDevice(NonFiniteScore("the score is nan")));
  CHECK_FALSE(isDeviceError(std::make_exception_ptr(TrainingError("no cause", 0, nullptr))));
}

TEST_CASE("a list of devices is described in a sentence") {
  CHECK(namesOf(std::vector<Device>{}).empty());
  CHECK(namesOf(std::vector{Device::cpu()}) == "cpu");
  CHECK(namesOf(std::vector{Device::cpu(), Device::cuda(0), Device::cuda(1)}) == "cpu, cuda:0 and cuda:1");
}

}  // namespace muster
