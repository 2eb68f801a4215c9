#include "muster/parallel/run/detail/run_devices.h"

#include "tests/support/devices.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::detail;
using namespace muster::test;

namespace {

template <typename Refusal>
std::string refusal(const char* list) {
  return thrown<Refusal>([&] { devicesNamed("training.devices", list); });
}

}  // namespace

TEST_CASE("the given device is used, and choosing the CPU prints no notice") {
  CHECK(devicesNamed("training.devices", "cpu").devices == std::vector{Device::cpu()});
  CHECK(devicesNamed("training.devices", "cpu").notice.empty());
}

TEST_CASE("without a GPU no notice mentions one") {
  if (availableDevices().size() > 1) return skip("there is a GPU");
  CHECK(chooseUnasked().devices == std::vector{Device::cpu()});
  const auto notice = chooseUnasked().notice;  // about an installed driver, if any
  CHECK_MESSAGE((notice.empty() || notice == "device: cpu: " + whyNoCuda()), notice);
}

TEST_CASE_ON("the first GPU is used without being requested, and is named", Where, OnGpu) {
  const auto unasked = chooseUnasked();
  CHECK(unasked.devices == std::vector{Device::cuda(0)});
  CHECK(unasked.unasked);
  CHECK(unasked.notice == "device: cuda:0, " + propertiesOf(Device::cuda(0)).name +
                              "; training.devices=cpu computes on the CPU instead");
  const auto asked = devicesNamed("training.devices", "cuda");
  CHECK(asked.devices == unasked.devices);
  CHECK_FALSE(asked.unasked);
  CHECK(asked.notice.empty());
}

/// A machine with one GPU per reason why it cannot be used; "": usable.
MachineGpus machineWith(std::vector<std::string> reasons) {
  MachineGpus machine;
  machine.whyNone = "nobody knows";
  machine.hasDriver = true;
  for (std::size_t i = 0; i < reasons.size(); ++i) machine.gpus.push_back(Device::cuda(static_cast<int>(i)));
  machine.whyUnusable = [reasons](Device gpu) { return reasons.at(static_cast<std::size_t>(gpu.index())); };
  machine.nameOf = [](Device gpu) { return "Toy " + std::to_string(gpu.index()); };
  return machine;
}

TEST_CASE("a notice mentions a GPU that cannot be used only if its driver is installed") {
  auto machine = machineWith({});
  CHECK(chooseUnasked(machine).notice == "device: cpu: nobody knows");
  CHECK(chooseUnasked(machine).devices == std::vector{Device::cpu()});
  machine.hasDriver = false;
  CHECK(chooseUnasked(machine).notice.empty());
  CHECK_FALSE(chooseUnasked(machine).unasked);
}

TEST_CASE("a GPU that is busy, full or too old is skipped in favour of the next one or the CPU") {
  const auto good = chooseUnasked(machineWith({"", "it is busy"}));
  CHECK(good.devices == std::vector{Device::cuda(0)});
  CHECK(good.notice == "device: cuda:0, Toy 0; training.devices=cpu computes on the CPU instead");
  CHECK(good.unasked);
  const auto next = chooseUnasked(machineWith({"it is busy", ""}));
  CHECK(next.devices == std::vector{Device::cuda(1)});
  CHECK(next.notice ==
        "device: cuda:1, Toy 1; cuda:0 cannot be used: it is busy; training.devices=cpu computes on the CPU "
        "instead");
  CHECK(next.unasked);
  const auto none = chooseUnasked(machineWith({"it is busy", "out of memory"}));
  CHECK(none.devices == std::vector{Device::cpu()});
  CHECK(none.notice ==
        "device: cpu; cuda:0 cannot be used: it is busy; cuda:1 cannot be used: out of memory");
  CHECK_FALSE(none.unasked);
}

TEST_CASE("if a GPU that was not requested fails, the error says how to use the CPU") {
  const auto unasked = chooseUnasked(machineWith({""}));
  const auto failing = [](const RunDevices& choice, const std::exception_ptr& cause) {
    return thrown<Error>(
        [&] { runOn(choice, [&]() -> int { throw TrainingError("worker 0 failed: no luck", 0, cause); }); });
  };
  const std::string plain = "worker 0 failed: no luck";
  const std::string advised = plain + "; training.devices=cpu computes on the CPU instead";
  CHECK(failing(unasked, std::make_exception_ptr(OutOfMemory("all is full"))) == advised);
  CHECK(failing(unasked, std::make_exception_ptr(DeviceFailure("it is lost"))) == advised);
  CHECK(failing(unasked, std::make_exception_ptr(DeviceUnavailable("it is busy"))) == advised);
  CHECK(failing(unasked, std::make_exception_ptr(NonFiniteScore("the score is nan"))) == plain);
  CHECK(failing(unasked, nullptr) == plain);
  CHECK(failing({.devices = {Device::cuda(0)}}, std::make_exception_ptr(OutOfMemory("all is full"))) ==
        plain);
  CHECK(thrown<Error>([&] { runOn(unasked, []() -> int { throw OutOfMemory("all is full"); }); }) ==
        "all is full; training.devices=cpu computes on the CPU instead");
  CHECK(runOn(unasked, [] { return 7; }) == 7);
}

TEST_CASE("a requested GPU that cannot be used is named") {
  CHECK_NOTHROW(requireUsable(RunDevices{}));
  const auto text = thrown<DeviceUnavailable>([] { requireUsable({.devices = {Device::cuda(99)}}); });
  CHECK_MESSAGE(text.starts_with("cuda:99 cannot be used: "), text);
  CHECK_NOTHROW(requireUsable({.devices = {Device::cuda(99)}, .unasked = true}));  // has been tried
}

TEST_CASE("invalid lists and devices that are not available are refused by name") {
  CHECK(refusal<InvalidArgument>("gpu") ==
        "training.devices gpu: device: expected cpu, cuda or cuda:N, got \"gpu\"");
  CHECK(refusal<InvalidArgument>("cuda:0,") ==
        "training.devices cuda:0,: device: expected cpu, cuda or cuda:N, got \"\"");
  CHECK(refusal<InvalidArgument>("").starts_with("training.devices : device: "));  // an unset variable
  CHECK(refusal<InvalidArgument>("cuda:1,cuda:1") ==
        "training.devices cuda:1,cuda:1: device: cuda:1 is named twice in \"cuda:1,cuda:1\"");
  CHECK(refusal<InvalidArgument>("cuda:0,cpu") ==
        "training.devices cuda:0,cpu: the CPU and GPUs cannot train together yet; name GPUs alone, or cpu "
        "alone");
  const auto missing = refusal<DeviceUnavailable>("cuda:99");
  CHECK(missing.starts_with("training.devices cuda:99: cuda:99 is not there; there "));
  if (availableDevices().size() == 1)
    CHECK(missing == "training.devices cuda:99: cuda:99 is not there; there is cpu alone, as " + whyNoCuda());
}
