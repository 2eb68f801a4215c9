#include "muster/core/base/log.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/core/nn/batches.h"
#include "tests/support/log_lines.h"
#include "tests/support/test.h"

namespace muster {
namespace {

bool deviceFails = false;

class CopyProgram final : public ModuleProgram {
 public:
  explicit CopyProgram(Context& context) : context_(context) {}
  void forward(const Tensor& x, Tensor& y, const StepInfo&) override {
    if (deviceFails) throw DeviceFailure("an allocation while recording");
    copy(x, y, context_);
  }
  void backward(const Tensor&, const Tensor&, Tensor& gradY, Tensor& gradX, const StepInfo&) override {
    if (gradX.defined()) copy(gradY, gradX, context_);
  }

 private:
  Context& context_;
};

/// The identity, which warns when it is planned.
struct Slow {
  static constexpr std::string_view kType = "test-slow";
  std::string name = {};
  Shape outputShape(const Shape& input) const { return input; }
  std::vector<ParameterSpec> parameters(const Shape&) const { return {}; }
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding&, Context& context) const {
    logWarning("planned with a slow algorithm");
    return std::make_unique<CopyProgram>(context);
  }
  void fields(Fields& f) { f.field("name", name); }
  void validate() const {}
};

MultiLayerConfiguration withSlowLayer() {
  return {.seed = 3,
          .inputShape = {8},
          .layers = {Dense{.units = 4}, Slow{.name = "slow"}, Output{.classes = 3}}};
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
