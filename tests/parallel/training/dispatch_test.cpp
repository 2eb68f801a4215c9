#include "muster/core/data/joining_iterator.h"
#include "muster/core/data/prefetch.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/eval/same_outputs.h"
#include "muster/core/nn/learning_rate_finder.h"
#include "muster/core/nn/recompute_statistics.h"
#include "tests/support/failure.h"
#include "tests/support/on_merge.h"
#include "tests/support/recording_listener.h"
#include "tests/support/thrown.h"
#include "tests/support/unrewound.h"

using namespace muster;
using namespace muster::test;

namespace {

std::vector<ToyBatch> batchesOfSizes(const std::vector<int>& sizes) {
  std::vector<ToyBatch> batches;
  for (const int size : sizes) batches.push_back({std::vector<float>(static_cast<std::size_t>(size), 1.0f)});
  return batches;
}

}  // namespace

TEST_CASE("batch b of an epoch goes to worker b mod W, with its stamp") {
  for (int workers = 1; workers <= 4; ++workers)
    for (int count = 1; count <= 9; ++count)
      for (const std::int64_t prefetch : {0, 1, 16}) {
        CAPTURE(workers);
        CAPTURE(count);
        CAPTURE(prefetch);
        std::vector<int> sizes;
        for (int b = 0; b < count; ++b) sizes.push_back(1 + b % 3);
        ToyIterator data(batchesOfSizes(sizes));
        ToyModel model;
        auto listener = workerListener();
        auto wrapper = toyWrapper(model, workers, 2).prefetchBuffer(prefetch).listeners({listener}).build();
        wrapper.fit(data, 2);

        const auto steps = model.control().steps();
        REQUIRE(steps.size() == static_cast<std::size_t>(2 * count));
        const int rounds = (count + workers - 1) / workers;
        std::map<std::thread::id, int> workerOf;
        for (const auto& call : listener->calls("iteration")) {
          CHECK(call.worker == call.batch % workers);
          workerOf[call.thread] = call.worker;
        }
        CHECK(workerOf.size() == static_cast<std::size_t>(std::min(workers, count)));
        for (int s = 0; s < 2 * count; ++s) {
          const int epoch = s / count, b = s % count;
          const auto& step = steps[static_cast<std::size_t>(s)];
          CHECK(step.stamp.epoch == epoch);
          CHECK(step.stamp.sequence == b);
          CHECK(step.stamp.iteration == epoch * rounds + b / workers);
          std::int64_t before = 0;
          for (int i = 0; i < b; ++i) before += sizes[static_cast<std::size_t>(i)];
          CHECK(step.stamp.firstExample == before);
          CHECK(workerOf.at(step.thread) == b % workers);
        }
      }
}

TEST_CASE("the iterator is reset with the model's epoch number") {
  auto data = ToyIterator::ofValues({1, 2, 3});
  ToyModel model;
  model.setCounters(40, 7);
  auto wrapper = toyWrapper(model, 2).build();
  wrapper.fit(data, 3);
  // One more reset at the start, because the shapes are inferred from a first batch.
  CHECK(data.resets == std::vector<std::int64_t>{7, 8, 9});
  data.resets.clear();
  wrapper.fit(data, 2);
  CHECK(data.resets == std::vector<std::int64_t>{10, 11});
}

TEST_CASE("between merges no worker waits for a slower one") {
  // Worker 1 stays in its first step until worker 0 reaches its third and last step of the round.
  ToyModel model;
  Gate gate;
  model.control().onStep = [&](const Batch& batch) {
    if (batch.stamp.sequence == 1) gate.pass();
    if (batch.stamp.sequence == 4) gate.open();
  };
  auto data = ToyIterator::ofValues({1, 2, 3, 4, 5, 6});
  auto wrapper = toyWrapper(model, 2, 3).build();
  wrapper.fit(data);
  CHECK(model.control().steps().size() == 6);
}

TEST_CASE("the reader keeps prefetchBuffer batches ready, and one more for each worker") {
  for (const std::int64_t prefetch : {0, 1, 5}) {
    CAPTURE(prefetch);
    ToyModel model;
    Gate gate;
    std::atomic<std::int64_t> asked{0};
    auto data = ToyIterator::ofValues(std::vector<float>(40, 1.0f));
    auto wrapper = toyWrapper(model, 2, 1).prefetchBuffer(prefetch).build();
    data.onNext = [&](std::int64_t, std::int64_t batch) { asked = std::max(asked.load(), batch + 1); };
    model.control().onStep = [&](const Batch& batch) {
      if (batch.stamp.sequence == 0) gate.pass();
    };
    std::jthread training([&] { wrapper.fit(data); });
    gate.awaitVisitor();
    // Worker 0 holds batch 0; worker 1 takes batch 1, returns it and waits at the merge.
    const auto ahead = prefetch + 2 + 1;
    while (asked < ahead) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(asked == ahead);
    gate.open();
    training.join();
    CHECK(model.control().steps().size() == 40);
  }
}

TEST_CASE("an epoch without a batch is an error at once") {
  ToyIterator data({});
  ToyModel model;
  for (const std::int64_t prefetch : {0, 2}) {
    auto wrapper = toyWrapper(model, 3).prefetchBuffer(prefetch).build();
    CHECK_THROWS_WITH_AS(wrapper.fit(data, 200), doctest::Contains("no batches in epoch 1"), Error);
  }
  CHECK(model.epoch() == 0);
  CHECK(model.iteration() == 0);
}

TEST_CASE("a stream that reset() does not rewind loses no batch when the wrapper reads the first one") {
  auto data = ToyIterator::ofValues({1, 2, 3, 4, 5});
  Unrewound stream(data);
  auto control = std::make_shared<ToyControl>();
  ToyModel model({}, control);
  std::mutex mutex;
  std::vector<float> seen;
  control->onStep = [&](const Batch& batch) {
    const std::scoped_lock lock(mutex);
    seen.push_back(batch.features[0].value.data<float>()[0]);
  };
  toyWrapper(model, 2).build().fit(stream);
  std::ranges::sort(seen);
  CHECK(seen == std::vector<float>{1, 2, 3, 4, 5});
  CHECK(model.iteration() == 3);
}

TEST_CASE("a listener cannot evaluate the training's iterator, with the trainer or with any model") {
  const auto evaluating = [](DataSetIterator& training, Model* other = nullptr) {
    return onMerge([&training, other](const MergeEvent& event) {
      if (other)
        evaluate(*other, training);
      else
        event.trainer.evaluate(training);
    });
  };
  ToyModel model;
  auto data = ToyIterator::ofValues({1, 2, 3, 4});
  const std::string refused =
      "evaluate: the training reads this iterator and would miss batches; pass another one";
  auto wrapper = toyWrapper(model, 2).listeners({evaluating(data)}).build();
  CHECK(failureOf(wrapper, data).cause == refused);
  model.setListeners({evaluating(data)});
  CHECK_REFUSED(model.fit(data), refused);

  ToyModel other;
  model.setListeners({evaluating(data, &other)});
  CHECK_REFUSED(model.fit(data), refused);
  auto again = toyWrapper(model, 2).listeners({evaluating(data, &other)}).build();
  CHECK(failureOf(again, data).cause == refused);
}

TEST_CASE("a listener cannot read the iterator that the training's iterator reads, or one that reads it") {
  using Call = std::function<void(Model&, DataSetIterator&)>;
  struct Chain {
    ToyIterator data = ToyIterator::ofValues({1, 2, 3, 4});
    JoiningIterator joined{data, 1};
    PrefetchingIterator ahead{joined, 2};  // its thread reads the others on after the failure
  };
  const auto refusalOf = [](auto training, auto read, const Call& call) {
    Chain chain;
    ToyModel model, other;
    model.setListeners({onMerge([&](const MergeEvent&) { call(other, chain.*read); })});
    return thrown<InvalidArgument>([&] { model.fit(chain.*training); });
  };
  const auto data = &Chain::data;
  const auto joined = &Chain::joined;
  const auto ahead = &Chain::ahead;
  const Call evaluating = [](Model& model, DataSetIterator& read) { evaluate(model, read); };
  const std::string refused =
      "the training reads this iterator, or one that it reads, and would miss batches; pass another one";
  CHECK(refusalOf(ahead, data, evaluating) == "evaluate: " + refused);
  CHECK(refusalOf(data, joined, evaluating) == "evaluate: " + refused);
  CHECK(refusalOf(ahead, data, recomputeStatistics) == "recompute statistics: " + refused);
  CHECK(refusalOf(ahead, data, [](Model& model, DataSetIterator& read) { findLearningRate(model, read); }) ==
        "learning rate finder: " + refused);
  const auto begun = [](const std::string& which) {
    return "fit: another training reads this iterator" + which +
           ", and both would miss batches; pass another one";
  };
  const Call fitting = [](Model& model, DataSetIterator& read) { model.fit(read); };
  const Call inWrapper = [](Model& model, DataSetIterator& read) { toyWrapper(model, 2).build().fit(read); };
  for (const auto& call : {fitting, inWrapper}) {
    CHECK(refusalOf(data, data, call) == begun(""));
    CHECK(refusalOf(ahead, data, call) == begun(", or one that it reads"));
    CHECK(refusalOf(data, joined, call) == begun(", or one that it reads"));
  }
  CHECK(refusalOf(ahead, data, [](Model& model, DataSetIterator& read) {
          sameOutputs(model, model, read);
        }) == "same outputs: " + refused);
}
