#include "muster/core/nn/layers/dropout.h"

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/field_descriptions.h"
#include "muster/core/ops/dropout.h"

namespace muster {
namespace {

class DropoutProgram final : public ModuleProgram {
 public:
  DropoutProgram(double rate, const std::string& name, Context& context)
      : rate_(rate), stream_("dropout " + name), context_(context) {}
  bool recordable() const override { return true; }
  void forward(const Tensor& x, Tensor& y, const StepInfo& info) override {
    info.training ? apply(x, y, info) : copy(x, y, context_);
  }
  void backward(const Tensor&, const Tensor&, Tensor& gradY, Tensor& gradX, const StepInfo& info) override {
    if (!gradX.defined()) return;
    info.training ? apply(gradY, gradX, info) : copy(gradY, gradX, context_);
  }

 private:
  void apply(const Tensor& from, Tensor& to, const StepInfo& info) {
    const RandomStream random(info.seed, stream_, info.stamp.epoch);
    if (info.position) return dropout(from, to, rate_, random, *info.position, context_);
    dropout(from, to, rate_, random, info.stamp.firstExample, context_);
  }

  double rate_;
  std::string stream_;
  Context& context_;
};

}  // namespace

std::unique_ptr<ModuleProgram> Dropout::compile(const ModuleBinding& binding, Context& context) const {
  return std::make_unique<DropoutProgram>(rate, binding.name, context);
}

void Dropout::fields(Fields& f) {
  f.field("name", name, detail::kNameField);
  f.field("rate", rate, "probability that an element becomes zero in training, from 0 to below 1", "[0, 1)");
}

void Dropout::validate() const {
  require(rate >= 0 && rate < 1, "dropout: rate must be at least 0 and below 1, got {}", rate);
}

}  // namespace muster
