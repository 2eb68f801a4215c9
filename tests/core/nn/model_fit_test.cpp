#include "muster/core/data/in_memory.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/fit_remarks.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/core/nn/test.h"
#include "tests/support/failure.h"
#include "tests/support/late_scores.h"
#include "tests/support/log_lines.h"
#include "tests/support/on_merge.h"
#include "tests/support/recording_listener.h"
#include "tests/support/toy_data.h"
#include "tests/support/toy_model.h"

using namespace muster;
using namespace muster::test;

// With SGD and learning rate 0.5, a step moves p halfway to the batch's mean.

TEST_CASE("model.fit() counts iterations and epochs, and stamps its batches") {
  ToyModel model;
  model.setCounters(10, 4);
  ToyIterator data({{{2}}, {{5, 7}}, {{3.5f}}});
  model.fit(data, 2);  // 1, 3.5, 3.5; 2.75, 4.375, 3.9375
  CHECK(model.parameters()[0] == 3.9375f);
  CHECK(model.iteration() == 16);
  CHECK(model.epoch() == 6);
  CHECK(data.resets == std::vector<std::int64_t>{4, 5});
  const auto steps = model.control().steps();
  REQUIRE(steps.size() == 6);
  const BatchStamp& last = steps[5].stamp;
  CHECK(std::tuple(last.epoch, last.sequence, last.iteration, last.firstExample) == std::tuple(5, 2, 15, 3));
}

TEST_CASE("model.fit() calls listeners of both scopes, as a worker that merges after each step") {
  ToyModel model;
  auto data = ToyIterator::ofValues({2, 5});
  auto merged = mergedListener();
  auto perWorker = workerListener();
  model.setListeners({merged, perWorker});
  model.fit(data, 2);
  CHECK(merged->order() == "fitStart epochStart merge merge epochEnd epochStart merge merge epochEnd fitEnd");
  CHECK(perWorker->order() ==
        "fitStart epochStart iteration iteration epochEnd epochStart iteration iteration epochEnd fitEnd");
  // Scores 0.5 * 2^2 and 0.5 * (1 - 5)^2.
  CHECK(merged->calls("merge")[1].score == 8);
  CHECK(merged->calls("merge")[1].iteration == 2);
  CHECK(perWorker->calls("iteration")[1].iteration == 1);
  CHECK(merged->calls("epochEnd")[0].score == 5);
}

TEST_CASE("a model that needs a first batch reports that there is none") {
  MultiLayerNetwork open({.layers = {Output{.classes = 2}}});
  ToyIterator none({});
  CHECK_REFUSED(open.fit(none), "fit: the data set has no batches");
  auto wrapper = ParallelWrapper::Builder(open).workers(2).pinThreads(false).build();
  CHECK_REFUSED(wrapper.fit(none), "fit: the data set has no batches");
  CHECK_REFUSED(open.evaluate(none), "evaluate: the data set has no batches");
  auto data = ToyIterator::ofValues({2});
  CHECK_REFUSED(open.evaluate(data), "evaluate: batch 1: network: call init() first, or give an input shape");
}

TEST_CASE("a batch that the model refuses is named, by fit as by the wrapper") {
  const Batch right = test::classBatch({2}, 4, 3, 1);
  Batch wrong = test::classBatch({2}, 4, 3, 2);
  wrong.labels.front().value.at<std::int64_t>(2) = 7;
  test::ListIterator data({right, right, wrong});
  MultiLayerNetwork model({.inputShape = {2}, .layers = {Output{.classes = 3}}});
  const std::string problem = "batch 3 of epoch 1: loss: the label of row 2 is 7, expected 0 to 2";
  CHECK_REFUSED(model.fit(data), problem);
  auto wrapper = ParallelWrapper::Builder(model).workers(1).pinThreads(false).build();
  CHECK_CONTAINS(test::thrown<TrainingError>([&] { wrapper.fit(data); }), problem);
}

TEST_CASE(
    "a schedule over iterations that does not fit the training, and workers without batches, are told") {
  MultiLayerNetwork model({.updater = Sgd{.learningRate = CosineSchedule{.initial = 0.2, .iterations = 1000}},
                           .inputShape = {2},
                           .layers = {Output{.classes = 2}}});
  CHECK(fitRemarks(model, 10, 100, 1).empty());
  CHECK(fitRemarks(model, 1, 100, 2).empty());  // a program may call fit() for each epoch
  // Half of the cosine: iteration 499 of 1000 has 0.1 (1 + cos(0.499 pi)).
  CHECK(fitRemarks(model, 10, 100, 2) ==
        std::vector<std::string>{
            "the learning rate's schedule (cosine) takes 1000 iterations, and the training ends after 500 "
            "(an epoch's 100 batches are 50 iterations of 2 workers), at a rate of 0.1; a schedule in epochs "
            "does not depend on the number of workers"});
  CHECK(fitRemarks(model, 20, 100, 1) ==
        std::vector<std::string>{
            "the learning rate's schedule (cosine) is 0 after 1000 iterations, and the training goes on to "
            "2000 (100 batches per epoch); a schedule in epochs does not depend on the number of workers"});
  MultiLayerNetwork warmed(
      {.updater = Sgd{.learningRate = WarmUpSchedule{.iterations = 100, .then = ExponentialSchedule{}}},
       .inputShape = {2},
       .layers = {Output{.classes = 2}}});
  CHECK(fitRemarks(warmed, 3, 10, 1).empty());  // it never ends
  MultiLayerNetwork constant({.inputShape = {2}, .layers = {Output{.classes = 2}}});
  CHECK(fitRemarks(constant, 3, 2, 4) ==
        std::vector<std::string>{"an epoch has 2 batches, so 2 of 4 workers train nothing in it; take fewer "
                                 "workers or smaller batches"});

  const LogLines log;
  constant.init();
  InMemoryDataSetIterator data(Tensor::zeros({2, 2}), Tensor::zeros({2}, DType::Int64), 1);
  auto wrapper = ParallelWrapper::Builder(constant).workers(3).pinThreads(false).build();
  wrapper.fit(data);
  CHECK(log.all() == std::vector<std::string>{"warning: fit: an epoch has 2 batches, so 1 of 3 workers train "
                                              "nothing in it; take fewer workers or smaller batches"});
  wrapper.fit(data);
  CHECK(log.all().size() == 1);
  auto cosine = ParallelWrapper::Builder(model).workers(2).pinThreads(false).build();
  CHECK_MESSAGE(contains(cosine.plan(),
                         "the learning rate's schedule (cosine) ends after 1000 iterations (2000 batches)"),
                cosine.plan());
  const auto endless = ParallelWrapper::Builder(warmed).workers(2).pinThreads(false).build().plan();
  CHECK_MESSAGE(!contains(endless, "ends after"), endless);
}

TEST_CASE("an epoch without batches is an error, and does not count") {
  /// Gives its batches in epoch 0 only.
  struct Once final : DataSetIterator {
    bool next(Batch& batch) override { return epoch == 0 && data.next(batch); }
    void reset(std::int64_t now) override { data.reset(epoch = now); }
    ToyIterator data = ToyIterator::ofValues({1, 2});
    std::int64_t epoch = 0;
  };
  for (const int workers : {0, 2}) {
    CAPTURE(workers);
    ToyModel model;
    std::optional<ParallelWrapper> wrapper;
    if (workers > 0) wrapper = ParallelWrapper::Builder(model).workers(workers).pinThreads(false).build();
    const auto fit = [&](DataSetIterator& data, std::int64_t epochs) {
      return thrown<Error>([&] { wrapper ? wrapper->fit(data, epochs) : model.fit(data, epochs); });
    };
    ToyIterator none({});
    CHECK(contains(fit(none, 1), "no batches"));
    CHECK(model.epoch() == 0);
    Once once;
    const auto problem = fit(once, 3);
    CHECK_MESSAGE(contains(problem, "epoch 2"), problem);
    CHECK_MESSAGE(contains(problem, "gave no batches"), problem);
    // A wrapper reads ahead, so the failure may come before the first epoch's last merge.
    CHECK(model.epoch() <= 1);
    if (workers == 0) CHECK(model.epoch() == 1);
    auto data = ToyIterator::ofValues({1, 2});
    CHECK(fit(data, 1).empty());  // it can be used again
  }
}

TEST_CASE(
    "stopFit() or a stop token ends model.fit() after the step in progress, and leaves the epoch "
    "unfinished") {
  ToyModel model;
  auto data = ToyIterator::ofValues({2, 5, 5, 5});
  model.setListeners({stopAt(2)});
  model.fit(data, 3);
  CHECK(model.iteration() == 2);
  std::stop_source stop;
  model.setListeners({onMerge([&](const MergeEvent& event) {
    if (event.iteration == 4) stop.request_stop();
  })});
  model.fit(data, 3, stop.get_token());
  CHECK(model.iteration() == 4);
  model.fit(data, 3, stop.get_token());  // requested before
  CHECK(model.control().steps().size() == 4);
  CHECK(model.epoch() == 0);
  model.fit(data, 1, {});
  CHECK(model.epoch() == 1);
}

TEST_CASE("a score that is not finite is named, and does not change the parameters") {
  ToyModel model;
  auto data = ToyIterator::ofValues({2, kNan});
  const auto text = thrown<NonFiniteScore>([&] { model.fit(data); });
  CHECK(text ==
        "batch 2 of epoch 1: x holds nan: example 0 of the batch (example 1 of the epoch), column 0, counted "
        "from 0");
  CHECK(model.parameters()[0] == 1);

  // Ignore the sign of a NaN, but not that of an infinity.
  for (const auto& [score, word] : {std::pair(std::copysign(kNan, -1.0), "nan"), {-kInfinity, "-inf"}}) {
    model.control().reportedScore = [&](const Batch&, double) { return score; };
    CHECK(thrown<NonFiniteScore>([&] {
            model.fit(data);
          }).starts_with(fmt::format("batch 1 of epoch 1: the score became {}; ", word)));
  }
}

TEST_CASE("each listener gets onFitEnd, whatever the others throw, and the first failure is thrown") {
  const auto throwingAt = [](std::string event) {
    return mergedListener([event](const RecordedCall& call, Trainer&) {
      if (call.event == event) throw std::runtime_error(event);
    });
  };
  for (const std::string event : {"fitStart", "epochStart", "merge", "epochEnd", "fitEnd"}) {
    CAPTURE(event);
    ToyModel model;
    auto data = ToyIterator::ofValues({2});
    auto first = throwingAt(event), second = throwingAt("fitEnd");
    auto last = mergedListener();
    model.setListeners({first, second, last});
    CHECK(thrown<std::runtime_error>([&] { model.fit(data); }) == event);
    for (const auto& listener : {first, second, last}) CHECK(listener->calls("fitEnd").size() == 1);
  }
}

TEST_CASE("a step's score is read while the next step runs") {
  LateScores model;
  auto data = ToyIterator::ofValues({1, 2, 6});
  model.fit(data);
  CHECK(model.calls == "step1 step2 wait1 step3 wait2 wait3 ");
  CHECK(model.score() == 6);
  CHECK(model.iteration() == 3);

  // A listener sees the model as the step left it.
  model.calls.clear();
  auto listener = mergedListener();
  model.setListeners({listener});
  model.fit(data);
  CHECK(model.calls == "step4 wait4 step5 wait5 step6 wait6 ");
  CHECK(listener->calls("epochEnd")[0].score == 3);
}

TEST_CASE("a late score that is not finite is named by its own batch") {
  LateScores model;
  auto data = ToyIterator::ofValues({1, kNan, 6, 7});
  CHECK(thrown<NonFiniteScore>([&] { model.fit(data); }).starts_with("batch 2 of epoch 1: "));
  CHECK(model.calls == "step1 step2 wait1 step3 wait2 ");
}
