#pragma once

#include "tests/support/one_block_model.h"

namespace muster::test {

/// A model with one parameter whose prediction is its input.
class EchoModel final : public OneBlockModel {
 public:
  using OneBlockModel::OneBlockModel;
  std::unique_ptr<Model> replicate(Context&) const override { return std::make_unique<EchoModel>(); }
  StepTicket gradient(const Batch& batch) override {
    return StepTicket({.score = 0, .weight = static_cast<double>(batch.examples())});
  }
  void output(const Batch& batch, Tensor& out) override { out = batch.features.front().value; }
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
