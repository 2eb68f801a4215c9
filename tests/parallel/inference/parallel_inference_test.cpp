#include "muster/parallel/inference/parallel_inference.h"

#include <pthread.h>

#include <condition_variable>
#include <future>

#include "muster/core/base/random.h"
#include "muster/core/nn/known_features.h"
#include "muster/core/nn/models/convnet.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/arrays.h"
#include "tests/support/sanitizers.h"
#include "tests/support/skip.h"
#include "tests/support/texts.h"
#include "tests/support/thrown.h"
#include "tests/support/toy_model.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

using Clock = ParallelInference::Clock;

constexpr InferenceMode kModes[] = {InferenceMode::Sequential, InferenceMode::Batched,
                                    InferenceMode::InPlace};

/// A model whose outputs wait until the test releases them, and which records the numbers of examples.
struct Gate {
  explicit Gate(ToyModel& model, bool isOpen = false) : open(isOpen) {
    model.control().onOutput = [this](const Batch& batch) {
      std::unique_lock lock(mutex);
      sizes.push_back(batch.examples());
      changed.notify_all();
      changed.wait(lock, [this] { return open; });
    };
  }
  void waitForOutputs(std::size_t count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return sizes.size() >= count; });
  }
  void openUp() {
    const std::scoped_lock lock(mutex);
    open = true;
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::int64_t> sizes;
  bool open;
};

Tensor row(float value, std::int64_t examples = 1) {
  return Tensor::of(std::vector<float>(static_cast<std::size_t>(examples), value), {examples, 1});
}

using Answer = std::future<Prediction>;

/// A call on a new thread.
Answer ask(ParallelInference& inference, Tensor features,
           Clock::time_point deadline = ParallelInference::kNoDeadline) {
  return std::async(std::launch::async,
                    [&inference, features, deadline] { return inference.output(features, deadline); });
}

void waitForCalls(const ParallelInference& inference, std::int64_t count) {
  while (inference.waitingCalls() != count) std::this_thread::yield();
}

float valueOf(Answer& answer) {
  return answer.get().output.data<float>()[0];
}

/// A toy model that is served.
struct Served {
  explicit Served(const InferenceOptions& options, bool open = true)
      : gate(model, open), inference(model, unpinned(options)) {}
  static InferenceOptions unpinned(InferenceOptions options) {
    options.pinThreads = false;
    return options;
  }
  float answer(float value) { return inference.output(row(value)).output.data<float>()[0]; }

  ToyModel model;
  Gate gate;
  ParallelInference inference;
};

/// A network whose sums are exact in any order: parameters and features are small integers.
struct WholeNumbers {
  WholeNumbers()
      : model({.seed = 1,
               .inputShape = {6},
               .layers = {Dense{.units = 9, .activation = Activation::ReLU}, Dense{.units = 4}}}) {
    model.init();
    const Tensor parameters = model.block(BlockKind::Parameters).values;
    const RandomStream random(5, "whole numbers");
    for (std::int64_t i = 0; i < parameters.elements(); ++i)
      parameters.data<float>()[i] = static_cast<float>(static_cast<int>(random.uniform(i) * 7) - 3);
  }
  static Tensor features(std::int64_t examples, std::uint64_t seed) {
    Tensor x = Tensor::empty({examples, 6});
    const RandomStream random(seed, "features");
    for (std::int64_t i = 0; i < x.elements(); ++i)
      x.data<float>()[i] = static_cast<float>(static_cast<int>(random.uniform(i) * 9) - 4);
    return x;
  }
  MultiLayerNetwork model;
};

/// A toy model that knows its features.
struct Knowing final : Model, KnownFeatures {
  std::unique_ptr<Model> replicate(Context& context) const override { return toy.replicate(context); }
  StepTicket gradient(const Batch& batch) override { return toy.gradient(batch); }
  std::span<StateBlock> blocks() override { return toy.blocks(); }
  Batch exampleFeatures() const override {
    Batch batch;
    batch.features.push_back({"x", row(0)});
    return batch;
  }
  ToyModel toy;
};

}  // namespace

TEST_CASE("many callers get the model's own predictions") {
  WholeNumbers whole;
  for (const auto mode : kModes) {
    CAPTURE(nameOf(mode));
    ParallelInference inference(whole.model,
                                {.workers = 3, .mode = mode, .batchLimit = 5, .pinThreads = false});
    std::vector<std::future<bool>> callers;
    for (std::uint64_t caller = 0; caller < 8; ++caller)
      callers.push_back(std::async(std::launch::async, [&inference, caller] {
        WholeNumbers alone;
        bool same = true;
        for (std::int64_t call = 0; call < 30; ++call) {
          const auto x =
              WholeNumbers::features(1 + (call + static_cast<std::int64_t>(caller)) % 7, caller * 100 + call);
          same = same && sameBits(inference.output(x).output, alone.model.output(x));
        }
        return same;
      }));
    for (auto& caller : callers) CHECK(caller.get());
  }
}

TEST_CASE("with a batch time the first call waits for others until it has passed") {
  Served joining({.batchLimit = 3, .batchTime = 1h});
  std::vector<Answer> answers;
  for (int i = 0; i < 3; ++i) answers.push_back(ask(joining.inference, row(static_cast<float>(i))));
  for (int i = 0; i < 3; ++i) CHECK(valueOf(answers[i]) == static_cast<float>(i));
  CHECK(joining.gate.sizes == std::vector<std::int64_t>{3});
  CHECK(Served({.batchLimit = 3, .batchTime = 1ms}).answer(2) == 2);
}

TEST_CASE("a full group does not wait for an earlier one's batch time") {
  for (const int workers : {1, 2}) {
    CAPTURE(workers);
    Served served({.workers = workers, .batchLimit = 4, .batchTime = 1h});
    ParallelInference& inference = served.inference;
    auto tooMany = ask(inference, row(1, 3));
    waitForCalls(inference, 1);
    auto otherShape = ask(inference, row(2).reshape({1, 1, 1}));
    waitForCalls(inference, 2);
    std::vector<Answer> full;
    for (int i = 3; i <= 4; ++i) full.push_back(ask(inference, row(static_cast<float>(i), 2)));
    for (int i = 3; i <= 4; ++i) CHECK(valueOf(full[i - 3]) == static_cast<float>(i));
    CHECK(inference.waitingCalls() == 2);
    CHECK(served.gate.sizes == std::vector<std::int64_t>{4});
    full.push_back(ask(inference, row(5, 3).reshape({3, 1, 1})));
    CHECK(valueOf(otherShape) == 2);
    CHECK(valueOf(full.back()) == 5);
    CHECK(inference.waitingCalls() == 1);
    inference.shutdown();
    CHECK(valueOf(tooMany) == 1);
  }
}

TEST_CASE("a call does not wait for others that cannot enter the queue") {
  for (const auto whenFull : {WhenFull::Refuse, WhenFull::Wait}) {
    Served served({.batchLimit = 8, .batchTime = 1h, .queueLimit = 2, .whenFull = whenFull});
    auto first = ask(served.inference, row(1));
    waitForCalls(served.inference, 1);
    auto otherShape = ask(served.inference, row(2).reshape({1, 1, 1}));
    CHECK(valueOf(first) == 1);
    CHECK(served.inference.waitingCalls() == 1);
    auto third = ask(served.inference, row(3).reshape({1, 1, 1}));
    CHECK(valueOf(otherShape) == 2);
    CHECK(valueOf(third) == 3);
    CHECK(served.gate.sizes == std::vector<std::int64_t>{1, 2});
  }
}

TEST_CASE("a model that knows its input shape is compiled at the start unless an option says otherwise") {
  Knowing model;
  Gate gate(model.toy, /*isOpen=*/true);
  const ParallelInference batched(model, {.batchLimit = 3, .pinThreads = false});
  CHECK(gate.sizes == std::vector<std::int64_t>{1, 2, 3});
  const ParallelInference notCompiled(model, {.batchLimit = 3, .example = Batch{}, .pinThreads = false});
  const ParallelInference sequential(model, {.mode = InferenceMode::Sequential, .pinThreads = false});
  CHECK(gate.sizes.size() == 3);
}

TEST_CASE("a deadline ends a call that waits or is being computed") {
  for (const auto mode : {InferenceMode::Sequential, InferenceMode::Batched}) {
    Served served({.mode = mode}, /*open=*/false);
    auto computed = ask(served.inference, row(1), Clock::now() + 20ms);
    served.gate.waitForOutputs(1);
    auto waits = ask(served.inference, row(2), Clock::now() + 20ms);
    for (Answer* const answer : {&computed, &waits}) CHECK_THROWS_AS(answer->get(), DeadlineExceeded);
    served.gate.openUp();
    CHECK(served.answer(3) == 3);
  }
}

TEST_CASE("a deadline that has passed before the call is answered at once, and nothing is computed") {
  for (const auto mode : kModes) {
    Served served({.mode = mode});
    for (const auto deadline : {Clock::now(), Clock::time_point::min(), Clock::time_point()})
      CHECK(thrown<DeadlineExceeded>([&] { served.inference.output(row(2), deadline); }) ==
            "output: the deadline passed before the call");
    CHECK(served.gate.sizes.empty());
  }
}

TEST_CASE("with InPlace a caller gets its turn even if others call again at once") {
  Served served({.mode = InferenceMode::InPlace});
  std::atomic<bool> stop{false};
  std::vector<std::jthread> others;
  for (int i = 0; i < 3; ++i)
    others.emplace_back([&] {
      while (!stop) served.answer(1);
    });
  for (int i = 0; i < 20; ++i) CHECK(served.answer(2) == 2);
  stop = true;
}

TEST_CASE("a call that leaves its group makes room in it, and the last one ends the group") {
  Served served({.batchLimit = 2}, /*open=*/false);
  ParallelInference& inference = served.inference;
  auto computed = ask(inference, row(0));
  served.gate.waitForOutputs(1);
  std::vector<Answer> late;
  for (int i = 0; i < 3; ++i) late.push_back(ask(inference, row(9), Clock::now() + 10ms));
  for (auto& answer : late) CHECK_THROWS_AS(answer.get(), DeadlineExceeded);
  CHECK(inference.waitingCalls() == 0);
  auto first = ask(inference, row(1)), leaves = ask(inference, row(2), Clock::now() + 20ms);
  CHECK_THROWS_AS(leaves.get(), DeadlineExceeded);
  auto second = ask(inference, row(3));
  waitForCalls(inference, 2);
  served.gate.openUp();
  CHECK(valueOf(computed) == 0);
  CHECK(valueOf(first) == 1);
  CHECK(valueOf(second) == 3);
  CHECK(served.gate.sizes == std::vector<std::int64_t>{1, 2});
}

TEST_CASE("a caller whose thread is cancelled leaves, and all others are answered") {
  if (kThreadSanitizer) return skip("ThreadSanitizer sees no mutex of a thread that is being cancelled");
  for (const auto mode : kModes) {
    CAPTURE(nameOf(mode));
    Served served({.mode = mode, .batchLimit = 1, .queueLimit = 2}, /*open=*/false);
    ParallelInference& inference = served.inference;
    Gate& gate = served.gate;
    const auto caller = [&](float value) {
      return std::thread([&inference, value] { inference.output(row(value)); });
    };
    const auto cancel = [](std::thread& thread) {
      REQUIRE(::pthread_cancel(thread.native_handle()) == 0);
      thread.join();
    };
    auto computed = ask(inference, row(1));
    gate.waitForOutputs(1);
    auto first = caller(2), second = caller(3);
    waitForCalls(inference, 2);
    auto room = caller(4);  // in InPlace mode it waits like the others
    waitForCalls(inference, 3);
    cancel(room);
    waitForCalls(inference, 2);
    cancel(first);
    waitForCalls(inference, 1);
    auto later = ask(inference, row(5));
    waitForCalls(inference, 2);
    cancel(second);
    gate.openUp();
    CHECK(valueOf(computed) == 1);
    CHECK(valueOf(later) == 5);
    if (mode != InferenceMode::InPlace) {  // a call whose features a worker computes
      gate.open = false;
      const std::size_t before = gate.sizes.size();
      auto read = caller(6);
      gate.waitForOutputs(before + 1);
      cancel(read);
      gate.openUp();
    }
    CHECK(served.answer(7) == 7);
    CHECK(inference.waitingCalls() == 0);
  }
}

TEST_CASE("a single call and InPlace have the bits of the model's output") {
  MultiLayerNetwork model(convnet(10));
  model.init();
  Tensor images = Tensor::empty({5, 1, 28, 28});
  const RandomStream random(9, "images");
  for (std::int64_t i = 0; i < images.elements(); ++i)
    images.data<float>()[i] = static_cast<float>(random.uniform(i));
  for (const auto mode : {InferenceMode::Sequential, InferenceMode::InPlace}) {
    CAPTURE(nameOf(mode));
    ParallelInference inference(model, {.workers = 2, .mode = mode, .pinThreads = false});
    for (const std::int64_t examples : {1, 2, 5}) {
      const Tensor some = images.rows(0, examples);
      CHECK(sameBits(inference.output(some).output, model.output(some)));
    }
  }
}

TEST_CASE("a model is replaced as a whole while it serves calls") {
  constexpr std::int64_t kSize = 2000;
  for (const auto mode : kModes) {
    CAPTURE(nameOf(mode));
    ToyModel model({.size = kSize}), next({.size = kSize});
    model.setParameters(std::vector<float>(kSize, 1));
    ParallelInference inference(model, {.workers = 2, .mode = mode, .pinThreads = false});
    std::atomic<bool> stop{false};
    std::vector<std::future<bool>> callers;
    for (int caller = 0; caller < 4; ++caller)
      callers.push_back(std::async(std::launch::async, [&] {
        bool whole = true;
        std::int64_t last = 0;
        do {
          const auto before = inference.modelVersion();
          const auto [out, version] = inference.output(Tensor::zeros({1, kSize}));
          for (const float value : out.span<float>()) whole = whole && value == static_cast<float>(version);
          whole = whole && version >= before && version >= last;
          last = version;
        } while (!stop);
        return whole;
      }));
    for (std::int64_t version = 2; version <= 40; ++version) {
      next.setParameters(std::vector<float>(kSize, static_cast<float>(version)));
      CHECK(inference.updateModel(next) == version);
      CHECK(inference.output(Tensor::zeros({1, kSize})).modelVersion == version);
    }
    stop = true;
    for (auto& caller : callers) CHECK(caller.get());
  }
}

TEST_CASE("the user's model may change or be destroyed meanwhile") {
  auto model = std::make_unique<ToyModel>();
  model->setParameters({5});
  ParallelInference inference(*model, {.pinThreads = false});
  model->setParameters({7});
  model.reset();
  CHECK(inference.output(row(1)).output.data<float>()[0] == 6);
}

TEST_CASE("the error about invalid features describes them") {
  Served served({});
  CHECK_REFUSED(served.inference.output(Batch{}), "output: a batch without features");
  Batch uneven;
  uneven.features = {{"a", row(1, 2)}, {"b", row(1, 3)}};
  CHECK_REFUSED(served.inference.output(uneven),
                "output: \"b\" is float32 [3, 1] on cpu, but the batch has 2 examples");
}

TEST_CASE("shutdown() answers the calls that wait, and refuses later ones") {
  for (const auto mode : kModes) {
    CAPTURE(nameOf(mode));
    Served served({.mode = mode, .batchLimit = 1, .queueLimit = 1}, /*open=*/false);
    auto computed = ask(served.inference, row(1));
    served.gate.waitForOutputs(1);
    auto waits = ask(served.inference, row(2));
    waitForCalls(served.inference, 1);
    auto end = std::async(std::launch::async, [&] { served.inference.shutdown(); });
    // Before shutdown has begun, a call waits for room or for the replica.
    while (thrown<InferenceShutDown>([&] {
             try {
               served.inference.output(row(3), Clock::now() + 1ms);
             } catch (const DeadlineExceeded&) {
             }
           }) == "") {
    }
    served.gate.openUp();
    CHECK(valueOf(computed) == 1);
    CHECK(valueOf(waits) == 2);
    end.get();
    CHECK(thrown<InferenceShutDown>([&] { served.answer(4); }) ==
          "output: this ParallelInference was shut down");
    served.inference.shutdown();
  }
}

TEST_CASE("shutdown() refuses a call that waits for room in the queue") {
  Served served({.batchLimit = 1, .queueLimit = 1}, /*open=*/false);
  auto computed = ask(served.inference, row(1));
  served.gate.waitForOutputs(1);
  auto waits = ask(served.inference, row(2)), room = ask(served.inference, row(3));
  waitForCalls(served.inference, 2);
  auto end = std::async(std::launch::async, [&] { served.inference.shutdown(); });
  waitForCalls(served.inference, 1);
  served.gate.openUp();
  CHECK(valueOf(computed) == 1);
  const int refused = static_cast<int>(thrown<InferenceShutDown>([&] { waits.get(); }) != "") +
                      static_cast<int>(thrown<InferenceShutDown>([&] { room.get(); }) != "");
  CHECK(refused == 1);  // either of the two may come first
}

TEST_CASE("a replica that cannot be constructed is named") {
  ToyModel model;
  model.control().onReplicate = [](int replica) {
    if (replica == 2) throw std::runtime_error("boom");
  };
  CHECK_CONTAINS(
      thrown<TrainingError>([&] { ParallelInference(model, {.workers = 2, .pinThreads = false}); }),
      "could not be made: boom");
}

TEST_CASE("invalid options of ParallelInference are refused by name") {
  ToyModel model;
  const std::pair<InferenceOptions, const char*> rows[] = {
      {{.workers = 0}, "workers"},
      {{.batchLimit = 0}, "batchLimit"},
      {{.batchLimit = 65'537}, "batchLimit: at least 1 and at most 65536"},
      {{.batchTime = -1us}, "batchTime"},
      {{.mode = InferenceMode::Sequential, .batchTime = 1us}, "batchTime"},
      {{.queueLimit = 0}, "queueLimit"},
      {{.devices = {}}, "devices"},
      {{.threadsPerWorker = 0}, "threadsPerWorker"},
      {{.threadsPerWorker = 1'025}, "threadsPerWorker: at least 1 and at most 1024"}};
  for (const auto& [options, begin] : rows)
    CHECK(thrown<InvalidArgument>([&] { ParallelInference(model, options); }).starts_with(begin));
}

TEST_CASE("ParallelInference can be moved, and a moved-from object throws a clear exception") {
  ToyModel model;
  ParallelInference first(model, {.workers = 2, .pinThreads = false});
  ParallelInference second = std::move(first);
  CHECK(second.output(row(1)).output.data<float>()[0] == 1);
  CHECK(thrown<InvalidArgument>([&] { first.output(row(1)); }).find("moved from") != std::string::npos);
  CHECK(second.plan().find("2 workers on cpu") == 0);
  CHECK(second.plan().find("batches of 1, 2, 4, 8, 12, 16, 28, 32 examples") != std::string::npos);
}
