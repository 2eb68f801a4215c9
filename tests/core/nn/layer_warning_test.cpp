#include "muster/core/base/log.h"
#include "tests/core/nn/test.h"
#include "tests/core/nn/user_layer.h"
#include "tests/support/log_lines.h"

namespace muster {
namespace {

bool deviceFails = false;

struct SlowProgram final : test::CopyProgram {
  using CopyProgram::CopyProgram;
  void forward(const Tensor& x, Tensor& y, const StepInfo& info) override {
    if (deviceFails) throw DeviceFailure("an allocation while recording");
    CopyProgram::forward(x, y, info);
  }
};

/// The identity, which warns when it is planned.
struct Slow : test::UserLayer<SlowProgram> {
  static constexpr std::string_view kType = "test-slow";
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding& binding, Context& context) const {
    logWarning("planned with a slow algorithm");
    return UserLayer::compile(binding, context);
  }
};

MultiLayerConfiguration withSlowLayer() {
  return {.seed = 3, .inputShape = {8}, .layers = {Dense{.units = 4}, Slow{{"slow"}}, Output{.classes = 3}}};
}

TEST_CASE("a warning of a layer's plan begins with the layer's name") {
  const test::LogLines lines;
  MultiLayerNetwork model(withSlowLayer());
  model.init();
  model.step(test::classBatch({8}, 5, 3, 7));
  CHECK(lines.all() == std::vector<std::string>{"warning: slow: planned with a slow algorithm"});
}

TEST_CASE("the failure of a device names the layer") {
  MultiLayerNetwork model(withSlowLayer());
  model.init();
  const Batch batch = test::classBatch({8}, 5, 3, 7);
  model.step(batch);
  deviceFails = true;
  CHECK(test::thrown<DeviceFailure>([&] { model.step(batch); }) ==
        "layer slow: an allocation while recording");
  deviceFails = false;
  model.step(batch);
}

}  // namespace
}  // namespace muster
