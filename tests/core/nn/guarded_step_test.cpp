#include "muster/core/nn/step/guarded_step.h"

#include "tests/support/one_block_model.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using test::kNan;

/// Its forward pass moves a statistic; a step gives what the test sets, and counts updates.
class Scripted final : public test::OneBlockModel {
 public:
  Scripted() {
    auto table = std::make_shared<SegmentTable>();
    table->add({.name = "mean", .shape = {1}});
    blocks_.push_back(StateBlock::zeros("statistics", BlockKind::Statistics, MergeRule::Average, table));
  }
  StepTicket gradient(const Batch&) override {
    statistic() = moved;
    blocks_[1].values.data<float>()[0] = slope;
    if (fails) throw std::runtime_error("broken kernel");
    return StepTicket({.score = score, .weight = 2});
  }
  double update(const BatchStamp&) override {
    ++updates;
    if (refuses) throw NonFiniteScore("no update");
    return 0.25;
  }
  float& statistic() { return blocks_[2].values.data<float>()[0]; }

  double score = 1;
  float slope = 1, moved = 5;
  bool fails = false, refuses = false;
  int updates = 0;
};

Batch twoRows(float value) {
  Batch batch;
  batch.features.push_back({"features", Tensor::zeros({2, 1})});
  batch.features.front().value.data<float>()[1] = value;
  return batch;
}

TEST_CASE("a step gives the score with the penalty, and its statistics stay") {
  Scripted model;
  detail::GuardedStep step;
  const StepScore score = step.run(model, twoRows(0), true);
  CHECK(score.score == 1.25);
  CHECK(score.weight == 2);
  CHECK(model.updates == 1);
  CHECK(model.statistic() == 5);
}

TEST_CASE("a step that fails restores the statistics, and updates nothing unless the update fails") {
  struct Row {
    const char* what;
    void (*spoil)(Scripted&);
    bool checksGradient;
    int updates;
  };
  for (const Row& row : {Row{"loss", [](Scripted& m) { m.score = kNan; }, false, 0},
                         Row{"gradient", [](Scripted& m) { m.slope = kNan; }, true, 0},
                         Row{"statistics", [](Scripted& m) { m.moved = kNan; }, false, 0},
                         Row{"both", [](Scripted& m) { m.moved = m.slope = kNan; }, false, 0},
                         Row{"update", [](Scripted& m) { m.refuses = true; }, false, 1}}) {
    CAPTURE(row.what);
    Scripted model;
    model.statistic() = 3;
    row.spoil(model);
    detail::GuardedStep step;
    CHECK_THROWS_AS(step.run(model, twoRows(0), row.checksGradient), NonFiniteScore);
    CHECK(model.statistic() == 3);
    CHECK(model.updates == row.updates);
  }
}

TEST_CASE(
    "an error names the batch's value that is not finite; without one, the gradient before statistics") {
  Scripted model;
  model.moved = model.slope = kNan;
  detail::GuardedStep step;
  const auto told = [&](const Batch& batch) {
    return test::thrown<NonFiniteScore>([&] { step.run(model, batch, false); });
  };
  CHECK_CONTAINS(told(twoRows(kNan)), "the features hold nan: example 1 of the batch");
  CHECK_CONTAINS(told(twoRows(0)), "gradient");
  model.slope = 1;
  CHECK_CONTAINS(told(twoRows(0)), "statistics");
}

TEST_CASE("another exception of the model passes through, and the statistics are restored") {
  Scripted model;
  model.statistic() = 3;
  model.fails = true;
  detail::GuardedStep step;
  CHECK_THROWS_WITH_AS(step.run(model, twoRows(0), false), "broken kernel", std::runtime_error);
  CHECK(model.statistic() == 3);
}

}  // namespace
}  // namespace muster
