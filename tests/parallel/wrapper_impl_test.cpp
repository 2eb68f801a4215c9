#include "muster/parallel/wrapper_impl.h"

#include "muster/core/eval/evaluation.h"
#include "tests/support/labelled_toy.h"
#include "tests/support/on_merge.h"
#include "tests/support/thrown.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

const std::string kListeners = ": only listeners may call it, on the thread that called fit()";

void checkRefused(ParallelWrapper::Impl& wrapper) {
  ToyModel copy;
  CHECK_REFUSED(wrapper.trainingState(), "trainingState" + kListeners);
  CHECK_REFUSED(wrapper.copyReplica(0, copy), "copyReplica" + kListeners);
}

}  // namespace

TEST_CASE("what is for listeners is refused outside of fit(), and on other threads") {
  ToyModel model, copy;
  auto data = ToyIterator::ofValues({2, 6});
  ParallelWrapper::Impl* running = nullptr;
  int merges = 0;
  const auto listener = onMerge([&](const MergeEvent& event) {
    ++merges;
    CHECK(&event.trainer == running);
    CHECK(running->running());
    CHECK(running->trainingData() == &data);
    CHECK(&running->model() == &model);
    CHECK_NOTHROW(running->trainingState());
    running->copyReplica(1, copy);
    CHECK(copy.parameters() == std::vector<float>{2});  // the mean of 1 and 3
    std::jthread([&] { checkRefused(*running); });
    CHECK_REFUSED(running->fit(data, 1, {}),
                  "fit: it is already running; a listener or another thread called it again");
  });
  ParallelWrapper::Impl wrapper(model, {.workers = 2, .pinThreads = false, .listeners = {listener}});
  running = &wrapper;
  for (const std::int64_t epochs : {0, 1}) {
    wrapper.fit(data, epochs, {});
    CHECK(merges == epochs);
    CHECK(wrapper.epochsUntil(5) == 5 - epochs);
    CHECK_FALSE(wrapper.running());
    CHECK(wrapper.trainingData() == nullptr);
    checkRefused(wrapper);
  }
}

TEST_CASE("an evaluation makes the replicas if there are none, and counts as the model alone") {
  ToyModel model({.size = 3});
  model.setParameters({0.1f, -0.2f, 0.3f});
  int made = 0;
  ParallelOptions options{.workers = 2, .pinThreads = false};
  options.internals =
      std::make_shared<detail::Internals>(detail::Internals{.replicaMade = [&](const Model&) { ++made; }});
  ParallelWrapper::Impl wrapper(model, options);
  LabelledToy data(randomBatches(3, 7, 5, 3, true), 3, 3), none({}, 3, 3);
  CHECK_REFUSED(wrapper.evaluateTask(none, {}), "evaluate: the data set has no batches");
  CHECK(made == 0);
  const Evaluation alone = evaluate(model, data);
  for (int again = 0; again < 2; ++again) {
    CHECK(wrapper.evaluateTask(data, {}).classification() == alone);
    CHECK(made == 2);
  }
}
