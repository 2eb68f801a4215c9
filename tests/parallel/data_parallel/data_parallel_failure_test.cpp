#include "muster/core/nn/multi_layer_network.h"
#include "tests/parallel/data_parallel.h"

using namespace muster;
using namespace muster::test;

namespace {

std::string refusal(auto call) {
  return thrown<InvalidArgument>(call);
}

struct Failure {
  std::string text;
  int replica = -2;
  std::string cause;
};

Failure failureOf(auto call) {
  try {
    call();
  } catch (const TrainingError& error) {
    return {error.what(), error.worker(), describe(error.cause())};
  }
  return {};
}

/// Checks that a pass succeeds and gives the same as the model alone.
void checkWorks(DataParallel& parallel, SequenceModel<double>& model) {
  model.control().onForward = {};
  model.control().onBackward = {};
  model.control().onReplicate = {};
  const Tensor input = randomTensor<double>({7, 2, 3}, 8), gradOutput = randomTensor<double>({7, 2, 2}, 9);
  SequenceModel<double> alone;
  Tensor output, gradInput;
  alone.forward(input, output);
  alone.backward(gradOutput, &gradInput);
  parallel.zeroGradients();
  CHECK(distance<double>(parallel.forward(input), output) < 1e-12);
  CHECK(distance<double>(parallel.backward(gradOutput), gradInput) < 1e-12);
  CHECK(distance<double>(gradients(model), gradients(alone)) < 1e-12);
}

}  // namespace

TEST_CASE("DataParallel refuses invalid options and inputs by name") {
  SequenceModel<double> model;
  DataParallel parallel(model, cpus(2), 0, unpinned()), third(model, cpus(2), 3, unpinned());
  const Tensor output = Tensor::zeros({4, 2, 2}, DType::Float64), input = randomTensor<double>({4, 2, 3}, 1);
  const std::string noForward = "backward() needs a successful forward() before it";
  const std::pair<std::string, std::function<void()>> rows[] = {
      {"there are no devices", [&] { DataParallel(model, {}); }},
      {"dim must be between 0 and 5, got -1", [&] { DataParallel(model, cpus(2), -1); }},
      {"dim must be between 0 and 5, got 6", [&] { DataParallel(model, cpus(2), 6); }},
      {"threadsPerReplica must be between 1 and 1024, got 0",
       [&] { DataParallel(model, cpus(2), 0, {.threadsPerReplica = 0}); }},
      {"mathMode: cpu has no tf32: only GPUs have it",
       [&] { DataParallel(model, cpus(2), 0, {.mathMode = MathMode::TensorFloat32}); }},
      {noForward, [&] { parallel.backward(output); }},
      {"the input is an undefined tensor; it must be row-major and have a dimension 0 to be split along",
       [&] { parallel.forward(Tensor()); }},
      {"the input float64 [0, 2, 3] on cpu is empty along dimension 0",
       [&] {
         parallel.forward(Tensor::zeros({0, 2, 3}, DType::Float64));
       }},
      {"gradOutput is float64 [4, 2, 3] on cpu, expected float64 [4, 2, 2] as the output",
       [&] {
         parallel.forward(input);
         parallel.backward(input);
       }},
      {"gradOutput is float32 [4, 2, 2] on cpu, expected float64 [4, 2, 2] as the output",
       [&] {
         parallel.backward(Tensor::zeros({4, 2, 2}));
       }},
      {"the learning rate must be finite and not negative, got nan", [&] { parallel.updateParameters(NAN); }},
      {"the learning rate must be finite and not negative, got -1", [&] { parallel.updateParameters(-1); }},
      {noForward,
       [&] {
         CHECK_THROWS_AS(parallel.forward(Tensor()), InvalidArgument);
         parallel.backward(output);
       }},
      {"the input is float64 [4, 2, 3] on cpu; it must be row-major and have a dimension 3 to be split along",
       [&] { third.forward(input); }}};
  for (const auto& [problem, call] : rows) CHECK(refusal(call) == "data parallel: " + problem);
  checkWorks(parallel, model);
}

TEST_CASE("outputs that cannot be concatenated are refused") {
  SequenceModel<double> model({.timeMajor = true});
  DataParallel parallel(model, cpus(2), 1, unpinned());
  model.control().outputWithoutDimension = true;
  CHECK(
      refusal([&] {
        parallel.forward(randomTensor<double>({2, 4, 3}, 1));
      }) ==
      "data parallel: the output of replica 0 on cpu is float64 [8] on cpu; it must be row-major and have a "
      "dimension 1");
  model.control().outputWithoutDimension = false;
  CHECK(parallel.forward(randomTensor<double>({2, 4, 3}, 1)).shape() == Shape{2, 4, 2});
}

TEST_CASE("replicas of another architecture are refused, and can be replaced") {
  const auto text = [](auto makeReplica) {
    SequenceModel<double> model;
    DataParallel parallel(model, cpus(3), 0, unpinned());
    model.control().onReplicate = [&](int number, Context& context) -> std::unique_ptr<Model> {
      if (number == 0) return makeReplica(model, context);
      return std::make_unique<SequenceModel<double>>(SequenceOptions{}, nullptr, &context);
    };
    const auto failure = failureOf([&] { parallel.forward(randomTensor<double>({7, 2, 3}, 1)); });
    CHECK(failure.replica >= 0);
    CHECK(failure.text.starts_with(fmt::format("replica {} on cpu could not be made: ", failure.replica)));
    checkWorks(parallel, model);
    return failure.cause;
  };
  using Double = SequenceModel<double>;
  CHECK(text([](Double&, Context&) { return nullptr; }) == "the model's replicate() returned nothing");
  // The same number of tensors, but different ones.
  CHECK(text([](Double&, Context& c) {
          return std::make_unique<Double>(SequenceOptions{.features = 2}, nullptr, &c);
        }) == "its input [5, 2] in the block parameters differs from the model's input [5, 3]");
  CHECK(text([](Double&, Context&) -> std::unique_ptr<Model> { throw std::runtime_error("boom"); }) ==
        "boom");
}

TEST_CASE("a replica that throws is named, the others finish, and the next pass works") {
  for (const int bad : {0, 1, 2}) {
    SequenceModel<double> model;
    DataParallel parallel(model, cpus(3), 0, unpinned());
    const Tensor input = randomTensor<double>({6, 2, 3}, 1), gradOutput = randomTensor<double>({6, 2, 2}, 1);
    std::atomic<int> finished{0};
    std::atomic<const Model*> culprit{nullptr};
    model.control().onForward = [&](const Model* replica, const ForwardPass& pass) {
      if (pass.firstExample == 2 * bad) {
        culprit = replica;
        throw std::runtime_error("boom");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ++finished;
    };
    auto failure = failureOf([&] { parallel.forward(input); });
    CHECK(failure.text == fmt::format("replica {} on cpu failed in forward: boom", bad));
    CHECK(failure.replica == bad);
    CHECK(failure.cause == "boom");
    CHECK(finished == 2);
    CHECK(parallel.shapes().empty());
    CHECK(refusal([&] { parallel.backward(gradOutput); }) ==
          "data parallel: backward() needs a successful forward() before it");

    model.control().onForward = {};
    parallel.forward(input);
    parallel.backward(gradOutput);
    const Tensor before = cloneTensor(gradients(model));
    model.control().onBackward = [&](const Model* replica) {
      if (replica == culprit) throw std::runtime_error("bang");
    };
    failure = failureOf([&] { parallel.backward(gradOutput); });
    CHECK(failure.text == fmt::format("replica {} on cpu failed in backward: bang", bad));
    CHECK(sameBits(gradients(model), before));
    checkWorks(parallel, model);
  }
}

TEST_CASE("if several replicas throw, the first in order is named") {
  SequenceModel<double> model;
  DataParallel parallel(model, cpus(3), 0, unpinned());
  model.control().onForward = [](const Model*, const ForwardPass& pass) {
    if (pass.firstExample == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(pass.firstExample == 2 ? 20 : 0));
    throw std::runtime_error("boom");
  };
  CHECK(failureOf([&] { parallel.forward(randomTensor<double>({6, 2, 3}, 1)); }).replica == 1);
  checkWorks(parallel, model);
}

TEST_CASE("a replica that cannot be started is named") {
  SequenceModel<double> model;
  CHECK(failureOf([&] {
          DataParallel(model, cpus(3), 0, unpinned([](int replica) {
                         if (replica == 1) throw std::runtime_error("boom");
                       }));
        }).text == "replica 1 on cpu could not be started: boom");
  CHECK(failureOf([&] {
          DataParallel(model, {Device::cpu(), Device::cuda(7)});
        }).text.starts_with("replica 1 on cuda:7 could not be started: "));
  MultiLayerNetwork network({.inputShape = {3}, .layers = {Dense{.units = 2}}});
  network.init();
  DataParallel parallel(network, cpus(2), 0, unpinned());
  CHECK(failureOf([&] {
          parallel.forward(Tensor::zeros({4, 2}));
        }).text.starts_with("replica 0 on cpu failed in forward: network: expected features [3]"));
}

TEST_CASE("a model without parameters or forward is refused") {
  struct Empty final : Model {
    std::unique_ptr<Model> replicate(Context&) const override { return std::make_unique<Empty>(); }
    StepTicket gradient(const Batch&) override { return StepTicket({}); }
    std::span<StateBlock> blocks() override { return {}; }
  } empty;
  DataParallel parallel(empty, cpus(2), 0, unpinned());
  CHECK(refusal([&] {
          parallel.forward(Tensor::zeros({4, 2}));
        }).starts_with("model: it has no gradient block"));
  CHECK(refusal([&] { parallel.updateParameters(1); }).starts_with("model: it has no parameters yet"));
}
