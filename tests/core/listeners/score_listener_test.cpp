#include "muster/core/listeners/score_listener.h"

#include "muster/core/listeners/collect_scores_listener.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using ScoreLines = std::vector<std::string>;

struct Scored {
  test::EchoModel model;
  test::FakeTrainer trainer{model};
  ScoreLines lines;
  LineSink sink = [this](std::string_view line) { lines.emplace_back(line); };

  MergeEvent merge(std::int64_t iteration, std::int64_t examples, double score, std::int64_t epoch = 0) {
    return {.trainer = trainer, .epoch = epoch, .iteration = iteration, .examples = examples, .score = score};
  }
};

TEST_CASE_FIXTURE(Scored,
                  "a line when a multiple of N is reached or passed has the mean since the last line") {
  ScoreListener listener(10, sink);
  listener.onEpochStart({trainer});
  listener.onMerge(merge(4, 10, 1));
  listener.onMerge(merge(8, 30, 2));
  CHECK(lines.empty());
  listener.onMerge(merge(12, 40, 4));  // passes 10: (10 * 1 + 30 * 2 + 40 * 4) / 80 = 2.875
  listener.onMerge(merge(16, 8, 5));
  listener.onMerge(merge(20, 8, 6, 1));  // 5.5
  listener.onMerge(merge(45, 8, 7, 1));  // passes 30 and 40 at once: one line
  CHECK(lines == ScoreLines{"iteration 12, epoch 1: score 2.875000", "iteration 20, epoch 2: score 5.500000",
                            "iteration 45, epoch 2: score 7.000000"});
}

TEST_CASE_FIXTURE(Scored, "a model that has trained before continues its iteration count") {
  ScoreListener listener(10, sink);
  listener.onEpochStart({.trainer = trainer, .epoch = 3, .iteration = 95});
  listener.onMerge(merge(96, 1, 1, 3));
  CHECK(lines.empty());
  listener.onMerge(merge(100, 1, 1, 3));
  CHECK(lines.size() == 1);
  CHECK_THROWS_AS(ScoreListener(0), InvalidArgument);
}

TEST_CASE_FIXTURE(Scored, "CollectScoresListener keeps the score of each merge and epoch") {
  CollectScoresListener listener;
  listener.onMerge(merge(3, 128, 0.5));
  listener.onMerge(merge(6, 64, 0.25));
  listener.onEpochEnd({trainer, 0, 6, 0.375, 192});
  using Score = CollectScoresListener::Score;
  CHECK(listener.merges() == std::vector<Score>{{0, 3, 128, 0.5}, {0, 6, 64, 0.25}});
  CHECK(listener.epochs() == std::vector<Score>{{0, 6, 192, 0.375}});
}

}  // namespace
}  // namespace muster
