
#include "muster/core/base/random.h"
#include "muster/core/data/in_memory.h"
#include "muster/core/data/input_description.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/listeners/evaluation_listener.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/parallel/on_nodes.h"
#include "tests/support/child_process.h"
#include "tests/support/on_merge.h"
#include "tests/support/one_block_model.h"
#include "tests/support/recording_listener.h"
#include "tests/support/skip.h"
#include "tests/support/test.h"
#include "tests/support/unrewound.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t kClasses = 3;

/// Batches of random features [N, kClasses], labels [N] and sometimes a mask, with a hook for faults.
class Labelled final : public DataSetIterator {
 public:
  explicit Labelled(int batches, std::uint64_t seed = 3) {
    for (auto& values : randomBatches(seed, batches, 5, kClasses, true)) {
      Batch batch;
      const auto rows = static_cast<std::int64_t>(values.values.size()) / kClasses;
      Tensor features = Tensor::empty({rows, kClasses}), labels = Tensor::empty({rows}, DType::Int64);
      std::ranges::copy(values.values, features.data<float>());
      for (std::int64_t n = 0; n < rows; ++n)
        labels.data<std::int64_t>()[n] = (n + static_cast<std::int64_t>(list.size())) % kClasses;
      batch.features.push_back({"x", features});
      batch.labels.push_back({"y", labels});
      if (list.size() % 4 == 3) batch.masks.push_back({"mask", Tensor::zeros({rows})});
      list.push_back(batch);
    }
  }

  void reset(std::int64_t epoch) override {
    CHECK(epoch == 0);
    next_ = 0;
    if (onReset) onReset();
  }
  bool next(Batch& batch) override {
    if (onNext) onNext(next_);
    if (next_ == list.size()) return false;
    const BatchStamp stamp = batch.stamp;
    batch = list[next_++];
    batch.stamp = stamp;
    return true;
  }

  std::vector<Batch> list;
  std::function<void()> onReset;
  std::function<void(std::size_t batch)> onNext;

 private:
  std::size_t next_ = 0;
};

/// Parameters that predict all classes.
const std::vector<float> kPredicting = {0.1f, -0.2f, 0.3f};

ToyOptions wide() {
  return {.size = kClasses, .training = {.updater = Nesterovs{.learningRate = 0.1}}, .statistics = true};
}

ToyIterator trainingData() {
  return ToyIterator(randomBatches(7, 11, 6, kClasses, true), kClasses);
}

/// The text of the TrainingError, which names the worker.
std::string failureOf(ParallelWrapper& wrapper, DataSetIterator& data, int worker) {
  try {
    wrapper.evaluate(data);
  } catch (const TrainingError& error) {
    CHECK(error.worker() == worker);
    return error.what();
  }
  return "nothing failed";
}

/// Checks that the wrapper can be used again: it counts the same as the model alone, and trains.
void checkWorksAgain(ParallelWrapper& wrapper, ToyModel& model) {
  model.control().onOutput = {};
  Labelled data(9);
  CHECK(wrapper.evaluate(data) == evaluate(model, data));
  auto training = trainingData();
  const auto epoch = model.epoch();
  wrapper.fit(training);
  CHECK(model.epoch() == epoch + 1);
  CHECK(wrapper.evaluate(data) == evaluate(model, data));
}

}  // namespace

TEST_CASE("the counts equal those of the model alone, for one to four workers, any batches and delays") {
  ToyModel model(wide());
  model.setParameters(kPredicting);
  for (const int workers : {1, 2, 3, 4})
    for (const std::int64_t prefetch : {0, 1, 16}) {
      RandomDelays delays(static_cast<std::uint64_t>(workers), 300us);
      auto wrapper = toyWrapper(model, workers).prefetchBuffer(prefetch).build();
      for (const int batches : {1, 2, 3, 7, 40}) {
        INFO("workers ", workers, ", batches ", batches);
        Labelled data(batches);
        model.control().onOutput = {};
        const Evaluation alone = evaluate(model, data);
        CHECK(wrapper.evaluate(data) == alone);
        data.onNext = [&](std::size_t) { delays(); };
        model.control().onOutput = [&](const Batch&) { delays(); };
        CHECK(wrapper.evaluate(data) == alone);
      }
      CHECK(wrapper.workerTimes()[0].batches == 0);  // workerTimes() covers only trainings
    }
}

TEST_CASE("a listener's time is in none of a worker's times, and that of its evaluations neither") {
  for (const bool evaluates : {true, false}) {
    CAPTURE(evaluates);
    ToyModel model(wide());
    model.setParameters(kPredicting);
    std::chrono::nanoseconds listened(0);
    const auto listener = onMerge([&](const MergeEvent& event) {
      const auto begun = std::chrono::steady_clock::now();
      Labelled data(3);
      if (evaluates) event.trainer.evaluateTask(data);
      std::this_thread::sleep_for(15ms);
      listened += std::chrono::steady_clock::now() - begun;
    });
    model.control().onOutput = [](const Batch&) { std::this_thread::sleep_for(5ms); };
    auto wrapper = toyWrapper(model, 1, 4).listeners({listener}).build();
    auto training = trainingData();
    const auto begun = std::chrono::steady_clock::now();
    wrapper.fit(training);
    const auto whole = std::chrono::steady_clock::now() - begun;
    const auto times = wrapper.workerTimes().front();
    CHECK(listened >= 3 * 15ms);
    CHECK(times.waitingForWorkers >= 0ns);
    CHECK(times.computing + times.waitingForData + times.waitingForWorkers + times.merging <=
          whole - listened);
  }
}

TEST_CASE("a stream that reset() does not rewind is evaluated from its first batch, also by a new wrapper") {
  ToyModel model(wide());
  model.setParameters(kPredicting);
  for (const int batches : {1, 5}) {
    Labelled all(batches);
    const Evaluation alone = evaluate(model, all);
    for (const int workers : {1, 2}) {
      auto wrapper = toyWrapper(model, workers).build();
      for (int call = 0; call < 2; ++call) {
        Labelled data(batches);
        Unrewound stream(data);
        CHECK(wrapper.evaluate(stream) == alone);
      }
    }
    for (const auto& counts : fromAll(2, [&](const Nodes& here) -> std::optional<Evaluation> {
           ToyModel own(wide());
           own.setParameters(kPredicting);
           Labelled data(batches);
           Unrewound stream(data);
           return toyWrapper(own, 2).nodes(here).build().evaluate(stream);
         }))
      CHECK(counts == alone);
  }
}

TEST_CASE("nodes that evaluate together have the counts of one, whatever share each has") {
  ToyModel model(wide());
  model.setParameters(kPredicting);
  for (const int nodes : {2, 3})
    for (const int batches : {1, 2, 3, 7, 40}) {
      INFO("nodes ", nodes, ", batches ", batches);
      Labelled all(batches);
      const Evaluation alone = evaluate(model, all);
      for (const auto& counts : fromAll(nodes, [&](const Nodes& here) -> std::optional<Evaluation> {
             ToyModel own(wide());
             own.setParameters(kPredicting);
             std::set<std::int64_t> seen;
             std::mutex mutex;
             own.control().onOutput = [&](const Batch& batch) {
               const std::scoped_lock lock(mutex);
               seen.insert(batch.stamp.sequence);
             };
             Labelled data(batches);
             auto wrapper = toyWrapper(own, 2).nodes(here).build();
             wrapper.evaluate(data);
             const auto again = wrapper.evaluate(data);
             for (const auto sequence : seen) CHECK(sequence % nodes == here.node());
             CHECK(static_cast<int>(seen.size()) == (batches + nodes - 1 - here.node()) / nodes);
             return again;
           }))
        CHECK(counts == alone);
    }
}

TEST_CASE("evaluations of each task have the bits of one worker, for any workers and nodes") {
  const RandomStream random(5, "regression");
  Tensor features = Tensor::empty({61, 3}), numbers = Tensor::empty({61, 2}), labels = Tensor::empty({61, 2}),
         classes = Tensor::empty({61}, DType::Int64);
  for (std::int64_t i = 0; i < features.elements(); ++i)
    features.data<float>()[i] = static_cast<float>(random.uniform(static_cast<std::uint64_t>(i)));
  for (std::int64_t i = 0; i < numbers.elements(); ++i) {
    const double x = random.uniform(static_cast<std::uint64_t>(1000 + i));
    numbers.data<float>()[i] = static_cast<float>(1e6 + x);
    labels.data<float>()[i] = x > 0.7 ? 1 : 0;
    classes.data<std::int64_t>()[i / 2] = i % 5;
  }
  const Output squares{.classes = 2, .loss = Loss::MeanSquaredError, .activation = Activation::Identity};
  const Output sigmoids{.classes = 2, .loss = Loss::BinaryCrossEntropy, .activation = Activation::Sigmoid};
  const auto check = [&](const Output& output, const Tensor& wanted, Task task) {
    const MultiLayerConfiguration configuration{.inputShape = {3}, .layers = {Dropout{.rate = 0.5}, output}};
    MultiLayerNetwork network(configuration);
    network.init();
    InMemoryDataSetIterator data(features, wanted, 4);
    const AnyEvaluation alone = network.evaluateTask(data);
    CHECK(alone.task() == task);
    CHECK(alone.examples() == 61);
    for (const int workers : {1, 2, 5})
      CHECK(toyWrapper(network, workers).build().evaluateTask(data) == alone);
    for (const int nodes : {2, 3})
      for (const auto& one : fromAll(nodes, [&](const Nodes& here) -> std::optional<AnyEvaluation> {
             MultiLayerNetwork own(configuration);
             own.init();
             InMemoryDataSetIterator share(features, wanted, 4);
             return toyWrapper(own, 2).nodes(here).build().evaluateTask(share);
           }))
        CHECK((one == alone && one->loss() == alone.loss()));
  };
  check(squares, numbers, Task::Regression);
  check(sigmoids, labels, Task::Labels);
  check({.classes = 5}, classes, Task::Classification);
}

TEST_CASE("a node that fails in an evaluation is named by the others, and all can continue") {
  const auto problems = fromAll(2, [&](const Nodes& here) {
    ToyModel own(wide());
    own.control().onOutput = [&](const Batch& batch) {
      if (batch.stamp.sequence >= 5 && batch.stamp.sequence <= 8) throw std::runtime_error("broken");
    };
    Labelled data(20);
    auto wrapper = toyWrapper(own, 2).nodes(here).build();
    const auto problem = thrown<TrainingError>([&] { wrapper.evaluate(data); });
    own.control().onOutput = {};
    CHECK(wrapper.evaluate(data) == evaluate(own, data));
    return problem;
  });
  CHECK(problems[0] == "evaluate: node 1 (virtual1) has failed; its own message says why");
  CHECK_CONTAINS(problems[1], "failed in batch 6: broken");
}

TEST_CASE("a node that cannot start an evaluation ends that of the others; one without data is refused") {
  VirtualNetwork network(2), another(2);
  const auto problems = onNodes(network, 30s, [](const Nodes& here) {
    ToyModel own(wide());
    Labelled data(4);
    if (here.node() == 1) data.onReset = [] { throw std::runtime_error("no disk"); };
    toyWrapper(own, 1).nodes(here).build().evaluate(data);
  });
  CHECK_CONTAINS(problems[0], "node 1 (virtual1)");
  CHECK_CONTAINS(problems[1], "no disk");
  const auto empty = onNodes(another, 30s, [](const Nodes& here) {
    ToyModel own(wide());
    Labelled data(3), none(0);
    auto wrapper = toyWrapper(own, 1).nodes(here).build();
    wrapper.evaluate(data);
    wrapper.evaluate(none);
  });
  for (const auto& problem : empty) CHECK(problem == "evaluate: the data set has no batches");
}

TEST_CASE("over nodes the evaluation listener counts as on one node, and node 0 may evaluate alone") {
  struct Seen {
    std::vector<EvaluationListener::Result> results;
    std::vector<Evaluation> alone;
    std::vector<std::string> lines;
    std::vector<std::byte> bits;
  };
  const auto train = [](int workers, int groups, const Nodes& here,
                        const std::function<void(const Batch&)>& hook) {
    ToyModel model(wide());
    if (hook) model.control().onOutput = hook;
    auto data = trainingData();
    Labelled validation(7);
    Seen seen;
    const auto listener = std::make_shared<EvaluationListener>(
        validation, EvaluationOptions{.everyIterations = 2,
                                      .sink = [&](std::string_view line) { seen.lines.emplace_back(line); }});
    Labelled few(6);
    const auto alone = onMerge([&](const MergeEvent& event) {  // on node 0 alone
      seen.alone.push_back(event.trainer.evaluate(few));
    });
    auto builder = ParallelWrapper::Builder(model);
    builder.workers(workers).pinThreads(false).averagingFrequency(2).groups(groups).listeners(
        {listener, alone});
    if (here.nodes() > 1) builder.nodes(here);
    builder.build().fit(data, 2);
    seen.results = listener->results();
    seen.bits = stateBits(model);
    return seen;
  };
  const Seen expected = train(4, 2, Nodes(), {});
  REQUIRE(expected.results.size() >= 3);
  std::vector<std::set<std::int64_t>> batches(2);
  std::mutex mutex;
  const auto seen = fromAll(2, [&](const Nodes& here) {
    return train(2, 1, here, [&](const Batch& batch) {
      const std::scoped_lock lock(mutex);
      batches[static_cast<std::size_t>(here.node())].insert(batch.stamp.sequence);
    });
  });
  for (const Seen& one : seen) {
    REQUIRE(one.results.size() == expected.results.size());
    for (std::size_t i = 0; i < one.results.size(); ++i) {
      CHECK(one.results[i].evaluation == expected.results[i].evaluation);
      CHECK(one.results[i].iteration == expected.results[i].iteration);
    }
    CHECK(one.bits == expected.bits);
  }
  CHECK(seen[0].lines == expected.lines);
  CHECK(seen[1].lines.empty());
  CHECK(seen[0].alone == expected.alone);
  CHECK(seen[1].alone.empty());
  CHECK(batches[1] == std::set<std::int64_t>{1, 3, 5});
}

TEST_CASE("each batch goes to its worker, with the same stamp for any number of workers") {
  ToyModel model(wide());
  std::mutex mutex;
  std::map<std::int64_t, std::thread::id> threads;  // by batch
  model.control().onOutput = [&](const Batch& batch) {
    std::scoped_lock lock(mutex);
    threads[batch.stamp.sequence] = std::this_thread::get_id();
    CHECK(batch.stamp.firstExample == 5 * batch.stamp.sequence);
    CHECK(batch.stamp.epoch == 0);
    CHECK(batch.stamp.iteration == 0);
  };
  Labelled data(0);
  Labelled source(100);
  for (const auto& batch : source.list)
    if (batch.examples() == 5 && data.list.size() < 10) data.list.push_back(batch);
  REQUIRE(data.list.size() == 10);
  auto training = trainingData();
  auto wrapper = toyWrapper(model, 3).build();
  wrapper.fit(training, 3);  // leaves other stamps in the circulating batches
  wrapper.evaluate(data);
  REQUIRE(threads.size() == 10);
  for (std::int64_t b = 3; b < 10; ++b) CHECK(threads[b] == threads[b % 3]);
  CHECK(std::set{threads[0], threads[1], threads[2], std::this_thread::get_id()}.size() == 4);
}

namespace {

/// When evaluations interrupt a training.
enum class Evaluating { Never, Between, InListeners };

std::vector<std::byte> trainedBits(ParallelWrapper::Builder builder, ToyModel& model, Evaluating when) {
  Labelled data(8);
  auto evaluator = mergedListener([&](const RecordedCall& call, Trainer& trainer) {
    if (when != Evaluating::InListeners) return;
    const Evaluation together = trainer.evaluate(data);
    CHECK_MESSAGE(together == evaluate(trainer.model(), data), call.event);
  });
  auto wrapper = builder.listeners({evaluator}).build();
  auto training = trainingData();
  for (int i = 0; i < 2; ++i) {
    if (when == Evaluating::Between) CHECK(wrapper.evaluate(data) == evaluate(model, data));
    wrapper.fit(training, 2);
  }
  return model.allBits();
}

}  // namespace

TEST_CASE("training has the same bits with evaluations between fit() calls and in listeners") {
  using Builder = ParallelWrapper::Builder;
  const std::pair<const char*, std::function<void(Builder&)>> rows[] = {
      {"averaging", [](Builder& b) { b.averagingFrequency(2); }},
      {"workers keep their updaters' states",
       [](Builder& b) { b.averagingFrequency(2).averageUpdaters(false); }},
      {"synchronous gradients", [](Builder& b) { b.trainingMode(TrainingMode::SynchronousGradients); }},
      {"shared gradients, where statistics and updaters drift apart between resynchronisations",
       [](Builder& b) {
         b.trainingMode(TrainingMode::SharedGradients).sharedGradients({.resynchronizationFrequency = 3});
       }}};
  for (const auto& [what, options] : rows)
    for (const int workers : {1, 2, 3}) {
      INFO("what ", what, ", workers ", workers);
      std::vector<std::vector<std::byte>> bits;
      for (const auto when : {Evaluating::Never, Evaluating::Between, Evaluating::InListeners}) {
        ToyModel model(wide());
        auto builder = toyWrapper(model, workers);
        options(builder);
        bits.push_back(trainedBits(builder, model, when));
      }
      CHECK(bits[1] == bits[0]);
      CHECK(bits[2] == bits[0]);
    }
}

TEST_CASE("an evaluation after fit() copies no worker's state") {
  if (kSanitized) return skip("sanitizers have memory of their own, without a limit");
  const auto outcome = inChild([] {
    constexpr std::int64_t kInputs = 200, kUnits = 4000;  // 3.2 MB, and as much momentum
    MultiLayerNetwork network({.updater = Nesterovs{},
                               .inputShape = {kInputs},
                               .layers = {Dense{.units = kUnits}, Output{.classes = kClasses}}});
    network.init();
    InMemoryDataSetIterator data(Tensor::zeros({32, kInputs}), Tensor::zeros({32}, DType::Int64), 4);
    auto wrapper = toyWrapper(network, 4).build();
    wrapper.fit(data);
    allowMemory(std::size_t{8} << 20);
    return fmt::format("{} examples", wrapper.evaluate(data).examples());
  });
  CHECK(outcome == "32 examples");
}

TEST_CASE("all workers take part in a merged listener's evaluation, and the training continues") {
  ToyModel model(wide());
  RandomDelays delays(5, 200us);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  model.control().onStep = [&](const Batch&) { delays(); };
  model.control().onOutput = [&](const Batch&) {
    delays();
    std::scoped_lock lock(mutex);
    threads.insert(std::this_thread::get_id());
  };
  Labelled data(8);
  int evaluations = 0;
  ParallelWrapper* wrapper = nullptr;
  auto listener = mergedListener([&](const RecordedCall& call, Trainer& trainer) {
    if (call.event != "merge") return;
    CHECK(wrapper->evaluate(data).examples() == trainer.evaluate(data).examples());  // twice per merge
    ++evaluations;
  });
  auto built = toyWrapper(model, 3).listeners({listener}).build();
  wrapper = &built;
  auto training = trainingData();
  training.onNext = [&](std::int64_t, std::int64_t) { delays(); };
  built.fit(training, 3);
  CHECK(evaluations == 12);
  CHECK(threads.size() == 3);
  CHECK_FALSE(threads.contains(std::this_thread::get_id()));
}

TEST_CASE("a failure names worker, device and batch, the earliest of several, in every run") {
  for (int run = 0; run < 20; ++run) {
    ToyModel model(wide());
    RandomDelays delays(static_cast<std::uint64_t>(run), 300us);
    auto wrapper = toyWrapper(model, 3).build();
    Labelled data(30);
    model.control().onOutput = [&](const Batch& batch) {
      delays();
      if (batch.stamp.sequence >= 4 && batch.stamp.sequence != 5) boom();
    };
    data.onNext = [&](std::size_t batch) {
      if (batch == 20) boom();
    };
    CHECK(failureOf(wrapper, data, 1) == "evaluate: worker 1 on cpu failed in batch 5: boom");
    checkWorksAgain(wrapper, model);
  }
}

TEST_CASE("data that cannot be evaluated are refused") {
  ToyModel model(wide());
  auto wrapper = toyWrapper(model, 2).build();
  const struct {
    int worker;
    std::string problem;  // after "evaluate: "
    std::function<void(std::vector<Batch>&)> change;
  } rows[] = {
      {1, "worker 1 on cpu failed in batch 6: evaluation: example 0 has label 3, but there are 3 classes",
       [](auto& list) { list[5].labels.front().value.template data<std::int64_t>()[0] = 3; }},
      {0, "worker 0 on cpu failed in batch 3: evaluate: a batch has no labels",
       [](auto& list) { list[2].labels.clear(); }},
      {-1, "the data iterator failed at batch 4 of epoch 1: the batch has no examples",
       [](auto& list) { list[3].features.clear(); }},
      {1, "worker 1 on cpu failed in batch 2: evaluation: one of 3 classes cannot be merged with one of 4",
       [](auto& list) {
         list.resize(2);
         list[1].features = {{"x", Tensor::zeros({1, 4})}};
         list[1].labels = {{"y", Tensor::zeros({1}, DType::Int64)}};
       }}};
  for (const auto& [worker, problem, change] : rows) {
    Labelled data(9);
    change(data.list);
    CHECK(failureOf(wrapper, data, worker) == "evaluate: " + problem);
    checkWorksAgain(wrapper, model);
  }
}

TEST_CASE("an iterator that fails is named, and data without batches are refused, as alone") {
  ToyModel model(wide());
  auto wrapper = toyWrapper(model, 2).build();
  Labelled data(9), none(0);
  data.onReset = boom;
  const std::string problem = "the data iterator failed in reset to epoch 1: boom",
                    empty = "evaluate: the data set has no batches";
  CHECK(failureOf(wrapper, data, -1) == problem);
  CHECK_REFUSED(evaluate(model, none), empty);
  CHECK_REFUSED(wrapper.evaluate(none), empty);
  data.onReset = {};
  wrapper.evaluate(data);  // creates the replicas
  CHECK_REFUSED(wrapper.evaluate(none), empty);
  data.onReset = boom;
  CHECK(failureOf(wrapper, data, -1) == "evaluate: " + problem);
  data.onReset = {};
  for (const std::size_t at : {0, 1, 8, 9}) {
    data.onNext = [at](std::size_t batch) {
      if (batch == at) boom();
    };
    CHECK(failureOf(wrapper, data, -1) ==
          fmt::format("evaluate: the data iterator failed at batch {} of epoch 1: boom", at + 1));
  }
  checkWorksAgain(wrapper, model);
}

TEST_CASE("models that cannot be evaluated are refused") {
  Labelled data(3);
  ToyModel model(wide());
  model.control().onReplicate = [](int) { boom(); };
  auto unmade = toyWrapper(model, 2).build();
  CHECK(failureOf(unmade, data, 0) == "worker 0 on cpu could not be made: boom");
  model.control().onReplicate = {};
  checkWorksAgain(unmade, model);

  MultiLayerNetwork network({.layers = {Output{.classes = 3}}});
  auto unready = toyWrapper(network, 2).build();
  CHECK_REFUSED(unready.evaluate(data), "model: it has no parameters yet; call init() first, or fit() it");
  CHECK_FALSE(network.initialized());
  unready.fit(data);
  CHECK(unready.evaluate(data) == network.evaluate(data));

  OneBlockModel mute;  // has no output()
  auto silent = toyWrapper(mute, 2).build();
  const std::string problem = "batch 1: model: this model has no output()";
  CHECK(failureOf(silent, data, 0) == "evaluate: worker 0 on cpu failed in " + problem);
  CHECK_REFUSED(evaluate(mute, data), "evaluate: " + problem);
  CHECK_NOTHROW(silent.fit(data));
}

TEST_CASE("during a training only its listeners can evaluate") {
  const std::string refusal =
      "evaluate: the wrapper is at work; while fit() runs only its listeners may evaluate, in calls on the "
      "thread that called fit(), so not in onIteration";
  ToyModel model(wide());
  Labelled data(3), other(3);
  std::string inWorker;
  auto listener = workerListener([&](const RecordedCall& call, Trainer& trainer) {
    if (call.event == "iteration")
      inWorker = thrown<InvalidArgument>([&] { trainer.evaluate(data); });
    else
      CHECK(trainer.evaluate(data) == evaluate(trainer.model(), data));
  });
  auto wrapper = toyWrapper(model, 2).listeners({listener}).build();
  auto training = trainingData();
  wrapper.fit(training, 2);
  CHECK(inWorker == refusal);
  std::string inIterator;
  data.onNext = [&](std::size_t) { inIterator = thrown<InvalidArgument>([&] { wrapper.evaluate(other); }); };
  wrapper.evaluate(data);
  CHECK(inIterator == refusal);
  CHECK(thrown<InvalidArgument>([&] {
          data.onNext = [&](std::size_t) { wrapper.fit(training); };
          try {
            wrapper.evaluate(data);
          } catch (const TrainingError& error) {
            std::rethrow_exception(error.cause());
          }
        }) == "fit: it is already running; a listener or another thread called it again");
  data.onNext = {};
  checkWorksAgain(wrapper, model);
}

TEST_CASE("an evaluation that fails in a listener ends fit() unless the listener catches the exception") {
  for (const bool caught : {true, false}) {
    ToyModel model(wide());
    Labelled data(9);
    model.control().onOutput = [](const Batch& batch) {
      if (batch.stamp.sequence == 4) boom();
    };
    int failures = 0;
    auto listener = mergedListener([&](const RecordedCall& call, Trainer& trainer) {
      if (call.event != "merge") return;
      try {
        trainer.evaluate(data);
      } catch (const TrainingError&) {
        ++failures;
        if (!caught) throw;
      }
    });
    auto wrapper = toyWrapper(model, 3).listeners({listener}).build();
    auto training = trainingData();
    CHECK(muster::test::failureOf(wrapper, training).text ==
          (caught
               ? "nothing failed"
               : "a listener failed after iteration 1: evaluate: worker 1 on cpu failed in batch 5: boom"));
    CHECK(failures == (caught ? 4 : 1));
    checkWorksAgain(wrapper, model);
  }
}

TEST_CASE(
    "an iterator that fails during a listener's evaluation fails the training where its batch is needed") {
  for (int run = 0; run < 20; ++run) {
    ToyModel model(wide());
    Labelled data(9);
    std::atomic<bool> evaluating{false}, failing{false};
    model.control().onOutput = [&](const Batch&) {
      evaluating = true;
      while (!failing) std::this_thread::sleep_for(1ms);
      if (run % 2 == 0) std::this_thread::sleep_for(2ms);
    };
    auto training = trainingData();
    training.onNext = [&](std::int64_t, std::int64_t batch) {
      if (batch != 8) return;  // read ahead while the workers are at the first merge
      while (!evaluating) std::this_thread::sleep_for(1ms);
      failing = true;
      boom();
    };
    std::vector<std::int64_t> examples;
    auto listener = mergedListener([&](const RecordedCall& call, Trainer& trainer) {
      if (call.event == "merge") examples.push_back(trainer.evaluate(data).examples());
    });
    auto wrapper = toyWrapper(model, 3).listeners({listener}).build();
    CHECK(muster::test::failureOf(wrapper, training).text ==
          "the data iterator failed at batch 9 of epoch 1: boom");
    CHECK(examples == std::vector(2, evaluate(model, data).examples()));
    training.onNext = {};
    model.control().onOutput = {};
    wrapper = toyWrapper(model, 3).build();
    checkWorksAgain(wrapper, model);
  }
}

TEST_CASE("a wrapper trains with and evaluates data of the model's own description only, in its units") {
  MultiLayerNetwork model(
      {.inputShape = {1},
       .layers = {Output{.units = 1, .loss = Loss::MeanSquaredError, .activation = Activation::Identity}}});
  model.init();
  InputDescription prices{.columns = {{.name = "x"}}, .targets = {{"price", 100, 10}}};
  model.setInputDescription(prices);
  InMemoryDataSetIterator data(Tensor::zeros({4, 1}), Tensor::of({1, -2, 0, 2}, {4, 1}), 1);
  auto wrapper = toyWrapper(model, 2, 1).build();
  model.block(BlockKind::Parameters).values.span<float>()[0] = 0;
  data.setDescription(prices);
  const auto scores = wrapper.evaluateTask(data);
  CHECK(scores.regression().rootMeanSquaredError() == 15);  // errors of 10, 20, 0 and 20
  CHECK(scores == model.evaluateTask(data));
  CHECK(wrapper.evaluateRegression(data).summary().find("in the column's own units") != std::string::npos);
  prices.targets[0].name = "rent";
  data.setDescription(prices);
  const std::string problem = "the number to predict is rent in the data, and price in the model";
  CHECK_REFUSED(wrapper.evaluateTask(data), "evaluate: " + problem);
  const auto training = thrown<TrainingError>([&] { wrapper.fit(data); });
  CHECK_MESSAGE(training.ends_with("fit: " + problem), training);
  CHECK(model.iteration() == 0);
}
