#pragma once

#include "tests/support/one_block_model.h"

namespace muster::test {

/// Its parameters can move to other memory, which a model must not do: once, or each time that they are asked
/// for.
struct MovingModel final : OneBlockModel {
  using OneBlockModel::OneBlockModel;
  std::unique_ptr<Model> replicate(Context& context) const override {
    return std::make_unique<MovingModel>(&context);
  }
  std::span<StateBlock> blocks() override {
    if (always) move();
    return OneBlockModel::blocks();
  }
  void move() { blocks_.front().values = cloneTensor(blocks_.front().values); }
  bool always = false;
};

}  // namespace muster::test
