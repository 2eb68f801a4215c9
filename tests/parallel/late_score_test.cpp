#include <doctest/doctest.h>

#include <cmath>
#include <utility>

#include "muster/core/base/error.h"
#include "tests/support/failure.h"
#include "tests/support/recording_listener.h"

// A worker whose device goes on with a step: what it enqueues and what it waits for, in which order.

using namespace muster;
using namespace muster::test;

namespace {

/// A model whose steps go on in the background until somebody waits for them. Its score is the batch's
/// number.
class LateModel final : public Model, PendingScores {
 public:
  explicit LateModel(std::shared_ptr<std::string> order = std::make_shared<std::string>(),
                     Context* context = nullptr)
      : Model({}, context), order_(std::move(order)) {
    auto table = std::make_shared<SegmentTable>();
    table->add({.name = "w", .shape = {1}});
    blocks_.push_back(StateBlock::zeros("parameters", BlockKind::Parameters, MergeRule::Average, table));
    blocks_.push_back(StateBlock::zeros("gradients", BlockKind::Gradients, MergeRule::Keep, table));
  }
  std::unique_ptr<Model> replicate(Context& context) const override {
    return std::make_unique<LateModel>(order_, &context);
  }
  StepTicket gradient(const Batch& batch, const GradientReady&) override { return step(batch); }
  std::span<StateBlock> blocks() override { return blocks_; }
  StepTicket step(const Batch& batch) override {
    if (batch.features[0].value.data<float>()[0] == kRefused) throw DeviceFailure("the step was refused");
    scores_.push_back(batch.features[0].value.data<float>()[0]);
    *order_ += fmt::format("step{} ", scores_.size());
    return {*this, scores_.size()};
  }
  bool ready(std::uint64_t) override { return false; }
  StepScore wait(std::uint64_t step) override {
    *order_ += fmt::format("wait{} ", step);
    return {.score = scores_[step - 1], .weight = 1};
  }
  static constexpr float kRefused = -1;
  std::string takeOrder() { return std::exchange(*order_, {}); }

 private:
  std::shared_ptr<std::string> order_;  // of the one worker's
  std::vector<StateBlock> blocks_;
  std::vector<double> scores_;
};

}  // namespace

TEST_CASE("a worker reads a score while the next step runs, and all of them before it merges") {
  LateModel model;
  auto data = ToyIterator::ofValues({1, 2, 3, 4, 5});
  auto wrapper = toyWrapper(model, 1, 3).build();
  wrapper.fit(data);
  CHECK(model.takeOrder() == "step1 step2 wait1 step3 wait2 wait3 step4 step5 wait4 wait5 ");
  CHECK(model.score() == 4.5);

  auto listened =
      toyWrapper(model, 1, 3).listeners({std::make_shared<RecordingListener>(ListenerScope::Worker)}).build();
  listened.fit(data);
  CHECK(model.takeOrder() == "step1 wait1 step2 wait2 step3 wait3 step4 wait4 step5 wait5 ");
}

TEST_CASE("a late score that is not finite is told with its own batch, and is merged nowhere") {
  LateModel model;
  auto data = ToyIterator::ofValues({1, std::nanf(""), 3, 4, 5, 6});
  auto wrapper = toyWrapper(model, 1, 4).build();
  const auto failure = failureOf(wrapper, data);
  CHECK(contains(failure.text, "batch 2 of epoch 1"));
  CHECK(model.takeOrder() == "step1 step2 wait1 step3 wait2 ");

  // So it is where the step is the round's last.
  auto last = ToyIterator::ofValues({1, std::nanf("")});
  CHECK(contains(failureOf(wrapper, last).text, "batch 2 of epoch 1"));
  CHECK(model.takeOrder() == "step4 step5 wait4 wait5 ");
}

TEST_CASE("of a bad score and a step behind it that fails the score is told") {
  LateModel model;
  auto wrapper = toyWrapper(model, 1, 4).build();
  auto both = ToyIterator::ofValues({1, std::nanf(""), LateModel::kRefused, 4});
  CHECK(contains(failureOf(wrapper, both).text, "batch 2 of epoch 1"));
  CHECK(model.takeOrder() == "step1 step2 wait1 wait2 ");
  auto one = ToyIterator::ofValues({1, 2, LateModel::kRefused, 4});
  CHECK(contains(failureOf(wrapper, one).text, "batch 3 of epoch 1"));
  CHECK(model.takeOrder() == "step3 step4 wait3 wait4 ");
}
