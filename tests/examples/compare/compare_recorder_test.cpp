#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "examples/muster/compare/recorder.h"
#include "muster/core/base/error.h"
#include "tests/support/fake_trainer.h"

namespace comparing {
namespace {

using namespace std::chrono_literals;
using doctest::Approx;

/// The evaluation of ten examples, of which `right` were predicted. Its loss is 1 / right.
muster::AnyEvaluation resultOf(int right) {
  muster::AnyEvaluation result(muster::Task::Classification, 2);
  auto predictions = muster::Tensor::zeros({10, 2}),
       labels = muster::Tensor::zeros({10}, muster::DType::Int64);
  for (int i = 0; i < 10; ++i) {
    predictions.span<float>()[static_cast<std::size_t>(2 * i)] = 0.75F;
    predictions.span<float>()[static_cast<std::size_t>(2 * i + 1)] = 0.25F;
    labels.span<std::int64_t>()[static_cast<std::size_t>(i)] = i < right ? 0 : 1;
  }
  result.add(predictions, labels, {}, muster::StepScore{.score = 1.0 / right, .weight = 10});
  return result;
}

/// A recorder with a simulated clock; each test of the model takes 100 s and gives a higher accuracy.
struct Recording {
  explicit Recording(std::size_t workers) : trainer(model) {
    trainer.times.resize(workers);
    recorder = std::make_unique<Recorder>(RecorderOptions{.testEvery = 100,
                                                          .test =
                                                              [this](muster::Trainer&) {
                                                                time += 100s;
                                                                return resultOf(++tests);
                                                              },
                                                          .progress = [this](std::int64_t n) { seen = n; },
                                                          .now = [this] { return time; }});
    recorder->onEpochStart({trainer});
  }

  /// Simulates a second in which `examples` are trained and merged.
  void merge(std::int64_t examples, double score, double divergence = 0, std::int64_t bytes = 8,
             muster::MergeKind kind = muster::MergeKind::State) {
    time += 1s;
    recorder->onMerge({.trainer = trainer,
                       .kind = kind,
                       .iteration = ++iteration,
                       .examples = examples,
                       .score = score,
                       .bytes = bytes,
                       .divergence = divergence});
  }

  muster::test::EchoModel model;
  muster::test::FakeTrainer trainer;
  std::chrono::steady_clock::time_point time{};
  std::int64_t iteration = 0, seen = 0;
  int tests = 0;
  std::unique_ptr<Recorder> recorder;
};

TEST_CASE("the recorder tests at each multiple of the samples, and does not count a test's time") {
  Recording r(2);
  r.merge(60, 4.0, 0.1);
  CHECK(r.tests == 0);
  r.merge(60, 2.0, 0.3);  // 120: past 100
  r.merge(60, 1.0, 0.5);
  r.merge(250, 0.5, 0.2);  // 430: past 200, 300 and 400, one test
  CHECK(r.seen == 430);
  const auto& points = r.recorder->points();
  REQUIRE(points.size() == 2);
  CHECK(points[0] == Point{.samples = 120,
                           .iterations = 2,
                           .rounds = 2,
                           .seconds = 2,
                           .bytes = 16,
                           .trainingLoss = 3,
                           .loss = 1,
                           .score = 0.1,
                           .distance = 0.2});
  CHECK(points[1].samples == 430);
  CHECK(points[1].seconds == 4);
  CHECK(points[1].bytes == 32);
  CHECK(points[1].trainingLoss == Approx((60 * 1.0 + 250 * 0.5) / 310));
  CHECK(points[1].distance == Approx(0.35));
  CHECK(points[1].score == 0.2);
  CHECK(points[1].loss == 0.5);
  const auto& curves = r.recorder->curves();
  using Values = std::vector<std::pair<std::int64_t, double>>;
  CHECK(curves.at("at/samples") == Values{{1, 60}, {2, 120}, {3, 180}, {4, 430}});
  CHECK(curves.at("score/merged") == Values{{1, 4}, {2, 2}, {3, 1}, {4, 0.5}});
  CHECK(curves.at("test/accuracy") == Values{{2, 0.1}, {4, 0.2}});
}

TEST_CASE("the end of a training is tested, in place of a test at the same sample") {
  Recording r(2);
  r.merge(110, 1);
  r.merge(40, 0.5);
  r.recorder->finish(resultOf(7));
  REQUIRE(r.recorder->points().size() == 2);
  CHECK(r.recorder->points().back().samples == 150);
  CHECK(r.recorder->points().back().score == 0.7);
  CHECK(r.recorder->points().back().trainingLoss == 0.5);
  r.recorder->finish(resultOf(8));  // as if early stopping had gone back to better weights
  REQUIRE(r.recorder->points().size() == 2);
  CHECK(r.recorder->points().back().score == 0.8);
  CHECK(r.recorder->points().back().trainingLoss == 0.5);
}

TEST_CASE("a score that is no number ends the training as a failure") {
  Recording r(2);
  r.merge(50, 1);
  muster::AnyEvaluation none(muster::Task::Regression, 1);
  const auto constant = muster::Tensor::of({1, 1}, {2, 1});
  none.add(constant, constant);  // no variance to explain
  CHECK_THROWS_AS(r.recorder->finish(none), muster::NonFiniteScore);
}

TEST_CASE("a last merge without samples is tested in place of the one before") {
  Recording r(2);
  r.merge(100, 3, 0.5);
  r.merge(0, 0);
  r.recorder->finish(resultOf(2));
  REQUIRE(r.recorder->points().size() == 1);
  const auto& end = r.recorder->points().front();
  CHECK(end.score == 0.2);
  CHECK(end.rounds == 2);
  CHECK(end.seconds == 2);
  CHECK(end.trainingLoss == 3);
  CHECK(end.distance == 0.5);
}

TEST_CASE("time between epochs is not counted") {
  Recording r(2);
  r.merge(50, 1);
  r.time += 5s;
  r.recorder->onEpochStart({r.trainer});
  r.merge(50, 1);
  CHECK(r.recorder->points().front().seconds == 2);
}

TEST_CASE("one worker sends no bytes") {
  Recording r(1);
  r.merge(100, 1);
  CHECK(r.recorder->points().front().rounds == 0);
  CHECK(r.recorder->points().front().bytes == 0);
  CHECK_FALSE(r.recorder->curves().contains("at/bytes"));
}

TEST_CASE("the drift of a resynchronisation is no distance of replicas, nor is one that was not measured") {
  Recording r(2);
  r.merge(30, 1, 0, 116, muster::MergeKind::Updates);
  r.merge(30, 1, 0.5, 100);
  r.merge(40, 1, 0.25, 117, muster::MergeKind::Resynchronisation);
  const auto& point = r.recorder->points().front();
  CHECK(point.distance == 0.5);
  CHECK(point.bytes == 333);
  CHECK(point.rounds == 3);
  CHECK(point.resynchronisations == 1);
  CHECK(point.resynchronisationBytes == 117);
}

TEST_CASE("computing time is the mean over the workers") {
  Recording r(2);
  r.trainer.times[0].computing = 3s;
  r.trainer.times[1].computing = 4s;
  r.recorder->onFitEnd(r.trainer);
  CHECK(r.recorder->computeSeconds() == Approx(3.5));
}

}  // namespace
}  // namespace comparing
