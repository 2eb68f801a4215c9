#include "tests/support/reference_model.h"

#include "muster/core/nn/gradient_check.h"
#include "tests/core/nn/batches.h"
#include "tests/support/list_iterator.h"
#include "tests/support/state_bits.h"
#include "tests/support/test.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

/// Options with every term of a step and changing learning rates.
std::vector<TrainingOptions> everyUpdater() {
  const Schedule rate = StepSchedule{.initial = 0.05, .decay = 0.5, .every = 3};
  std::vector<TrainingOptions> all;
  for (const auto& updater :
       std::vector<Updater>{Sgd{.learningRate = rate}, Nesterovs{.learningRate = rate, .momentum = 0.8},
                            Adam{.learningRate = rate, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3},
                            AdamW{.learningRate = rate, .epsilon = 1e-3, .weightDecay = 0.3},
                            RmsProp{.learningRate = rate, .decay = 0.75, .epsilon = 1e-3},
                            AdaGrad{.learningRate = rate, .epsilon = 1e-3}}) {
    all.push_back({.updater = updater});
    all.push_back(
        {.updater = updater, .l1 = 0.01, .l2 = 0.05, .weightDecay = 0.1, .clipNorm = 0.4, .clipValue = 0.1});
  }
  return all;
}

/// Labels as class indices, as one-hot rows, and as class indices with a mask.
std::vector<Batch> everyKindOfBatch(const ReferenceOptions& o) {
  const Batch indices = classBatch({o.inputs}, 9, o.classes, 3);
  Batch rows = indices, masked = indices;
  rows.labels.clear();
  Tensor& labels = Batch::ensure(rows.labels, "labels", {9, o.classes});
  std::ranges::fill(labels.span<float>(), 0.0f);
  for (std::int64_t n = 0; n < 9; ++n)
    labels.data<float>()[n * o.classes + indices.labels[0].value.data<std::int64_t>()[n]] = 1;
  masked.masks.push_back({"mask", Tensor::of({1, 0, 0.5f, 1, 0, 2, 1, 1, 0.25f}, {9})});
  return {indices, rows, masked};
}

Array valuesOf(Model& model, BlockKind kind) {
  return toArray(model.block(kind).values);
}

}  // namespace

TEST_CASE("the reference model's loss and gradient equal the float32 network's, dropout included") {
  const ReferenceOptions options{.dropout = 0.4, .seed = 17};
  ReferenceModel reference(options);
  MultiLayerNetwork network(networkOf(options));
  network.init();
  CHECK(maxError(network.block(BlockKind::Parameters).values, valuesOf(reference, BlockKind::Parameters)) ==
        0);
  for (auto& batch : everyKindOfBatch(options)) {
    batch.stamp = {.sequence = 2, .epoch = 3, .iteration = 40, .firstExample = 57};
    const StepScore wide = reference.gradient(batch).wait(), narrow = network.gradient(batch).wait();
    CHECK(narrow.weight == wide.weight);
    CHECK(narrow.score == doctest::Approx(wide.score).epsilon(1e-6));
    CHECK(maxError(network.block(BlockKind::Gradients).values, valuesOf(reference, BlockKind::Gradients)) <
          1e-6);
  }
}

TEST_CASE("the reference model's gradient is that of its loss") {
  const ReferenceOptions options{.dropout = 0.3, .seed = 5};
  ReferenceModel model(options);
  for (const auto& batch : everyKindOfBatch(options)) {
    const auto result = checkGradients(model, batch, {.epsilon = 1e-5, .relative = 1e-7, .absolute = 1e-9});
    CHECK_MESSAGE(result.passed, result.toString());
  }
}

TEST_CASE("a batch whose examples are all masked has weight 0 and no gradient") {
  ReferenceModel model;
  Batch batch = classBatch({6}, 3, 4, 1);
  batch.masks.push_back({"mask", Tensor::of({0, 0, 0}, {3})});
  const StepScore score = model.gradient(batch).wait();
  CHECK(score.weight == 0);
  CHECK(score.score == 0);
  CHECK(maxError(model.block(BlockKind::Gradients).values,
                 Array({model.block(BlockKind::Gradients).values.shape()})) == 0);
}

TEST_CASE(
    "the weighted gradients of a batch's parts equal the gradient of the batch, to float64's rounding") {
  const ReferenceOptions options{.dropout = 0.5, .seed = 8};
  ReferenceModel model(options);
  for (auto& batch : everyKindOfBatch(options)) {
    batch.stamp = {.epoch = 1, .firstExample = 100};
    Array sum(model.block(BlockKind::Gradients).values.shape());
    double total = 0;
    for (const auto& [begin, end] : {std::pair{0, 2}, std::pair{2, 9}}) {
      const double weight = model.gradient(partOf(batch, begin, end)).wait().weight;
      const Array part = valuesOf(model, BlockKind::Gradients);
      for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += weight * part.values[i];
      total += weight;
    }
    for (double& value : sum.values) value /= total;
    model.gradient(batch);
    CHECK(maxError(model.block(BlockKind::Gradients).values, sum) < 1e-14);
  }
}

TEST_CASE("the reference updaters equal the library's, with frozen segments and learning rates") {
  auto table = std::make_shared<SegmentTable>();
  table->add({.name = "weight", .shape = {5, 7}});
  table->add({.name = "frozen", .shape = {11}, .frozen = true});
  table->add({.name = "bias", .shape = {7}, .learningRateScale = 0.5, .regularised = false});
  Context context;
  for (const auto& training : everyUpdater()) {
    CAPTURE(training.updater.type());
    CAPTURE(training.clipNorm);
    const auto block = [&](BlockKind kind, DType type) {
      return StateBlock::zeros("block", kind, MergeRule::Average, table, type);
    };
    StateBlock narrow = block(BlockKind::Parameters, DType::Float32);
    StateBlock narrowGradients = block(BlockKind::Gradients, DType::Float32);
    StateBlock wide = block(BlockKind::Parameters, DType::Float64);
    StateBlock wideGradients = block(BlockKind::Gradients, DType::Float64);
    const auto draw = [&](StateBlock& a, StateBlock& b, std::int64_t epoch) {
      const RandomStream random(4, "reference updater", epoch);
      for (const auto& segment : table->segments)
        for (std::int64_t i = segment.offset; i < segment.offset + segment.shape.elements(); ++i)
          b.values.data<double>()[i] = a.values.data<float>()[i] =
              static_cast<float>(random.normal(static_cast<std::uint64_t>(i)) / 4);
    };
    draw(narrow, wide, -1);
    Optimizer optimizer(training, narrow);
    ReferenceUpdater reference(training, wide);
    for (std::int64_t i = 0; i < 8; ++i) {
      draw(narrowGradients, wideGradients, i);
      const double penalty = reference.apply(wide, wideGradients, i, 0);
      CHECK(optimizer.apply(narrow, narrowGradients, i, 0, context) ==
            doctest::Approx(penalty).epsilon(1e-6));
      CHECK(maxError(narrow.values, toArray(wide.values)) < 2e-6);
      REQUIRE(optimizer.state().size() == reference.state().size());
      for (std::size_t b = 0; b < optimizer.state().size(); ++b) {
        CHECK(optimizer.state()[b].name == reference.state()[b].name);
        CHECK(maxError(optimizer.state()[b].values, toArray(reference.state()[b].values)) < 2e-6);
      }
    }
  }
}

TEST_CASE("the reference model has the updater's state in float64, and no Optimizer") {
  ReferenceModel model({.training = {.updater = Adam{}}});
  const auto state = model.state();
  REQUIRE(state.size() == 5);
  CHECK(state[2] == &model.updaterState()[0]);
  CHECK(state[2]->name == "firstMoment");
  CHECK(state[3]->name == "secondMoment");
  for (int i = 0; i < 4; ++i) CHECK((state[i]->values.dtype() == DType::Float64));
}

TEST_CASE("one worker with the reference model equals model.fit(), bit for bit, with every updater") {
  std::vector<Batch> batches;
  for (std::uint64_t b = 0; b < 5; ++b) batches.push_back(classBatch({6}, 4, 4, b));
  for (const auto& training : everyUpdater()) {
    CAPTURE(training.updater.type());
    const ReferenceOptions options{.dropout = 0.3, .seed = 2, .training = training};
    ListIterator data(batches);
    ReferenceModel alone(options), wrapped(options), fresh(options);
    alone.fit(data, 2);
    auto wrapper = toyWrapper(wrapped, 1, 2).build();
    wrapper.fit(data, 2);
    CHECK(stateBits(wrapped) == stateBits(alone));
    CHECK(stateBits(wrapped) != stateBits(fresh));
  }
}

TEST_CASE("three workers with the reference model equal one on the joined batches, to 1e-14") {
  const Batch all = classBatch({6}, 60, 4, 9);
  std::vector<Batch> small, large;
  for (std::int64_t i = 0; i < 60; i += 4) small.push_back(partOf(all, i, i + 4));
  for (std::int64_t i = 0; i < 60; i += 12) large.push_back(partOf(all, i, i + 12));
  const ReferenceOptions options{
      .dropout = 0.3, .seed = 2, .training = {.updater = Nesterovs{.learningRate = 0.1}, .l2 = 0.01}};
  ListIterator parts(small), joined(large);
  ReferenceModel many(options), one(options);
  auto wrapper = toyWrapper(many, 3).build();
  wrapper.fit(parts, 4);
  one.fit(joined, 4);
  CHECK(maxError(many.block(BlockKind::Parameters).values, valuesOf(one, BlockKind::Parameters)) < 1e-14);
  CHECK(maxError(many.updaterState()[0].values, toArray(one.updaterState()[0].values)) < 1e-14);
  CHECK(many.iteration() == one.iteration());
}
