#include "muster/parallel/inference/inference_worker.h"

#include "tests/support/thrown.h"
#include "tests/support/toy_model.h"

using namespace muster;
using namespace muster::test;

namespace {

Batch batchOfValue(float value) {
  Batch batch;
  Batch::ensure(batch.features, "x", {1, 1}).data<float>()[0] = value;
  return batch;
}

/// A worker of a toy model whose output is its input plus the parameter, 10.
struct OneWorker {
  explicit OneWorker(const InferenceOptions& options = {}) : queue(options) {
    model.setParameters({10});
    versions.emplace(model);
    worker.emplace(0, Placement{}, options, queue, *versions);
    run([&] { worker->prepare(*versions->model(), options); });
  }
  void run(const std::function<void()>& task) {
    Tasks tasks;
    worker->thread().addTo(tasks, Activity::Kind::Computing, task);
    tasks.start();
    for (const auto& failure : tasks.failures()) CHECK(failure == nullptr);
  }
  /// Answers calls of these values that wait together. @return [call] the output, or the failure.
  std::vector<std::string> answers(const std::vector<float>& values) {
    std::vector<std::string> all(values.size());
    std::vector<std::jthread> callers;
    for (std::size_t i = 0; i < values.size(); ++i) {
      callers.emplace_back([&, i] {
        const Batch batch = batchOfValue(values[i]);
        InferenceCall call{.batch = batch, .examples = 1, .deadline = ParallelInference::kNoDeadline};
        const auto problem = thrown<Error>([&] { queue.answer(call); });
        all[i] = problem.empty()
                     ? fmt::format("{} of version {}", call.output.data<float>()[0], call.modelVersion)
                     : problem;
      });
      while (queue.waiting() != static_cast<std::int64_t>(i) + 1) std::this_thread::yield();
    }
    queue.close();
    run([&] { worker->serve(); });
    callers.clear();
    return all;
  }

  ToyModel model;
  CallQueue queue;
  std::optional<ModelVersions> versions;
  std::optional<InferenceWorker> worker;
};

using Answers = std::vector<std::string>;

}  // namespace

TEST_CASE("calls that wait are computed at once, by the latest version") {
  OneWorker served;
  std::atomic<int> passes{0};
  served.model.control().onOutput = [&](const Batch& batch) {
    ++passes;
    CHECK(batch.examples() == 8);  // padded
  };
  served.model.setParameters({20});
  served.versions->publish(served.model);
  const std::string end = " of version 2";
  CHECK(served.answers({1, 2, 3, 4, 5, 6, 7}) ==
        Answers{"21" + end, "22" + end, "23" + end, "24" + end, "25" + end, "26" + end, "27" + end});
  CHECK(passes == 1);
}

TEST_CASE("a call that fails the joined batch fails alone") {
  OneWorker served;
  served.model.control().onOutput = [](const Batch& batch) {
    for (const float x : Tensor(batch.features.front().value).span<float>())
      if (x == 2) throw Error("two is bad");
  };
  CHECK(served.answers({1, 2, 3}) == Answers{"11 of version 1", "two is bad", "13 of version 1"});
}

TEST_CASE("an example is computed in each size before the first call") {
  ToyModel model;
  std::vector<std::int64_t> sizes;
  model.control().onOutput = [&](const Batch& batch) { sizes.push_back(batch.examples()); };
  compileFor({}, model);
  CHECK(sizes.empty());  // without an example
  compileFor({.batchLimit = 3, .example = batchOfValue(1)}, model);
  CHECK(sizes == std::vector<std::int64_t>{1, 2, 3});
  sizes.clear();
  compileFor({.mode = InferenceMode::Sequential, .example = batchOfValue(1)}, model);
  CHECK(sizes == std::vector<std::int64_t>{1});
}
