#include "muster/core/data/in_memory.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/computation_graph.h"
#include "tests/core/nn/test.h"
#include "tests/core/nn/user_layer.h"
#include "tests/support/all_updaters.h"
#include "tests/support/allocations.h"
#include "tests/support/devices.h"
#include "tests/support/log_lines.h"
#include "tests/support/network_probe.h"

// Enqueued and recorded steps, as on a GPU. On request the CPU does the same, with the same bits as steps
// that are computed immediately.

using namespace muster;

namespace {

MultiLayerConfiguration images(Updater updater = Adam{.learningRate = 0.01}) {
  return {.seed = 5,
          .updater = std::move(updater),
          .l1 = 1e-5,
          .l2 = 1e-4,
          .clipNorm = 1,
          .inputShape = {1, 8, 8},
          .layers = {Conv2d{.outChannels = 4, .kernel = {3, 3}, .activation = Activation::ReLU}, MaxPool2d{},
                     Dropout{.rate = 0.3}, Dense{.units = 12, .activation = Activation::GELU},
                     Output{.classes = 3}}};
}

/// The same batch with example weights.
Batch weighted(Batch batch) {
  Tensor& mask = Batch::ensure(batch.masks, "labels", {batch.examples()});
  for (std::int64_t i = 0; i < batch.examples(); ++i)
    mask.data<float>()[i] = i % 3 == 0 ? 0.0f : static_cast<float>(i);
  return batch;
}

/// The same batch with byte features.
Batch asBytes(Batch batch) {
  const Tensor numbers = batch.features[0].value;
  Tensor& bytes = Batch::ensureOnly(batch.features, "bytes", numbers.shape(), DType::UInt8);
  for (std::int64_t i = 0; i < bytes.elements(); ++i)
    bytes.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i);
  return batch;
}

/// Batches of several sizes and forms, each of which recurs.
std::vector<Batch> mixture(std::int64_t count) {
  std::vector<Batch> batches;
  for (std::int64_t i = 0; i < count; ++i) {
    auto batch = test::classBatch({1, 8, 8}, i % 4 == 3 ? 5 : 16, 3, static_cast<std::uint64_t>(i % 8));
    if (i % 5 == 2) batch = weighted(batch);
    if (i % 7 == 4) batch = asBytes(batch);
    batch.stamp = {.sequence = i, .epoch = i / 8, .iteration = i, .firstExample = 16 * (i % 8)};
    batches.push_back(batch);
  }
  return batches;
}

/// A batch whose mask has a name of its own.
Batch ofForm(int form) {
  auto batch = test::classBatch({1, 8, 8}, 4, 3, 1);
  Batch::ensure(batch.masks, fmt::format("weights{}", form), {4});
  std::ranges::fill(batch.masks[0].value.span<float>(), static_cast<float>(1 + form));
  return batch;
}

/// Initialises both; the steps of the first are enqueued.
void initEnqueued(Network& model, Network& other, bool enqueued = true) {
  model.init();
  other.init();
  test::setEnqueuedSteps(model, enqueued);
}

std::vector<double> scoresOf(Network& network, const std::vector<Batch>& batches) {
  std::vector<double> scores;
  for (const auto& batch : batches) {
    const StepScore score = network.step(batch).wait();
    scores.push_back(score.score);
    scores.push_back(score.weight);
  }
  return scores;
}

/// Compares all state except the gradients.
bool sameState(Network& a, Network& b) {
  const auto mine = a.state(), theirs = b.state();
  for (std::size_t i = 0; i < mine.size(); ++i)
    if (mine[i]->kind != BlockKind::Gradients &&
        !test::sameBits(copyTo(mine[i]->values, Device::cpu()), copyTo(theirs[i]->values, Device::cpu())))
      return false;
  return true;
}

/// Trains on the CPU with immediate and with enqueued steps, and compares both.
template <typename T, typename Configuration>
void checkBothWays(const Configuration& configuration, const std::vector<Batch>& batches, bool recordable) {
  T atOnce(configuration), enqueued(configuration);
  initEnqueued(enqueued, atOnce);
  CHECK(scoresOf(enqueued, batches) == scoresOf(atOnce, batches));
  CHECK(sameState(enqueued, atOnce));
  CHECK(test::stepCounts(atOnce).launched == 0);
  CHECK((test::stepCounts(enqueued).launched > 0) == recordable);
  enqueued.gradient(batches[0]);
  atOnce.gradient(batches[0]);
  CHECK(sameState(enqueued, atOnce));
  CHECK(
      test::sameBits(enqueued.block(BlockKind::Gradients).values, atOnce.block(BlockKind::Gradients).values));
}

struct TwiceProgram final : test::CopyProgram {
  using CopyProgram::CopyProgram;
  void forward(const Tensor& x, Tensor& y, const StepInfo&) override { scale(2, x, y, context); }
  void backward(const Tensor&, const Tensor&, Tensor& gradY, Tensor& gradX, const StepInfo& info) override {
    weight = info.lossWeight;
    if (gradX.defined()) scale(2, gradY, gradX, context);
  }
  static inline double weight = 0;
};
/// y = 2 x; does not declare that it can be recorded.
struct Twice : test::UserLayer<TwiceProgram> {
  static constexpr std::string_view kType = "twice";
};

struct AllocatingProgram final : test::CopyProgram {
  using CopyProgram::CopyProgram;
  bool recordable() const override { return true; }
  void backward(const Tensor& x, const Tensor& y, Tensor& gradY, Tensor& gradX, const StepInfo& i) override {
    const Tensor memory = allocates ? Tensor::zeros({1 << 20}, DType::Float32, context.device()) : Tensor();
    CopyProgram::backward(x, y, gradY, gradX, i);
  }
  static inline bool allocates = true;
};
/// y = x; declares that it can be recorded, but allocates in its backward pass.
struct Allocating : test::UserLayer<AllocatingProgram> {
  static constexpr std::string_view kType = "allocating";
};

/// Plain descent without `settings()`.
struct OwnRule {
  static constexpr std::string_view kType = "own";
  Schedule learningRate = 0.1;
  std::vector<std::string> stateNames() const { return {}; }
  double apply(const UpdateStep& step, Context& context) const {
    return updateOnce({.clipValue = step.clipValue}, step.blocks, step.ranges, context, 1,
                      step.gradientScale);
  }
  void fields(Fields&) {}
  void validate() const {}
};

}  // namespace

TEST_CASE("enqueued steps have the bits of steps that are computed at once, with every updater") {
  for (const auto& updater : test::allUpdaters()) {
    CAPTURE(updater.type());
    checkBothWays<MultiLayerNetwork>(images(Updater::named(updater.type(), 0.01)), mixture(24), true);
  }
}

TEST_CASE(
    "enqueued steps on normalised and masked sequences, and of graphs with several losses, have those bits, "
    "too") {
  std::vector<Batch> sequences;
  for (std::int64_t i = 0; i < 6; ++i) {
    sequences.push_back(test::sequenceBatch({5, 3}, 4, 3, static_cast<std::uint64_t>(i), i % 2 == 0));
    sequences.back().stamp = {.sequence = i, .iteration = i};
  }
  for (std::size_t i = 0; i < 12; ++i) sequences.push_back(Batch(sequences[i]));
  checkBothWays<MultiLayerNetwork>(
      MultiLayerConfiguration{.seed = 2,
                              .inputShape = {5, 3},
                              .layers = {LSTM{.units = 4}, SelfAttention{.heads = 2}, LayerNorm{},
                                         Output{.classes = 3, .perStep = true}}},
      sequences, true);

  ComputationGraphConfiguration graph{.seed = 2, .inputs = {{.name = "x", .shape = {1, 8, 8}}}};
  graph.add("conv", Conv2d{.outChannels = 3, .kernel = {3, 3}}, {"x"});
  graph.add("norm", BatchNorm{.activation = Activation::ReLU}, {"conv"});
  graph.addOutput(graph.add("a", Output{.classes = 3}, {"norm"}));
  graph.addOutput(graph.add("b", Output{.classes = 3}, {"norm"}), 0.25);
  std::vector<Batch> batches;
  for (std::uint64_t i = 0; i < 6; ++i) {
    batches.push_back(test::classBatch({1, 8, 8}, 6, 3, i));
    batches.back().labels[0].name = std::string("a");
    batches.back().labels.push_back({"b", batches.back().labels[0].value});
  }
  checkBothWays<ComputationGraph>(graph, batches, true);
}

TEST_CASE("steps with a user-defined layer that does not declare itself recordable are run call by call") {
  auto configuration = images();
  configuration.layers.insert(configuration.layers.begin() + 1, Twice{});
  checkBothWays<MultiLayerNetwork>(configuration, mixture(12), false);
  // And it gets the loss's weight.
  TwiceProgram::weight = 0;
  MultiLayerNetwork model(configuration);
  model.init();
  test::setEnqueuedSteps(model, true);
  model.step(test::classBatch({1, 8, 8}, 7, 3, 1));
  CHECK(TwiceProgram::weight == 7);

  auto onDevice = images();
  onDevice.layers[3] = OnDevice(onDevice.layers[3], Device::cpu());
  checkBothWays<MultiLayerNetwork>(onDevice, mixture(12), true);  // the network's own device: as if unsaid
}

TEST_CASE_ON("a layer that allocates during a recording ends it, and the steps continue with the right bits",
             Where, test::OnGpu, test::OnGpuInTensorFloat32) {
  Context context(Where::device(), Where::options());
  auto configuration = images();
  // Between two layers with gradients beside each other, so that the side stream is part of the recording.
  configuration.layers.insert(configuration.layers.begin() + 3, Allocating{{"allocating"}});
  const auto batches = mixture(24);
  const auto train = [&](bool allocates) {
    AllocatingProgram::allocates = allocates;
    auto model = std::make_unique<MultiLayerNetwork>(configuration, context);
    model->init();
    const auto scores = scoresOf(*model, batches);
    CHECK((test::stepCounts(*model).launched > 0) == !allocates);
    return std::pair(std::move(model), scores);
  };
  const test::LogLines lines;
  const auto broken = train(true);
  // Each form of batch has tried to record once and logged the failure; nothing else failed.
  for (const auto& line : lines.all())
    if (line.starts_with("warning: ")) CHECK_CONTAINS(line, "run call by call: layer allocating: ");
  const auto recorded = train(false);  // in the same context
  CHECK(broken.second == recorded.second);
  CHECK(sameState(*broken.first, *recorded.first));
  AllocatingProgram::allocates = true;
}

TEST_CASE("a step waits for an updater without settings, and gives the same bits") {
  checkBothWays<MultiLayerNetwork>(images(OwnRule{.learningRate = 0.05}), mixture(12), true);
}

TEST_ON_DEVICES("batches of a resident data set are gathered on the network's device") {
  const auto all = asBytes(test::classBatch({1, 8, 8}, 37, 3, 2));
  const auto train = [&](MemoryPlacement placement, bool enqueued) {
    Context context(Where::device(), Where::options());
    auto model = std::make_unique<MultiLayerNetwork>(images());
    MultiLayerNetwork there(images(), context);
    there.init();
    if (enqueued) test::setEnqueuedSteps(there, true);
    InMemoryDataSetIterator data(all.features[0].value, all.labels[0].value, 8, 5, placement);
    there.fit(data, 3);
    CHECK((test::stepCounts(there).launched > 0) == enqueued);
    model->init();
    model->copyStateFrom(there);
    const auto accuracy = there.evaluate(data).accuracy();
    CHECK(accuracy == model->evaluate(data).accuracy());
    return model;
  };
  const auto expected = train(MemoryPlacement::Host, true);
  CHECK(sameState(*train(MemoryPlacement::Device, true), *expected));
  if (!Where::device().isCpu()) return;
  CHECK(sameState(*train(MemoryPlacement::Host, false), *expected));
  CHECK(sameState(*train(MemoryPlacement::Device, false), *expected));
}

TEST_CASE("a batch with a row number out of range is refused") {
  MultiLayerNetwork model(images());
  model.init();
  const auto all = test::classBatch({1, 8, 8}, 4, 3, 2);
  InMemoryDataSetIterator data(all.features[0].value, all.labels[0].value, 2, {}, MemoryPlacement::Device);
  Batch batch;
  REQUIRE(data.next(batch));
  batch.labels[0].value.data<std::int64_t>()[1] = 4;
  CHECK_REFUSED(model.step(batch), "gather: int64 [4] on cpu has no row 4");
  test::setEnqueuedSteps(model, true);
  CHECK_REFUSED(model.step(batch), "network: the batch's labels name row 4 of int64 [4] on cpu");
  batch.labels[0].value.data<std::int64_t>()[1] = 0;
  CHECK(std::isfinite(model.step(batch).wait().score));
}

TEST_CASE("enqueued steps allocate nothing, with batches of two sizes and with a mask") {
  MultiLayerNetwork model(images());
  model.init();
  test::setEnqueuedSteps(model, true);
  const auto full = test::classBatch({1, 8, 8}, 16, 3, 1), rest = test::classBatch({1, 8, 8}, 5, 3, 1);
  const auto masked = weighted(test::classBatch({1, 8, 8}, 16, 3, 1));
  InMemoryDataSetIterator data(full.features[0].value, full.labels[0].value, 16, {}, MemoryPlacement::Device);
  Batch rows;
  REQUIRE(data.next(rows));
  double sum = 0;
  const auto round = [&] {
    for (const Batch* batch : std::initializer_list<const Batch*>{&full, &rest, &masked, &rows})
      sum += model.step(*batch).wait().score;
  };
  for (int i = 0; i < 4; ++i) round();
  for (int i = 0; i < 2; ++i) CHECK(test::allocationsIn(round) == 0);
  CHECK(std::isfinite(sum));
}

TEST_CASE(
    "a network keeps a few batch sizes and forms, and says once that more take turns; tickets outlive both") {
  const auto sizes = [](int count) {
    std::vector<Batch> batches;
    for (int i = 0; i < count; ++i) batches.push_back(test::classBatch({1, 8, 8}, 2 + i, 3, 1));
    return batches;
  };
  const auto forms = [](int count) {
    std::vector<Batch> batches;
    for (int i = 0; i < count; ++i) batches.push_back(ofForm(i));
    return batches;
  };
  for (const auto& [kept, batches, more, what] : {std::tuple{8, sizes(8), sizes(12), "sizes"},
                                                  {4, forms(4), forms(5), "forms (masks, element types)"}}) {
    CAPTURE(what);
    MultiLayerNetwork model(images()), reference(images());
    initEnqueued(model, reference);
    const test::LogLines lines;
    const auto warning =
        fmt::format("warning: network: batches of more than {} {} take turns; ", kept, what) +
        "steps of the others are prepared again each time";
    std::vector<StepTicket> tickets;
    std::vector<double> expected;
    for (const auto* some : {&batches, &more}) {
      for (int round = 0; round < 3; ++round)
        for (const auto& batch : *some) {
          tickets.push_back(model.step(batch));
          expected.push_back(reference.step(batch).wait().score);
        }
      CHECK(std::ranges::count(lines.all(), warning) == (some == &batches ? 0 : 1));
    }
    for (std::size_t i = 0; i < tickets.size(); ++i) CHECK(tickets[i].wait().score == expected[i]);
    CHECK(sameState(model, reference));
  }
}

TEST_ON_DEVICES("a gradient or a score that is not finite changes nothing, and the gradient is named") {
  Context context(Where::device(), Where::options());
  for (const double clipNorm : {0.0, 1.0}) {
    const MultiLayerConfiguration configuration{
        .seed = 3,
        .updater = Nesterovs{.learningRate = 0.1, .momentum = 0.9},
        .clipNorm = clipNorm,
        .inputShape = {6},
        .layers = {Dense{.units = 5, .activation = Activation::Tanh}, Output{.classes = 3}}};
    MultiLayerNetwork model(configuration, context), before(configuration);
    initEnqueued(model, before);
    auto batch = test::classBatch({6}, 4, 3, 1);
    for (int i = 0; i < 4; ++i) model.step(batch);
    before.copyStateFrom(model);
    const auto refused = [&] { return *copyTo(model.stepRefused(), Device::cpu()).data<double>(); };
    float& value = batch.features[0].value.data<float>()[6 + 2];
    const float good = std::exchange(value, test::kInfinity);
    CHECK(test::thrown<NonFiniteScore>([&] {
            model.step(batch).wait();
          }).starts_with("the gradient of dense1.weight is not finite: element 2;"));
    CHECK(refused() == 1);
    CHECK(sameState(model, before));
    value = test::kNan;
    CHECK(std::isnan(model.step(batch).wait().score));
    CHECK(sameState(model, before));
    value = good;
    CHECK(model.step(batch).weight() == 4.0);
    CHECK(std::isfinite(model.step(batch).wait().score));
    CHECK(refused() == 0);
    CHECK_FALSE(sameState(model, before));
    // With a mask, the weight is not known beforehand.
    CHECK_FALSE(model.step(weighted(batch)).weight());
  }
}

TEST_ON_DEVICES("an invalid mask changes neither parameters nor the updater's state") {
  Context context(Where::device(), Where::options());
  for (const bool enqueued : {true, false}) {
    if (!enqueued && !Where::device().isCpu()) continue;
    MultiLayerNetwork model(images(), context), before(images());
    initEnqueued(model, before, enqueued);
    auto batch = test::classBatch({1, 8, 8}, 4, 3, 1);
    Tensor mask = Batch::ensure(batch.masks, "weights", {4});
    std::ranges::fill(mask.span<float>(), 1.0f);
    for (int i = 0; i < 4; ++i) model.step(batch).wait();
    before.copyStateFrom(model);
    for (const float bad : {test::kNan, -1.0f, -3.0f}) {
      mask.data<float>()[1] = bad;
      CHECK_REFUSED(
          model.step(batch).wait(),
          fmt::format("batch: the mask weights of example 1 is {}; it must be finite and at least 0", bad));
      CHECK(sameState(model, before));
    }
  }
}

TEST_ON_DEVICES("a label out of range is reported when the score is read") {
  if (Where::device().isCpu()) return;  // the CPU finds it when the step is enqueued
  Context context(Where::device(), Where::options());
  MultiLayerNetwork model(images(), context);
  model.init();
  auto batch = test::classBatch({1, 8, 8}, 6, 3, 1);
  batch.labels[0].value.data<std::int64_t>()[4] = 3;
  const auto ticket = model.step(batch);
  CHECK_REFUSED(ticket.wait(), "loss: the label of row 4 is 3, expected 0 to 2");
}

TEST_ON_DEVICES("enqueued training agrees with the CPU, and has the same bits twice") {
  Context context(Where::device(), Where::options());
  MultiLayerNetwork onCpu(images()), first(images(), context), second(images(), context);
  for (auto* model : {&onCpu, &first, &second}) model->init();
  CHECK(sameState(onCpu, first));  // drawn from the same random numbers
  const auto batches = mixture(16);
  const auto expected = scoresOf(onCpu, batches), scores = scoresOf(first, batches);
  for (std::size_t i = 0; i < scores.size(); ++i)
    CHECK(scores[i] == doctest::Approx(expected[i]).epsilon(1e-3));
  CHECK(scoresOf(second, batches) == scores);
  CHECK(sameState(first, second));
  const auto batch = batches[0];
  CHECK(first.score(batch) == doctest::Approx(onCpu.score(batch)).epsilon(1e-3));
  Tensor mine, theirs;
  first.output(batch, mine);
  onCpu.output(batch, theirs);
  CHECK(mine.device().isCpu());
  CHECK(test::maxError(mine, test::toArray(theirs)) < 1e-3);
}

TEST_ON_DEVICES("gradients of enqueued steps agree with central differences") {
  Context context(Where::device(), Where::options());
  MultiLayerNetwork model(images(), context);
  model.init();
  test::setEnqueuedSteps(model, true);
  const Tensor before = copyTo(model.block(BlockKind::Parameters).values, Device::cpu());
  test::checkGradientsOf(model, test::classBatch({1, 8, 8}, 6, 3, 4));
  CHECK(test::sameBits(copyTo(model.block(BlockKind::Parameters).values, Device::cpu()), before));
}

TEST_ON_DEVICES("a network's state moves between devices, and through files") {
  Context context(Where::device(), Where::options());
  MultiLayerNetwork trained(images(), context), there(images(), context), here(images());
  for (auto* model : {&trained, &there, &here}) model->init();
  for (const auto& batch : mixture(4)) trained.step(batch);
  here.copyStateFrom(trained);
  CHECK(sameState(here, trained));
  there.copyStateFrom(here);
  CHECK(sameState(there, trained));
  CHECK(sameState(*trained.clone(), trained));
  CHECK(trained.clone()->context().device().isCpu());
  const test::TemporaryDirectory directory;
  trained.save(directory / "model.safetensors");
  CHECK(sameState(*Network::load(directory / "model.safetensors"), trained));
}

TEST_ON_DEVICES("forward() and backward() take and give tensors on the CPU") {
  Context context(Where::device(), Where::options());
  const MultiLayerConfiguration configuration{
      .seed = 3,
      .inputShape = {6},
      .layers = {Dense{.units = 5, .activation = Activation::Tanh}, Dense{.units = 2}}};
  MultiLayerNetwork onCpu(configuration), model(configuration, context);
  const auto batch = test::classBatch({6}, 4, 2, 1);
  Tensor output[2], gradInput[2];
  MultiLayerNetwork* const models[] = {&onCpu, &model};
  for (int i = 0; i < 2; ++i) {
    models[i]->init();
    models[i]->forward(batch.features[0].value, output[i]);
    models[i]->backward(output[i], &gradInput[i]);
  }
  CHECK(test::maxError(output[1], test::toArray(output[0])) < 1e-5);
  CHECK(test::maxError(gradInput[1], test::toArray(gradInput[0])) < 1e-5);
}

TEST_ON_DEVICES("a hundred epochs use no more memory than ten") {
  Context context(Where::device(), Where::options());
  MultiLayerNetwork model(images(), context);
  model.init();
  test::setEnqueuedSteps(model, true);
  test::ListIterator data(mixture(8));
  model.fit(data, 10);
  const auto bytes = test::activationBytes(model);
  const long objects = test::liveObjects();
  model.fit(data, 90);
  CHECK(test::liveObjects() == objects);
  CHECK(test::activationBytes(model) == bytes);
}
