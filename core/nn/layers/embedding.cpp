#include "muster/core/nn/layers/embedding.h"

#include "muster/core/base/error.h"
#include "muster/core/nn/layers/field_descriptions.h"
#include "muster/core/nn/layers/sequence.h"
#include "muster/core/ops/embedding.h"

namespace muster {
namespace {

class EmbeddingProgram final : public ModuleProgram {
 public:
  EmbeddingProgram(const ModuleBinding& binding, Context& context)
      : table_(binding.parameters[0]), context_(context) {
    if (binding.training) gradTable_ = binding.gradients[0];
  }
  BackwardReads backwardReads() const override { return {.input = true, .output = false}; }
  bool recordable() const override { return true; }
  void forward(const Tensor& x, Tensor& y, const StepInfo& info) override {
    embeddingForward(x, table_, sequenceMaskOf(info), y, context_);
  }
  /// Indices have no gradient: `gradX` is not written.
  void backward(const Tensor& x, const Tensor&, Tensor& gradY, Tensor&, const StepInfo& info) override {
    embeddingBackward(x, gradY, sequenceMaskOf(info), gradTable_, context_);
  }

 private:
  Tensor table_, gradTable_;
  Context& context_;
};

}  // namespace

Shape Embedding::outputShape(const Shape& input) const {
  require(input.rank() == 1 && input[0] > 0, "embedding: expected indices [T] of at least one step, got {}",
          input.toString());
  return {input[0], features};
}

std::vector<ParameterSpec> Embedding::parameters(const Shape&) const {
  return {{.name = "weight",
           .shape = {vocabulary, features},
           .init = init,
           .fanIn = vocabulary,
           .fanOut = features}};
}

std::unique_ptr<ModuleProgram> Embedding::compile(const ModuleBinding& binding, Context& context) const {
  return std::make_unique<EmbeddingProgram>(binding, context);
}

void Embedding::fields(Fields& f) {
  f.field("name", name, detail::kNameField);
  f.field("vocabulary", vocabulary, "number of indices: they are from 0 to vocabulary - 1", "[1, )");
  f.field("features", features, "size of the vector of an index", "[1, )");
  f.field("init", init, detail::kInitField);
}

void Embedding::validate() const {
  require(vocabulary >= 1, "embedding: vocabulary must be at least 1, got {}", vocabulary);
  require(features >= 1, "embedding: features must be at least 1, got {}", features);
  init.validate();
}

}  // namespace muster
