#include <doctest/doctest.h>

#include <chrono>

#include "examples/compare_convergence/recorder.h"
#include "tests/support/fake_trainer.h"

namespace convergence {
namespace {

using namespace std::chrono_literals;
using doctest::Approx;

/// A recorder with a simulated clock; each test of the model takes 100 s and gives a higher accuracy.
struct Recording {
  explicit Recording(std::size_t workers, std::int64_t samples = 1000, bool apart = true) : trainer(model) {
    trainer.times.resize(workers);
    recorder = std::make_unique<Recorder>(RecorderOptions{.testEvery = 100,
                                                          .samples = samples,
                                                          .apart = apart,
                                                          .test =
                                                              [this](muster::Model&) {
                                                                time += 100s;
                                                                ++tests;
                                                                return TestResult{tests / 10., 1. / tests};
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
                           .testLoss = 1,
                           .testAccuracy = 0.1,
                           .distance = 0.2});
  CHECK(points[1].samples == 430);
  CHECK(points[1].seconds == 4);
  CHECK(points[1].bytes == 32);
  CHECK(points[1].trainingLoss == Approx((60 * 1.0 + 250 * 0.5) / 310));
  CHECK(points[1].distance == Approx(0.35));
  CHECK(points[1].testAccuracy == 0.2);

  const auto& merges = r.recorder->merges();
  REQUIRE(merges.size() == 4);
  CHECK(merges[2].samples == 180);
  CHECK(merges[2].iterations == 3);
  CHECK(merges[2].seconds == 3);
  CHECK(merges[2].loss == 1.0);
  CHECK(merges[2].distance == 0.5);
  CHECK(merges[2].bytes == 8);
}

TEST_CASE("the end of a training is tested once") {
  Recording r(2, 150);
  r.merge(110, 1);
  r.merge(40, 1);
  CHECK(r.tests == 2);
  CHECK(r.recorder->points().back().samples == 150);
  Recording exact(2, 200);
  exact.merge(100, 1);
  exact.merge(100, 1);
  CHECK(exact.tests == 2);
}

TEST_CASE("a last merge without samples is tested in place of the one before") {
  Recording r(2, 100);
  r.merge(100, 3, 0.5);
  r.merge(0, 0);
  REQUIRE(r.recorder->points().size() == 1);
  const auto& end = r.recorder->points().front();
  CHECK(end.testAccuracy == 0.2);  // of the second test
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
  CHECK(r.recorder->merges().empty());
  CHECK(r.recorder->points().front().rounds == 0);
  CHECK(r.recorder->points().front().bytes == 0);
}

TEST_CASE("if the mode keeps replicas equal, the event's divergence is not recorded as a distance") {
  Recording r(2, 1000, false);
  r.merge(100, 1, 0.5);
  CHECK(r.recorder->points().front().distance == 0);
  CHECK(r.recorder->merges().front().distance == 0);
}

TEST_CASE("a resynchronisation is recognised by its kind, and recorded with its drift") {
  Recording r(2, 1000, false);
  r.merge(50, 1, 0, 116, muster::MergeKind::Updates);
  r.merge(50, 1, 0.25, 117, muster::MergeKind::Resynchronisation);
  const auto& merges = r.recorder->merges();
  CHECK_FALSE(merges[0].resynchronisation);
  CHECK(merges[1].resynchronisation);
  CHECK(merges[1].drift == 0.25);
  CHECK(merges[1].distance == 0);
  const auto& point = r.recorder->points().front();
  CHECK(point.bytes == 233);
  CHECK(point.rounds == 2);
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
}  // namespace convergence
