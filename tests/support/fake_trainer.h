#pragma once

#include "muster/core/nn/model.h"
#include "tests/support/standard.h"

namespace muster::test {

/// A model with one parameter whose prediction is its input.
class EchoModel final : public Model {
 public:
  EchoModel() {
    auto table = std::make_shared<SegmentTable>();
    table->add({.name = "w", .shape = {1}});
    blocks_.push_back(StateBlock::zeros("parameters", BlockKind::Parameters, MergeRule::Average, table));
    blocks_.push_back(StateBlock::zeros("gradients", BlockKind::Gradients, MergeRule::Keep, table));
  }
  std::unique_ptr<Model> replicate(Context&) const override { return std::make_unique<EchoModel>(); }
  StepTicket gradient(const Batch& batch) override {
    return StepTicket({.score = 0, .weight = static_cast<double>(batch.examples())});
  }
  std::span<StateBlock> blocks() override { return blocks_; }
  void output(const Batch& batch, Tensor& out) override { out = batch.features.front().value; }

 private:
  std::vector<StateBlock> blocks_;
};

/// A trainer whose model and times the test sets.
class FakeTrainer final : public Trainer {
 public:
  explicit FakeTrainer(Model& model) : model_(model) {}
  Model& model() override { return model_; }
  int workers() const override { return static_cast<int>(times.size()); }
  void stopFit() override {}
  std::vector<WorkerTimes> workerTimes() const override { return times; }

  TrainingState trainingState() override { return state; }

  std::vector<WorkerTimes> times;
  TrainingState state;

 private:
  Model& model_;
};

}  // namespace muster::test
