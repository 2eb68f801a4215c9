#include "muster/core/comparison/run_recorder.h"

#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

#include "muster/core/comparison/detail/others_load.h"
#include "muster/core/eval/guess_remark.h"
#include "muster/core/eval/non_finite_prediction.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/list_iterator.h"
#include "tests/support/skip.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using namespace std::chrono_literals;

/// The evaluation of ten examples, of which `right` were predicted. Its loss is 1 / right.
AnyEvaluation resultOf(int right) {
  AnyEvaluation result(Task::Classification, 2);
  auto predictions = Tensor::zeros({10, 2}), labels = Tensor::zeros({10}, DType::Int64);
  for (int i = 0; i < 20; ++i) predictions.data<float>()[i] = i % 2 == 0 ? 0.75F : 0.25F;
  for (int i = right; i < 10; ++i) labels.data<std::int64_t>()[i] = 1;
  result.add(predictions, labels, {}, StepScore{.score = 1.0 / right, .weight = 10});
  return result;
}

/// A trainer whose times and tests the test case gives.
struct GivenTrainer final : Trainer {
  Model& model() override { return model_; }
  int workers() const override { return static_cast<int>(times.size()); }
  void stopFit() override {}
  std::vector<WorkerTimes> workerTimes() const override { return times; }
  AnyEvaluation evaluateTask(DataSetIterator&, std::optional<Task>) override { return test(); }

  EchoModel model_;
  std::vector<WorkerTimes> times;
  std::function<AnyEvaluation()> test;
};

/// What `finish` tests.
struct Trained {
  std::function<AnyEvaluation()> test;
  AnyEvaluation evaluateTask(DataSetIterator&) const { return test(); }
};

Trained predicting(int right) {
  return {[=] { return resultOf(right); }};
}

/// A recorder with a simulated clock; each test of the model takes 100 s and gives a higher accuracy.
struct Recording {
  explicit Recording(std::size_t workers) {
    trainer.times.resize(workers);
    trainer.test = [this] {
      time += 100s;
      return resultOf(++tests);
    };
    recorder = std::make_unique<RunRecorder>(
        data, RunRecorderOptions{.arm = "averaging",
                                 .settings = {"every=10"},
                                 .seed = 7,
                                 .testEvery = 100,
                                 .threadsPerWorker = 3,
                                 .progress = [this](std::int64_t n) { seen = n; },
                                 .now = [this] { return time; }});
    recorder->onFitStart({trainer});
    recorder->onEpochStart({trainer});
  }

  /// Simulates a second in which `examples` are trained and merged.
  void merge(std::int64_t examples, double score, double divergence = 0, std::int64_t bytes = 8,
             MergeKind kind = MergeKind::State) {
    time += 1s;
    recorder->onMerge({.trainer = trainer,
                       .kind = kind,
                       .iteration = ++iteration,
                       .examples = examples,
                       .score = score,
                       .bytes = bytes,
                       .divergence = divergence});
  }
  RunRecord finish(int right) {
    auto trained = predicting(right);
    return recorder->finish(trained);
  }

  ListIterator data{std::vector<Batch>()};
  GivenTrainer trainer;
  std::chrono::steady_clock::time_point time{};
  std::int64_t iteration = 0, seen = 0;
  int tests = 0;
  std::unique_ptr<RunRecorder> recorder;
};

TEST_CASE("others keep at most all cores busy, and of a short time nothing is said") {
  using muster::detail::OthersLoad;
  CHECK(textOf(OthersLoad::coresOf(3, 1, 2, 2), OthersLoad::coresOf(1, 2, 2, 2)) == "1 0");
  CHECK(OthersLoad::coresOf(9.5, 0.5, 2, 2) == 2);  // 4.5 by the counts, on two cores
  CHECK(textOf(OthersLoad::coresOf(0.1, 0, 0.02, 2), OthersLoad::coresOf(0.4, 0, 0.4, 2)) == "0 0");
  const long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  CHECK_FALSE(OthersLoad::crowds(0.1, cores));  // a quiet machine
  CHECK(OthersLoad::crowds(0.2, cores));
  CHECK_FALSE(OthersLoad::crowds(1, cores - 1));
  CHECK(OthersLoad::crowds(1.5, cores - 1));
}

TEST_CASE("what another process computes is counted in seconds of cores") {
  std::string name;
  double ticks = 0;
  if (!(std::ifstream("/proc/stat") >> name >> ticks) || ticks == 0)
    return skip("the system does not count the time of its cores");
  const muster::detail::OthersLoad load;
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    while (std::clock() < CLOCKS_PER_SEC * 7 / 10) continue;
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  const double cores = load.cores();
  CHECK(cores * std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > 0.6);
}

TEST_CASE("the recorder tests at each multiple of the samples, and does not count a test's time") {
  Recording r(2);
  r.merge(60, 4.0, 0.1);
  CHECK(r.tests == 0);
  r.merge(60, 2.0, 0.3);  // 120: past 100
  r.merge(60, 1.0, 0.5);
  r.merge(250, 0.5, 0.2);  // 430: past 200, 300 and 400, one test
  CHECK(r.seen == 430);
  const auto record = r.finish(3);
  CHECK(record.settings == std::vector<std::string>{"every=10"});
  CHECK(textOf(record.arm, record.seed, record.metric, record.workers, record.threads, record.summed) ==
        "averaging 7 accuracy 2 6 true");
  const auto& points = record.points;
  REQUIRE(points.size() == 2);
  CHECK(points[0] == RunPoint{.samples = 120,
                              .iterations = 2,
                              .rounds = 2,
                              .seconds = 2,
                              .bytes = 16,
                              .trainingLoss = 3,
                              .loss = 1,
                              .score = 0.1,
                              .distance = 0.2});
  // The test at the end replaces that of the same samples.
  CHECK(textOf(points[1].samples, points[1].seconds, points[1].bytes, points[1].score) == "430 4 32 0.3");
  CHECK(digitsOf(6, points[1].trainingLoss, points[1].distance, points[1].loss) ==
        digitsOf(6, (60 * 1.0 + 250 * 0.5) / 310, 0.35, 1 / 3.));
  CHECK(record.guess.starts_with(
      "the 10 held-out examples are predicted no better than by the commonest class"));
  const auto& curves = r.recorder->curves();
  using Values = std::vector<std::pair<std::int64_t, double>>;
  CHECK(curves.at("at/samples") == Values{{1, 60}, {2, 120}, {3, 180}, {4, 430}});
  CHECK(curves.at("score/merged") == Values{{1, 4}, {2, 2}, {3, 1}, {4, 0.5}});
  CHECK(curves.at("test/accuracy") == Values{{2, 0.1}, {4, 0.2}, {4, 0.3}});
}

TEST_CASE("the end of a training is tested, in place of a test at the same sample") {
  Recording r(2);
  r.merge(110, 1);
  r.merge(40, 0.5);
  for (const int right : {7, 8}) {  // as if early stopping had gone back to better weights
    const auto record = r.finish(right);
    REQUIRE(record.points.size() == 2);
    CHECK(textOf(record.end().samples, record.end().score, record.end().trainingLoss) ==
          fmt::format("150 0.{} 0.5", right));
  }
}

TEST_CASE("whether a model is better than one answer is judged by the weights of the training's classes") {
  ListIterator data{std::vector<Batch>()};
  const std::vector<float> weights{10, 1};
  RunRecorder recorder(data, {.arm = "weighted", .classWeights = weights});
  auto trained = predicting(3);
  const auto guess = recorder.finish(trained).guess;
  CHECK(guess == guessRemark(resultOf(3), weights));
  CHECK(guess != guessRemark(resultOf(3)));
}

TEST_CASE("scores and predictions that are no numbers are a failure of the run, other errors are thrown") {
  const auto recordOf = [](std::function<AnyEvaluation()> test) {
    Recording r(2);
    r.merge(50, 1);
    Trained trained{std::move(test)};
    return r.recorder->finish(trained);
  };
  const auto evaluated = [](const Tensor& values) {
    AnyEvaluation none(Task::Regression, 1);  // without a loss
    none.add(values, values);
    return none;
  };
  const auto unknown = recordOf([&] { return evaluated(Tensor::of({1, 2}, {2, 1})); });
  CHECK(unknown.failed());
  CHECK(unknown.failure == "the r2 or the loss of the merged model is no number");
  CHECK_REFUSED(recordOf([&] {
                  return evaluated(Tensor::of({1, 1}, {2, 1}));
                }),
                "all numbers to predict of the test data are equal, so R2 is undefined and compares nothing");
  const auto cause = std::make_exception_ptr(NonFinitePrediction("a prediction is NaN"));
  CHECK(recordOf([&]() -> AnyEvaluation { throw TrainingError("worker 1", 1, cause); }).failure ==
        "a test of the merged model: a prediction is NaN");
  CHECK_REFUSED(recordOf([]() -> AnyEvaluation { throw InvalidArgument("3 classes, and 4 labels"); }),
                "3 classes, and 4 labels");

  Recording r(2);
  r.merge(100, 1);
  const auto nan = std::make_exception_ptr(NonFiniteScore("the score is nan"));
  const auto failed = r.recorder->failed(std::make_exception_ptr(TrainingError("worker 1", 1, nan)));
  CHECK(textOf(failed.failure, failed.points.size()) == "the score is nan 1");
  const auto other = std::make_exception_ptr(FileError("data.csv", "is gone"));
  CHECK_THROWS_AS(r.recorder->failed(other), FileError);
}

TEST_CASE("a last merge without samples is tested in place of the one before") {
  Recording r(2);
  r.merge(100, 3, 0.5);
  r.merge(0, 0);
  const auto record = r.finish(2);
  REQUIRE(record.points.size() == 1);
  const auto& end = record.end();
  CHECK(textOf(end.score, end.rounds, end.seconds, end.trainingLoss, end.distance) == "0.2 2 2 3 0.5");
}

TEST_CASE("time between epochs is not counted") {
  Recording r(2);
  r.merge(50, 1);
  r.time += 5s;
  r.recorder->onEpochStart({r.trainer});
  r.merge(50, 1);
  CHECK(r.finish(1).end().seconds == 2);
}

TEST_CASE("one worker sends no bytes") {
  Recording r(1);
  r.merge(100, 1);
  const auto record = r.finish(1);
  CHECK(textOf(record.end().rounds, record.end().bytes) == "0 0");
  CHECK_FALSE(r.recorder->curves().contains("at/bytes"));
}

TEST_CASE("the drift of a resynchronisation is no distance of replicas, nor is one that was not measured") {
  Recording r(2);
  r.merge(30, 1, 0, 116, MergeKind::Updates);
  r.merge(30, 1, 0.5, 100);
  r.merge(40, 1, 0.25, 117, MergeKind::Resynchronisation);
  const auto record = r.finish(1);
  CHECK_FALSE(record.summed);
  const auto& end = record.end();
  CHECK(textOf(end.distance, end.bytes, end.rounds, end.resynchronisations, end.resynchronisationBytes) ==
        "0.5 333 3 1 117");
}

TEST_CASE("computing time is the mean over the workers") {
  Recording r(2);
  r.trainer.times[0].computing = 3s;
  r.trainer.times[1].computing = 4s;
  r.recorder->onFitEnd(r.trainer);
  CHECK(r.finish(1).computeSeconds == 3.5);
}

}  // namespace
}  // namespace muster::test
