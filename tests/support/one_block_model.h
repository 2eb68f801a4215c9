#pragma once

#include "muster/core/nn/model.h"
#include "tests/support/standard.h"

namespace muster::test {

/// A user's model with one vector of parameters, initially 0, that no step changes. Tests override what they
/// need.
class OneBlockModel : public Model {
 public:
  explicit OneBlockModel(Context* context = nullptr, DType dtype = DType::Float32, std::int64_t size = 1)
      : Model({}, context) {
    auto table = std::make_shared<SegmentTable>();
    table->add({.name = "w", .shape = {size}});
    blocks_.push_back(
        StateBlock::zeros("parameters", BlockKind::Parameters, MergeRule::Average, table, dtype));
    blocks_.push_back(StateBlock::zeros("gradients", BlockKind::Gradients, MergeRule::Keep, table, dtype));
  }
  std::unique_ptr<Model> replicate(Context& context) const override {
    return std::make_unique<OneBlockModel>(&context, blocks_[0].values.dtype(),
                                           blocks_[0].segments->segments[0].shape.elements());
  }
  StepTicket gradient(const Batch& batch) override {
    return StepTicket({.score = 1, .weight = static_cast<double>(batch.examples())});
  }
  std::span<StateBlock> blocks() override { return blocks_; }

 protected:
  std::vector<StateBlock> blocks_;
};

}  // namespace muster::test
