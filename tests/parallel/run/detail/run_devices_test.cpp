#include "muster/parallel/run/detail/run_devices.h"

#include "tests/support/devices.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::detail;
using namespace muster::test;

namespace {

/// A choice as "cpu: notice", or "cuda:1, unasked: notice".
std::string textOf(const RunDevices& chosen) {
  return fmt::format("{}{}: {}", namesOf(chosen.devices), chosen.unasked ? ", unasked" : "", chosen.notice);
}

/// A machine with one GPU per reason why it cannot be used; "": usable.
MachineGpus machineWith(std::vector<std::string> reasons, bool hasDriver = true) {
  MachineGpus machine;
  machine.whyNone = "nobody knows";
  machine.hasDriver = hasDriver;
  for (std::size_t i = 0; i < reasons.size(); ++i) machine.gpus.push_back(Device::cuda(static_cast<int>(i)));
  machine.whyUnusable = [reasons](Device gpu) { return reasons.at(static_cast<std::size_t>(gpu.index())); };
  machine.nameOf = [](Device gpu) { return "Toy " + std::to_string(gpu.index()); };
  return machine;
}

const std::string kAdvice = "; training.devices=cpu computes on the CPU instead";

}  // namespace

TEST_CASE("the given device is used, and choosing the CPU, or a machine without a GPU, prints no notice") {
  CHECK(textOf(devicesNamed("training.devices", "cpu")) == "cpu: ");
  if (availableDevices().size() > 1) return skip("there is a GPU");
  const auto notice = chooseUnasked().notice;  // about an installed driver, if any
  CHECK_MESSAGE((notice.empty() || notice == "device: cpu: " + whyNoCuda()), notice);
  CHECK(chooseUnasked().devices == std::vector{Device::cpu()});
}

TEST_CASE_ON("the first GPU is used without being requested, and is named", Where, OnGpu) {
  CHECK(textOf(chooseUnasked()) ==
        "cuda:0, unasked: device: cuda:0, " + propertiesOf(Device::cuda(0)).name + kAdvice);
  CHECK(textOf(devicesNamed("training.devices", "cuda")) == "cuda:0: ");
}

TEST_CASE("a GPU that is busy, full or too old is skipped in favour of the next one or the CPU") {
  const std::string busy = "cuda:0 cannot be used: it is busy", full = "cuda:1 cannot be used: out of memory";
  const auto chosen = [](const MachineGpus& machine) { return textOf(chooseUnasked(machine)); };
  CHECK(chosen(machineWith({"", "it is busy"})) == "cuda:0, unasked: device: cuda:0, Toy 0" + kAdvice);
  CHECK(chosen(machineWith({"it is busy", ""})) ==
        "cuda:1, unasked: device: cuda:1, Toy 1; " + busy + kAdvice);
  CHECK(chosen(machineWith({"it is busy", "out of memory"})) == "cpu: device: cpu; " + busy + "; " + full);
  CHECK(chosen(machineWith({})) == "cpu: device: cpu: nobody knows");
  CHECK(chosen(machineWith({}, /*hasDriver=*/false)) == "cpu: ");  // one that cannot be used is no news
}

TEST_CASE("if a GPU that was not requested fails, the error says how to use the CPU") {
  const auto unasked = chooseUnasked(machineWith({""}));
  const auto failing = [](const RunDevices& choice, const std::exception_ptr& cause) {
    return thrown<Error>(
        [&] { runOn(choice, [&]() -> int { throw TrainingError("worker 0 failed", 0, cause); }); });
  };
  const auto full = std::make_exception_ptr(OutOfMemory("all is full"));
  for (const auto& cause : {full, std::make_exception_ptr(DeviceFailure("it is lost")),
                            std::make_exception_ptr(DeviceUnavailable("it is busy"))})
    CHECK(failing(unasked, cause) == "worker 0 failed" + kAdvice);
  for (const auto& cause :
       {std::make_exception_ptr(NonFiniteScore("the score is nan")), std::exception_ptr()})
    CHECK(failing(unasked, cause) == "worker 0 failed");
  CHECK(failing({.devices = {Device::cuda(0)}}, full) == "worker 0 failed");
  CHECK(thrown<Error>([&] { runOn(unasked, []() -> int { throw OutOfMemory("all is full"); }); }) ==
        "all is full" + kAdvice);
  CHECK(runOn(unasked, [] { return 7; }) == 7);
}

TEST_CASE("a requested GPU that cannot be used is named") {
  CHECK_NOTHROW(requireUsable(RunDevices{}));
  const auto text = thrown<DeviceUnavailable>([] { requireUsable({.devices = {Device::cuda(99)}}); });
  CHECK_MESSAGE(text.starts_with("cuda:99 cannot be used: "), text);
  CHECK_NOTHROW(requireUsable({.devices = {Device::cuda(99)}, .unasked = true}));  // has been tried
}

TEST_CASE("invalid lists and devices that are not available are refused by name") {
  const std::string none = "device: expected cpu, cuda or cuda:N, got ";
  for (const auto& [list, problem] :
       {std::pair<std::string, std::string>{"gpu", none + "\"gpu\""},
        {"cuda:0,", none + "\"\""},
        {"", none + "\"\""},  // an unset variable
        {"cuda:1,cuda:1", "device: cuda:1 is named twice in \"cuda:1,cuda:1\""},
        {"cuda:0,cpu", "the CPU and GPUs cannot train together yet; name GPUs alone, or cpu alone"}})
    CHECK_REFUSED(devicesNamed("training.devices", list),
                  fmt::format("training.devices {}: {}", list, problem));
  const auto missing = thrown<DeviceUnavailable>([] { devicesNamed("training.devices", "cuda:99"); });
  CHECK(missing.starts_with("training.devices cuda:99: cuda:99 is not there; there "));
  if (availableDevices().size() == 1)
    CHECK(missing == "training.devices cuda:99: cuda:99 is not there; there is cpu alone, as " + whyNoCuda());
}
