// A finite score with a non-finite gradient: tanh hides an infinite feature from the loss.

#include "muster/core/data/in_memory.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/core/optim/finite_gradient.h"
#include "tests/support/one_block_model.h"
#include "tests/support/thrown.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kRows = 48, kBatch = 4;

/// The statistics of its second layer are moved before the gradient of the first one is known.
MultiLayerConfiguration tanhNetwork() {
  return {.seed = 3,
          .updater = Nesterovs{.learningRate = 0.1, .momentum = 0.9},
          .inputShape = {6},
          .layers = {Dense{.units = 5, .activation = Activation::Tanh}, BatchNorm{}, Output{.classes = 3}}};
}

/// @param bad  index of the example with an infinite feature; `count` or more: none.
InMemoryDataSetIterator examplesWith(std::int64_t count, std::int64_t bad) {
  Tensor features = Tensor::empty({count, 6}), labels = Tensor::empty({count}, DType::Int64);
  for (std::int64_t i = 0; i < count * 6; ++i)
    features.data<float>()[i] = 0.25f * static_cast<float>(i * i % 17 - 8);
  for (std::int64_t i = 0; i < count; ++i) labels.data<std::int64_t>()[i] = i % 3;
  if (bad < count) features.data<float>()[bad * 6 + 2] = std::numeric_limits<float>::infinity();
  return InMemoryDataSetIterator(features, labels, kBatch);
}

/// A custom updater with momentum, whose sixth update fails after half of the block.
struct BadApply {
  static constexpr std::string_view kType = "test-bad-apply";
  enum class Way { Parameters, State, Throws, Penalty };
  Schedule learningRate = 0.1;
  Way way = Way::Parameters;

  std::vector<std::string> stateNames() const { return {"velocity"}; }
  double apply(const UpdateStep& step, Context&) const {
    float* const w = step.blocks.parameters.data<float>();
    float* const v = step.blocks.state[0].data<float>();
    const float* const g = step.blocks.gradients.data<float>();
    const bool bad = step.updates == 6;
    for (const auto& range : step.ranges)
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        v[i] = 0.5f * v[i] + g[i];
        w[i] -= static_cast<float>(range.learningRate) * v[i];
        if (!bad || i != 20) continue;
        if (way == Way::Parameters) w[i] = std::numeric_limits<float>::infinity();
        if (way == Way::State) v[i] = std::numeric_limits<float>::quiet_NaN();
        if (way == Way::Throws) throw std::runtime_error("the updater has failed");
      }
    return bad && way == Way::Penalty ? std::numeric_limits<double>::infinity() : 0;
  }
  void fields(Fields&) {}
  void validate() const {}
};

std::vector<float> numbersOf(MultiLayerNetwork& network) {
  std::vector<float> all;
  const auto add = [&](const StateBlock& block) {
    const auto values = block.values.span<float>();
    all.insert(all.end(), values.begin(), values.end());
  };
  for (const auto& block : network.blocks())
    if (block.kind != BlockKind::Gradients) add(block);
  for (const auto& block : network.updaterState()) add(block);
  return all;
}

/// A model with a step of its own that checks nothing: its parameter and its statistic become the batch's
/// first feature.
class Unchecked final : public OneBlockModel {
 public:
  explicit Unchecked(Context* context = nullptr) : OneBlockModel(context) {
    blocks_.push_back(
        StateBlock::zeros("statistics", BlockKind::Statistics, MergeRule::Average, blocks_[0].segments));
  }
  std::unique_ptr<Model> replicate(Context& context) const override {
    return std::make_unique<Unchecked>(&context);
  }
  StepTicket step(const Batch& batch) override {
    const float x = batch.features.front().value.data<float>()[0];
    blocks_[2].values.data<float>()[0] = x;
    if (std::isfinite(x)) blocks_[0].values.data<float>()[0] = x;
    return gradient(batch);
  }
};

/// What a ToyModel with statistics has learned.
std::vector<float> learned(ToyModel& model) {
  auto all = model.parameters();
  const auto statistics = model.statistics();
  all.insert(all.end(), statistics.begin(), statistics.end());
  return all;
}

constexpr std::string_view kProblem =
    "the features hold inf: example 1 of the batch (example 21 of the epoch), column 2";

}  // namespace

TEST_CASE("fit() ends before a gradient that is not finite, and the model holds the last finite step") {
  struct Row {
    std::int64_t accumulate, bad,
        before;  // batches a step; the bad example; examples of the whole steps before
    std::string problem;
  };
  for (const Row& row :
       {Row{1, 21, 20, "batch 6 of epoch 1: " + std::string(kProblem)},
        // In batch 8 of 12, the second of its step; the statistics are those of the last one.
        Row{2, 29, 24, "batch 4 of epoch 1: "}}) {
    auto configuration = tanhNetwork();
    configuration.accumulate = row.accumulate;
    MultiLayerNetwork model(configuration), expected(configuration);
    model.init();
    expected.init();
    auto data = examplesWith(kRows, row.bad), before = examplesWith(row.before, row.before);
    const auto problem = thrown<NonFiniteScore>([&] { model.fit(data); });
    CHECK_MESSAGE(problem.starts_with(row.problem), problem);
    expected.fit(before);
    CHECK(numbersOf(model) == numbersOf(expected));
  }
}

TEST_CASE("a user-defined apply() updates everything or nothing, and the model holds the last finite step") {
  using Way = BadApply::Way;
  const std::vector<std::pair<Way, std::string>> ways{
      {Way::Parameters,
       "after an update the parameters of dense1.weight are not finite: element 20 is inf; "},
      {Way::State,
       "after an update the updater's numbers of dense1.weight are not finite: element 20 is nan; "},
      {Way::Throws, "the updater has failed"},
      {Way::Penalty, "updater test-bad-apply: its apply() returned the penalty inf"}};
  for (const auto& [way, words] : ways) {
    CAPTURE(words);
    auto configuration = tanhNetwork();
    configuration.updater = BadApply{.way = way};
    MultiLayerNetwork model(configuration), expected(configuration);
    model.init();
    expected.init();
    auto data = examplesWith(kRows, kRows), before = examplesWith(20, 20);  // 12 batches, five
    std::string problem;
    try {
      model.fit(data);
    } catch (const std::exception& error) {
      problem = error.what();
    }
    CHECK(problem.find(words) != std::string::npos);
    expected.fit(before);
    CHECK(numbersOf(model) == numbersOf(expected));
  }
}

TEST_CASE("no mode merges a gradient that is not finite: the last merge stays, and the wrapper works on") {
  for (const auto mode : {TrainingMode::Averaging, TrainingMode::SynchronousGradients}) {
    CAPTURE(static_cast<int>(mode));
    MultiLayerNetwork model(tanhNetwork()), expected(tanhNetwork());
    model.init();
    expected.init();
    const auto wrapperOf = [&](Model& of) { return toyWrapper(of, 4).trainingMode(mode).build(); };
    auto wrapper = wrapperOf(model);
    auto data = examplesWith(kRows, 21);  // worker 1's second batch, in the second round of three
    std::string problem;
    try {
      wrapper.fit(data);
    } catch (const TrainingError& error) {
      problem = error.what();
      CHECK(error.worker() == 1);
    }
    CHECK_MESSAGE(
        problem.starts_with("worker 1 on cpu failed in batch 6 of epoch 1: " + std::string(kProblem)),
        problem);
    auto before = examplesWith(16, 16);  // one round
    wrapperOf(expected).fit(before);
    expected.setCounters(1, 0);  // the epoch was not finished
    CHECK(stateBits(model) == stateBits(expected));
    auto good = examplesWith(kRows, kRows);
    wrapper.fit(good);
    wrapperOf(expected).fit(good);
    CHECK(stateBits(model) == stateBits(expected));
  }
}

TEST_CASE("fit() of any model refuses a step with statistics that are not finite, in each mode") {
  // The variance of the third batch overflows; its score and its gradient are finite.
  const std::vector<ToyBatch> batches{
      {.values = {2, 4}}, {.values = {6, 8}}, {.values = {1e30f, -1e30f}}, {.values = {1, 3}}};
  for (const int workers : {0, 1, 2})  // 0: model.fit
    for (const auto mode : {TrainingMode::Averaging, TrainingMode::SynchronousGradients}) {
      INFO("workers ", workers, ", mode ", static_cast<int>(mode));
      const auto fit = [&](ToyModel& model, DataSetIterator& data) {
        if (workers == 0) return model.fit(data);
        toyWrapper(model, workers).trainingMode(mode).build().fit(data);
      };
      ToyModel model({.statistics = true}), expected({.statistics = true});
      ToyIterator data(batches), before({batches.begin(), batches.begin() + 2});
      const auto problem = thrown<Error>([&] { fit(model, data); });
      CHECK_MESSAGE(problem.starts_with(
                        std::string(workers == 0 ? "" : "worker 0 on cpu failed in ") +
                        "batch 3 of epoch 1: the statistics of variance are not finite: element 0 is inf; "),
                    problem);
      fit(expected, before);
      CHECK(learned(model) == learned(expected));
    }
}

TEST_CASE("statistics that are not finite are not merged, even if the model's own step checks nothing") {
  for (const int workers : {1, 2}) {
    CAPTURE(workers);
    Unchecked model;
    auto data = ToyIterator::ofValues({1, 2, std::numeric_limits<float>::infinity(), 4});
    auto wrapper = toyWrapper(model, workers).build();
    const auto problem = thrown<TrainingError>([&] { wrapper.fit(data); });
    CHECK_MESSAGE(problem.find("the statistics of w are not finite: element 0 is inf; ") != std::string::npos,
                  problem);
    const float merged = workers == 1 ? 2 : 1.5f;
    for (const auto& block : model.blocks())
      if (block.kind != BlockKind::Gradients) CHECK(block.values.data<float>()[0] == merged);
  }
}

TEST_CASE("gradients are checked, of float64 and without segments, too, except those of frozen segments") {
  auto table = std::make_shared<SegmentTable>();
  table->add({.name = "a", .shape = {3}, .frozen = true});
  table->add({.name = "b", .shape = {2}});
  for (const DType type : {DType::Float32, DType::Float64}) {
    auto block = StateBlock::zeros("gradients", BlockKind::Gradients, MergeRule::Average, table, type);
    const auto set = [&](std::int64_t i, double value) {
      if (type == DType::Float32)
        block.values.data<float>()[i] = static_cast<float>(value);
      else
        block.values.data<double>()[i] = value;
    };
    set(1, std::numeric_limits<double>::quiet_NaN());
    requireFiniteGradient(block);
    set(17, -std::numeric_limits<double>::infinity());
    CHECK(thrown<NonFiniteScore>([&] {
            requireFiniteGradient(block);
          }).starts_with("the gradient of b is not finite: element 1 is -inf; "));
    block.segments = nullptr;
    CHECK(thrown<UpdateRefused>([&] {
            requireFiniteGradient(block);
          }).starts_with("the gradient of gradients is not finite: element 1 is nan; "));
    CHECK(thrown<NonFiniteScore>([&] {
            requireFiniteBlock(block, "the numbers");
          }).starts_with("the numbers of gradients are not finite: element 1 is nan; "));
    set(1, 3);
    set(17, -4);
    requireFiniteGradient(block);
    CHECK(requireFiniteBlock(block, "the numbers") == 4);
  }
}
