#include "tests/support/reference_model.h"

#include "muster/core/nn/gradient_check.h"
#include "tests/core/nn/batches.h"
#include "tests/support/test.h"

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
  std::string names;
  for (const auto* block : model.state()) {
    names += block->name + " ";
    if (block->kind != BlockKind::Counters) CHECK((block->values.dtype() == DType::Float64));
  }
  CHECK(names == "parameters gradients firstMoment secondMoment counters ");
  CHECK(model.state()[2] == &model.updaterState()[0]);
}
