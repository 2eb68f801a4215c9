#include "examples/support/device_option.h"

#include <doctest/doctest.h>

#include "examples/support/command_line.h"
#include "muster/core/base/error.h"
#include "tests/support/devices.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;
using example::DeviceChoice;

namespace {

DeviceChoice choose(std::vector<const char*> arguments) {
  example::DeviceOption option;
  boost::program_options::options_description all;
  option.describe(all);
  arguments.insert(arguments.begin(), "program");
  example::parseCommandLine(static_cast<int>(arguments.size()), arguments.data(), all);
  return option.choose();
}

template <typename Refusal>
std::string refusal(const char* list) {
  return thrown<Refusal>([&] { choose({"--device", list}); });
}

}  // namespace

TEST_CASE("what was asked for, and the CPU, of which nothing is said") {
  CHECK(choose({"--device", "cpu"}).devices == std::vector{Device::cpu()});
  CHECK(choose({"--device", "cpu"}).notice.empty());
}

TEST_CASE("without a GPU nothing is said of one") {
  if (availableDevices().size() > 1) return skip("there is a GPU");
  CHECK(choose({}).devices == std::vector{Device::cpu()});
  const auto notice = choose({}).notice;  // of a driver that is there all the same, if any
  CHECK_MESSAGE((notice.empty() || notice == "device: cpu: " + whyNoCuda()), notice);
}

TEST_CASE("the first GPU is used without being asked for, and is named") {
  MUSTER_NEEDS_DEVICE(OnGpu);
  const auto unasked = choose({});
  CHECK(unasked.devices == std::vector{Device::cuda(0)});
  CHECK(unasked.notice == "device: cuda:0, " + propertiesOf(Device::cuda(0)).name +
                              "; --device cpu computes on the CPU instead");
  const auto asked = choose({"--device", "cuda"});
  CHECK(asked.devices == unasked.devices);
  CHECK(asked.notice.empty());
}

TEST_CASE("lists that are none, and devices that are not there, are refused by name") {
  CHECK(refusal<InvalidArgument>("gpu") == "--device gpu: device: expected cpu, cuda or cuda:N, got \"gpu\"");
  CHECK(refusal<InvalidArgument>("cuda:0,") ==
        "--device cuda:0,: device: expected cpu, cuda or cuda:N, got \"\"");
  CHECK(refusal<InvalidArgument>("cuda:1,cuda:1") ==
        "--device cuda:1,cuda:1: device: cuda:1 is named twice in \"cuda:1,cuda:1\"");
  CHECK(refusal<InvalidArgument>("cuda:0,cpu") ==
        "--device cuda:0,cpu: the CPU and GPUs cannot train together yet; name GPUs alone, or cpu alone");
  const auto missing = refusal<DeviceUnavailable>("cuda:99");
  CHECK(missing.starts_with("--device cuda:99: cuda:99 is not there; there "));
  if (availableDevices().size() == 1)
    CHECK(missing == "--device cuda:99: cuda:99 is not there; there is cpu alone, as " + whyNoCuda());
}
