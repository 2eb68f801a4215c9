#include "muster/core/device/device.h"

#include "muster/core/device/context.h"
#include "muster/core/tensor/tensor.h"
#include "tests/support/skip.h"
#include "tests/support/test.h"

namespace muster {
namespace {

std::string refusal(std::string_view list) {
  return test::thrown<InvalidArgument>([&] { Device::parseList(list); });
}

TEST_CASE("a list of devices is read in its order") {
  CHECK(Device::parseList("cpu") == std::vector{Device::cpu()});
  CHECK(Device::parseList("cuda") == std::vector{Device::cuda(0)});
  CHECK(Device::parseList("cuda:1") == std::vector{Device::cuda(1)});
  CHECK(Device::parseList("cuda:1,cuda:0") == std::vector{Device::cuda(1), Device::cuda(0)});
  CHECK(Device::parseList("cpu,cuda:12") == std::vector{Device::cpu(), Device::cuda(12)});
}

TEST_CASE("an invalid list of devices is refused by name") {
  CHECK(refusal("") == "device: expected cpu, cuda or cuda:N, got \"\"");
  CHECK(refusal("cuda:0,") == "device: expected cpu, cuda or cuda:N, got \"\"");
  CHECK(refusal(",cpu") == "device: expected cpu, cuda or cuda:N, got \"\"");
  CHECK(refusal("cuda:0, cuda:1") == "device: expected cpu, cuda or cuda:N, got \" cuda:1\"");
  CHECK(refusal("cuda:-1") == "device: expected cpu, cuda or cuda:N, got \"cuda:-1\"");
  CHECK(refusal("gpu") == "device: expected cpu, cuda or cuda:N, got \"gpu\"");
  CHECK(refusal("cuda,cuda:0") == "device: cuda:0 is named twice in \"cuda,cuda:0\"");
}

TEST_CASE("the CPU comes first, then GPUs; without GPUs a reason is given") {
  const auto devices = availableDevices();
  REQUIRE(!devices.empty());
  CHECK(devices[0].isCpu());
  for (std::size_t i = 1; i < devices.size(); ++i) CHECK(devices[i] == Device::cuda(static_cast<int>(i) - 1));
  CHECK(whyNoCuda().empty() == (devices.size() > 1));
  CHECK(defaultDevice() == devices[devices.size() > 1 ? 1 : 0]);
  if (!cudaBuilt()) {
    CHECK(whyNoCuda().starts_with("this build has no CUDA ("));
    CHECK_FALSE(whyNoCuda().ends_with("()"));  // and says why
  }
  CHECK(propertiesOf(Device::cpu()).name == "cpu");
  CHECK(freeMemoryOf(Device::cpu()) == 0);
}

TEST_CASE("using a GPU that does not exist throws DeviceUnavailable") {
  const Device absent = Device::cuda(static_cast<int>(availableDevices().size()) - 1);
  const auto sentence = [&](auto use) { return test::thrown<DeviceUnavailable>(use); };
  for (const auto& text :
       {sentence([&] { Context context(absent); }), sentence([&] { propertiesOf(absent); }),
        sentence([&] { freeMemoryOf(absent); }), sentence([&] { Buffer buffer(16, absent); }),
        sentence([&] { Tensor::zeros({4}, DType::Float32, absent); }),
        sentence([&] { copyTo(Tensor::zeros({4}), absent); })})
    CHECK_CONTAINS(text, absent.toString());
}

TEST_CASE("a GPU has a name, memory and multiprocessors") {
  if (!whyNoCuda().empty()) return test::skip(whyNoCuda());
  const auto gpu = propertiesOf(Device::cuda());
  CHECK(!gpu.name.empty());
  CHECK(gpu.memoryBytes > 0);
  CHECK(gpu.multiprocessors > 0);
  CHECK(gpu.tensorFloat32 == (gpu.major >= 8));
  CHECK(freeMemoryOf(Device::cuda()) > 0);
  CHECK(freeMemoryOf(Device::cuda()) <= gpu.memoryBytes);
}

}  // namespace
}  // namespace muster
