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
  explicit Gate(ToyModel& model) {
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
  bool open = false;
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

TEST_CASE("calls that wait while the worker is busy are joined, and padded to a compiled size") {
  ToyModel model;
  model.setParameters({10});
  Gate gate(model);
  ParallelInference inference(model, {.batchLimit = 16, .pinThreads = false});
  std::vector<Answer> answers;
  answers.push_back(ask(inference, row(0)));
  gate.waitForOutputs(1);
  for (int i = 1; i <= 7; ++i) answers.push_back(ask(inference, row(static_cast<float>(i))));
  waitForCalls(inference, 7);
  gate.openUp();
  for (int i = 0; i <= 7; ++i) CHECK(valueOf(answers[i]) == static_cast<float>(10 + i));
  CHECK(gate.sizes == std::vector<std::int64_t>{1, 8});
}

TEST_CASE("each caller owns its output") {
  ToyModel model;
  Gate gate(model);
  ParallelInference inference(model, {.pinThreads = false});
  std::vector<Answer> answers;
  answers.push_back(ask(inference, row(0)));
  gate.waitForOutputs(1);
  for (int i = 1; i <= 4; ++i) answers.push_back(ask(inference, row(static_cast<float>(i))));
  waitForCalls(inference, 4);
  gate.openUp();
  std::vector<Tensor> outputs;
  for (auto& answer : answers) outputs.push_back(answer.get().output);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Tensor larger = outputs[i];
    larger.resize({4, 1}, DType::Float32);  // would keep the memory of a tensor with four rows
    std::ranges::fill(larger.span<float>(), -1.0f);
    CHECK(inference.output(row(9)).output.data<float>()[0] == 9);
    for (std::size_t other = i + 1; other < outputs.size(); ++other) {
      CHECK(outputs[other].shape() == Shape{1, 1});
      CHECK(outputs[other].data<float>()[0] == static_cast<float>(other));
      CHECK(!shareMemory(larger, outputs[other]));
    }
  }
}

TEST_CASE("with a batch time the first call waits for others") {
  ToyModel model;
  Gate gate(model);
  gate.openUp();
  ParallelInference inference(model, {.batchLimit = 3, .batchTime = 1h, .pinThreads = false});
  std::vector<Answer> answers;
  for (int i = 0; i < 3; ++i) answers.push_back(ask(inference, row(static_cast<float>(i))));
  for (int i = 0; i < 3; ++i) CHECK(valueOf(answers[i]) == static_cast<float>(i));
  CHECK(gate.sizes == std::vector<std::int64_t>{3});
}

TEST_CASE("a full group does not wait for an earlier one's batch time") {
  for (const int workers : {1, 2}) {
    CAPTURE(workers);
    ToyModel model;
    Gate gate(model);
    gate.openUp();
    ParallelInference inference(model,
                                {.workers = workers, .batchLimit = 4, .batchTime = 1h, .pinThreads = false});
    auto tooMany = ask(inference, row(1, 3));
    waitForCalls(inference, 1);
    auto otherShape = ask(inference, row(2).reshape({1, 1, 1}));
    waitForCalls(inference, 2);
    std::vector<Answer> full;
    for (int i = 3; i <= 4; ++i) full.push_back(ask(inference, row(static_cast<float>(i), 2)));
    for (int i = 3; i <= 4; ++i) CHECK(valueOf(full[i - 3]) == static_cast<float>(i));
    CHECK(inference.waitingCalls() == 2);
    CHECK(gate.sizes == std::vector<std::int64_t>{4});
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
    ToyModel model;
    Gate gate(model);
    gate.openUp();
    ParallelInference inference(
        model,
        {.batchLimit = 8, .batchTime = 1h, .queueLimit = 2, .whenFull = whenFull, .pinThreads = false});
    auto first = ask(inference, row(1));
    waitForCalls(inference, 1);
    auto otherShape = ask(inference, row(2).reshape({1, 1, 1}));
    CHECK(valueOf(first) == 1);
    CHECK(inference.waitingCalls() == 1);
    auto third = ask(inference, row(3).reshape({1, 1, 1}));
    CHECK(valueOf(otherShape) == 2);
    CHECK(valueOf(third) == 3);
    CHECK(gate.sizes == std::vector<std::int64_t>{1, 2});
  }
}

TEST_CASE("a batch time that has passed ends the waiting") {
  ToyModel model;
  ParallelInference inference(model, {.batchLimit = 3, .batchTime = 1ms, .pinThreads = false});
  CHECK(inference.output(row(2)).output.data<float>()[0] == 2);
}

TEST_CASE("a model that knows its input shape is compiled at the start unless an option says otherwise") {
  Knowing model;
  Gate gate(model.toy);
  gate.openUp();
  const ParallelInference batched(model, {.batchLimit = 3, .pinThreads = false});
  CHECK(gate.sizes == std::vector<std::int64_t>{1, 2, 3});
  const ParallelInference notCompiled(model, {.batchLimit = 3, .example = Batch{}, .pinThreads = false});
  const ParallelInference sequential(model, {.mode = InferenceMode::Sequential, .pinThreads = false});
  CHECK(gate.sizes.size() == 3);
}

TEST_CASE("a deadline ends a call that waits or is being computed") {
  for (const auto mode : {InferenceMode::Sequential, InferenceMode::Batched}) {
    ToyModel model;
    Gate gate(model);
    ParallelInference inference(model, {.mode = mode, .pinThreads = false});
    auto computed = ask(inference, row(1), Clock::now() + 20ms);
    gate.waitForOutputs(1);
    auto waits = ask(inference, row(2), Clock::now() + 20ms);
    CHECK(thrown<DeadlineExceeded>([&] { computed.get(); }) != "");
    CHECK(thrown<DeadlineExceeded>([&] { waits.get(); }) != "");
    gate.openUp();
    CHECK(inference.output(row(3)).output.data<float>()[0] == 3);
  }
}

TEST_CASE("a deadline that has passed before the call is answered at once, and nothing is computed") {
  for (const auto mode : {InferenceMode::Batched, InferenceMode::Sequential, InferenceMode::InPlace}) {
    ToyModel model;
    std::atomic<int> computed = 0;
    model.control().onOutput = [&](const Batch&) { ++computed; };
    ParallelInference inference(model, {.mode = mode});
    for (const auto deadline : {Clock::now(), Clock::time_point::min(), Clock::time_point()})
      CHECK(thrown<DeadlineExceeded>([&] { inference.output(row(2), deadline); }) ==
            "output: the deadline passed before the call");
    CHECK(computed == 0);
  }
}

TEST_CASE("with InPlace a caller gets its turn even if others call again at once") {
  ToyModel model;
  ParallelInference inference(model, {.mode = InferenceMode::InPlace});
  std::atomic<bool> stop{false};
  std::vector<std::jthread> others;
  for (int i = 0; i < 3; ++i)
    others.emplace_back([&] {
      while (!stop) inference.output(row(1));
    });
  for (int i = 0; i < 20; ++i) CHECK(inference.output(row(2)).output.data<float>()[0] == 2);
  stop = true;
}

TEST_CASE("a call that leaves its group makes room in it, and the last one ends the group") {
  ToyModel model;
  Gate gate(model);
  ParallelInference inference(model, {.batchLimit = 2, .pinThreads = false});
  auto computed = ask(inference, row(0));
  gate.waitForOutputs(1);
  std::vector<Answer> late;
  for (int i = 0; i < 3; ++i) late.push_back(ask(inference, row(9), Clock::now() + 10ms));
  for (auto& answer : late) CHECK(thrown<DeadlineExceeded>([&] { answer.get(); }) != "");
  CHECK(inference.waitingCalls() == 0);
  auto first = ask(inference, row(1)), leaves = ask(inference, row(2), Clock::now() + 20ms);
  CHECK(thrown<DeadlineExceeded>([&] { leaves.get(); }) != "");
  auto second = ask(inference, row(3));
  waitForCalls(inference, 2);
  gate.openUp();
  CHECK(valueOf(computed) == 0);
  CHECK(valueOf(first) == 1);
  CHECK(valueOf(second) == 3);
  CHECK(gate.sizes == std::vector<std::int64_t>{1, 2});
}

TEST_CASE("a caller whose thread is cancelled leaves, and all others are answered") {
  if (kThreadSanitizer) return skip("ThreadSanitizer sees no mutex of a thread that is being cancelled");
  for (const auto mode : kModes) {
    CAPTURE(nameOf(mode));
    ToyModel model;
    Gate gate(model);
    ParallelInference inference(model, {.mode = mode, .batchLimit = 1, .queueLimit = 2, .pinThreads = false});
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
    CHECK(inference.output(row(7)).output.data<float>()[0] == 7);
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

TEST_CASE("a full queue refuses calls, or lets them wait") {
  for (const auto mode : kModes)
    for (const auto whenFull : {WhenFull::Refuse, WhenFull::Wait}) {
      CAPTURE(nameOf(mode));
      ToyModel model;
      Gate gate(model);
      ParallelInference inference(
          model, {.mode = mode, .batchLimit = 1, .queueLimit = 1, .whenFull = whenFull, .pinThreads = false});
      auto computed = ask(inference, row(1));
      gate.waitForOutputs(1);
      auto waits = ask(inference, row(2));
      waitForCalls(inference, 1);
      Answer third;
      if (whenFull == WhenFull::Refuse) {
        CHECK(thrown<QueueFull>([&] { inference.output(row(3)); }) ==
              "output: 1 call waits, which is the queue limit");
      } else {
        third = ask(inference, row(3));
        waitForCalls(inference, 2);
      }
      gate.openUp();
      CHECK(valueOf(computed) == 1);
      CHECK(valueOf(waits) == 2);
      if (whenFull == WhenFull::Wait) CHECK(valueOf(third) == 3);
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
  ToyModel model;
  ParallelInference inference(model, {.pinThreads = false});
  CHECK_REFUSED(inference.output(Batch{}), "output: a batch without features");
  Batch uneven;
  uneven.features = {{"a", row(1, 2)}, {"b", row(1, 3)}};
  CHECK_REFUSED(inference.output(uneven),
                "output: \"b\" is float32 [3, 1] on cpu, but the batch has 2 examples");
}

TEST_CASE("shutdown() answers the calls that wait, and refuses later ones") {
  for (const auto mode : kModes) {
    CAPTURE(nameOf(mode));
    ToyModel model;
    Gate gate(model);
    ParallelInference inference(model, {.mode = mode, .batchLimit = 1, .queueLimit = 1, .pinThreads = false});
    auto computed = ask(inference, row(1));
    gate.waitForOutputs(1);
    auto waits = ask(inference, row(2));
    waitForCalls(inference, 1);
    auto end = std::async(std::launch::async, [&] { inference.shutdown(); });
    // Before shutdown has begun, a call waits for room or for the replica.
    while (thrown<InferenceShutDown>([&] {
             try {
               inference.output(row(3), Clock::now() + 1ms);
             } catch (const DeadlineExceeded&) {
             }
           }) == "") {
    }
    gate.openUp();
    CHECK(valueOf(computed) == 1);
    CHECK(valueOf(waits) == 2);
    end.get();
    CHECK(thrown<InferenceShutDown>([&] { inference.output(row(4)); }) ==
          "output: this ParallelInference was shut down");
    inference.shutdown();
  }
}

TEST_CASE("shutdown() refuses a call that waits for room in the queue") {
  ToyModel model;
  Gate gate(model);
  ParallelInference inference(model, {.batchLimit = 1, .queueLimit = 1, .pinThreads = false});
  auto computed = ask(inference, row(1));
  gate.waitForOutputs(1);
  auto waits = ask(inference, row(2)), room = ask(inference, row(3));
  waitForCalls(inference, 2);
  auto end = std::async(std::launch::async, [&] { inference.shutdown(); });
  waitForCalls(inference, 1);
  gate.openUp();
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
  CHECK(thrown<TrainingError>([&] {
          ParallelInference(model, {.workers = 2, .pinThreads = false});
        }).find("could not be made: boom") != std::string::npos);
}

TEST_CASE("invalid options of ParallelInference are refused by name") {
  ToyModel model;
  const auto refusal = [&](InferenceOptions options) {
    return thrown<InvalidArgument>([&] { ParallelInference(model, std::move(options)); });
  };
  CHECK(refusal({.workers = 0}).starts_with("workers"));
  CHECK(refusal({.batchLimit = 0}).starts_with("batchLimit"));
  CHECK(refusal({.batchTime = -1us}).starts_with("batchTime"));
  CHECK(refusal({.mode = InferenceMode::Sequential, .batchTime = 1us}).starts_with("batchTime"));
  CHECK(refusal({.queueLimit = 0}).starts_with("queueLimit"));
  CHECK(refusal({.batchLimit = 65'537}).starts_with("batchLimit: at least 1 and at most 65536"));
  CHECK(refusal({.threadsPerWorker = 1'025}).starts_with("threadsPerWorker: at least 1 and at most 1024"));
  CHECK(refusal({.devices = {}}).starts_with("devices"));
  CHECK(refusal({.threadsPerWorker = 0}).starts_with("threadsPerWorker"));
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
