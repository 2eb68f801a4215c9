#include "muster/core/optim/optimizer.h"

#include "muster/core/base/log.h"
#include "muster/core/base/random.h"
#include "muster/core/io/json_fields.h"
#include "tests/support/all_updaters.h"
#include "tests/support/allocations.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::test;

namespace {

struct Blocks {
  explicit Blocks(std::vector<Segment> segments) {
    auto table = std::make_shared<SegmentTable>();
    for (auto& segment : segments) table->add(std::move(segment));
    parameters = StateBlock::zeros("parameters", BlockKind::Parameters, MergeRule::Average, table);
    gradients = StateBlock::zeros("gradients", BlockKind::Gradients, MergeRule::Keep, table);
  }
  void fill(std::string_view segment, float value, float gradient) {
    std::ranges::fill(parameters.segment(segment).span<float>(), value);
    std::ranges::fill(gradients.segment(segment).span<float>(), gradient);
  }
  bool holds(std::string_view segment, float value) const {
    return std::ranges::all_of(parameters.segment(segment).span<float>(),
                               [&](float x) { return x == value; });
  }
  StateBlock parameters, gradients;
};

/// A block's elements that belong to no segment.
std::vector<float> paddingOf(const StateBlock& block) {
  std::vector<float> padding;
  std::int64_t at = 0;
  const float* values = block.values.data<float>();
  for (const auto& segment : block.segments->segments) {
    padding.insert(padding.end(), values + at, values + segment.offset);
    at = segment.offset + segment.shape.elements();
  }
  padding.insert(padding.end(), values + at, values + block.segments->elements);
  return padding;
}

/// An updater from outside the library: w -= lr sign(g), without regularisation.
struct SignDescent {
  static constexpr std::string_view kType = "test-sign";
  Schedule learningRate = 0.5;
  double threshold = 0;
  std::vector<std::string> stateNames() const { return {}; }
  double apply(const UpdateStep& step, Context&) const {
    for (const auto& range : step.ranges)
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        const float g = step.gradientScale * step.blocks.gradients.data<float>()[i];
        const float sign = g > threshold ? 1.0f : (g < -threshold ? -1.0f : 0.0f);
        step.blocks.parameters.data<float>()[i] -= static_cast<float>(range.learningRate) * sign;
      }
    return 0;
  }
  void fields(Fields& f) { f.field("threshold", threshold); }
  void validate() const {}
};

}  // namespace

TEST_CASE("weights are regularised, biases are not, even if nothing else differs") {
  Blocks blocks({{.name = "weight", .shape = {16}}, {.name = "bias", .shape = {16}, .regularised = false}});
  blocks.fill("weight", 2, 1);
  blocks.fill("bias", 2, 1);
  Optimizer optimizer({.updater = Sgd{.learningRate = 0.5}, .l1 = 0.5, .l2 = 0.25, .weightDecay = 0.125},
                      blocks.parameters);
  Context context;
  // 16 (0.5 * 2 + 0.125 * 4)
  CHECK(optimizer.penalty(blocks.parameters, context) == 24);
  CHECK(optimizer.apply(blocks.parameters, blocks.gradients, 0, 0, context) == 24);
  CHECK(blocks.holds("weight", 2 - 0.5f * (1 + 0.5f + 0.5f) - 0.5f * 0.125f * 2));
  CHECK(blocks.holds("bias", 1.5f));
  blocks.fill("weight", 4, 0);
  blocks.fill("bias", 4, 0);
  Optimizer decaying({.updater = AdamW{.learningRate = 0.5, .weightDecay = 0.25}}, blocks.parameters);
  decaying.apply(blocks.parameters, blocks.gradients, 0, 0, context);
  CHECK(blocks.holds("weight", 3.5f));
  CHECK(blocks.holds("bias", 4));
}

TEST_CASE("segments may have learning rates of their own") {
  Blocks blocks({{.name = "a", .shape = {16}},
                 {.name = "b", .shape = {16}, .learningRateScale = 0.5},
                 {.name = "c", .shape = {20}, .learningRateScale = 0.5},
                 {.name = "d", .shape = {3}, .learningRateScale = 0}});
  for (const auto* name : {"a", "b", "c", "d"}) blocks.fill(name, 1, 1);
  Optimizer optimizer(
      {.updater = Sgd{.learningRate = StepSchedule{.initial = 0.5, .decay = 0.5, .every = 2}}},
      blocks.parameters);
  Context context;
  for (int iteration = 0; iteration < 3; ++iteration)  // 0.5, 0.5, 0.25
    optimizer.apply(blocks.parameters, blocks.gradients, iteration, 0, context);
  CHECK(blocks.holds("a", -0.25f));
  CHECK(blocks.holds("b", 0.375f));
  CHECK(blocks.holds("c", 0.375f));
  CHECK(blocks.holds("d", 1));
}

/// A schedule from outside the library that becomes negative.
struct Falling {
  static constexpr std::string_view kType = "test-falling";
  double at(std::int64_t iteration, std::int64_t) const { return 1 - 0.5 * static_cast<double>(iteration); }
  void fields(Fields&) {}
  void validate() const {}
};

TEST_CASE("a learning rate that becomes negative is refused in the step that would apply it") {
  Blocks blocks({{.name = "a", .shape = {16}}});
  Context context;
  for (const Updater& updater :
       {Updater(Sgd{.learningRate = Falling{}}), Updater(SignDescent{.learningRate = Falling{}})}) {
    blocks.fill("a", 1, 1);
    Optimizer optimizer({.updater = updater}, blocks.parameters);
    for (int iteration = 0; iteration < 3; ++iteration)  // 1, 0.5, 0
      optimizer.apply(blocks.parameters, blocks.gradients, iteration, 0, context);
    CHECK_REFUSED(
        optimizer.apply(blocks.parameters, blocks.gradients, 3, 0, context),
        "schedule test-falling: the learning rate must be finite and not negative, but at iteration 3 it "
        "is -0.5");
    CHECK(blocks.holds("a", -0.5f));
  }
}

TEST_CASE("frozen segments keep their bits and their state, and do not count in norm and penalty") {
  for (const auto& updater : allUpdaters()) {
    CAPTURE(updater.type());
    Blocks blocks({{.name = "a", .shape = {4}},
                   {.name = "frozen", .shape = {5}, .frozen = true},
                   {.name = "b", .shape = {12}}});
    blocks.fill("a", 1, 1);
    blocks.fill("frozen", 3, kNan);
    blocks.fill("b", 1, -1);
    Optimizer optimizer({.updater = updater, .l1 = 0.5, .weightDecay = 0.5, .clipNorm = 2},
                        blocks.parameters);
    Context context;
    CHECK(optimizer.apply(blocks.parameters, blocks.gradients, 0, 0, context) == 8);
    CHECK(blocks.holds("frozen", 3));
    CHECK_FALSE(blocks.holds("a", 1));
    CHECK(std::isfinite(blocks.parameters.segment("a").data<float>()[0]));
    for (const auto& block : optimizer.state())
      for (const float value : block.segment("frozen").span<float>()) CHECK(value == 0);
  }
}

TEST_CASE("clipping by norm scales the whole gradient, and only if it is too large") {
  Context context;
  for (const double clipNorm : {5.0, 20.0}) {
    // 16 threes and 9 fours: the squares sum to 144 + 144.
    Blocks blocks({{.name = "a", .shape = {16}}, {.name = "b", .shape = {9}, .regularised = false}});
    blocks.fill("a", 0, 3);
    blocks.fill("b", 0, 4);
    Optimizer optimizer({.updater = Sgd{.learningRate = 1}, .clipNorm = clipNorm}, blocks.parameters);
    optimizer.apply(blocks.parameters, blocks.gradients, 0, 0, context);
    const double scale = clipNorm == 5 ? 5 / std::sqrt(288.0) : 1;
    CHECK(blocks.parameters.segment("a").data<float>()[15] == doctest::Approx(-3 * scale).epsilon(1e-6));
    CHECK(blocks.parameters.segment("b").data<float>()[8] == doctest::Approx(-4 * scale).epsilon(1e-6));
  }
}

TEST_CASE("padding stays zero, even if its gradient is not") {
  for (const auto& updater : allUpdaters()) {
    CAPTURE(updater.type());
    Blocks blocks(
        {{.name = "a", .shape = {3, 5}}, {.name = "b", .shape = {1}}, {.name = "c", .shape = {33}}});
    std::ranges::fill(blocks.gradients.values.span<float>(), kNan);
    for (const auto* name : {"a", "b", "c"}) blocks.fill(name, 1, 1);
    Optimizer optimizer({.updater = updater, .l1 = 0.1, .l2 = 0.1, .weightDecay = 0.1, .clipNorm = 1},
                        blocks.parameters);
    Context context;
    for (int i = 0; i < 3; ++i) optimizer.apply(blocks.parameters, blocks.gradients, i, 0, context);
    CHECK(paddingOf(blocks.parameters) == std::vector<float>(1 + 15 + 15, 0.0f));
    for (const auto& state : optimizer.state()) CHECK(paddingOf(state) == std::vector<float>(31, 0.0f));
    CHECK(std::isfinite(blocks.parameters.segment("c").data<float>()[32]));
  }
}

TEST_CASE("an optimizer's step allocates nothing") {
  for (const auto& updater : allUpdaters())
    for (const int threads : {1, 2}) {
      CAPTURE(updater.type());
      Blocks blocks({{.name = "a", .shape = {70000}},
                     {.name = "b", .shape = {50}, .regularised = false},
                     {.name = "c", .shape = {700}},
                     {.name = "d", .shape = {10}, .frozen = true}});
      blocks.fill("a", 1, 1);
      Optimizer optimizer(
          {.updater = updater, .l1 = 0.1, .l2 = 0.1, .weightDecay = 0.1, .clipNorm = 1, .clipValue = 1},
          blocks.parameters);
      Context context(Device::cpu(), {.threads = threads});
      optimizer.apply(blocks.parameters, blocks.gradients, 0, 0, context);  // starts the threads
      CHECK(allocationsIn([&] {
              optimizer.apply(blocks.parameters, blocks.gradients, 1, 0, context);
              optimizer.penalty(blocks.parameters, context);
            }) == 0);
    }
}

TEST_CASE("the next step returns the penalty, for any number of threads") {
  Blocks blocks({{.name = "a", .shape = {100, 701}},
                 {.name = "b", .shape = {77}, .regularised = false},
                 {.name = "c", .shape = {5003}}});
  const RandomStream random(3, "optimizer test");
  auto values = blocks.parameters.segment("a").span<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(random.normal(i));
  blocks.fill("c", 0.3f, 1);
  const TrainingOptions options{.l1 = 1e-3, .l2 = 5e-4};
  double first = 0;
  for (const int threads : {1, 3}) {
    Context context(Device::cpu(), {.threads = threads});
    Optimizer optimizer(options, blocks.parameters);
    StateBlock parameters = blocks.parameters;
    parameters.values = cloneTensor(parameters.values);
    const double penalty = optimizer.penalty(parameters, context);
    CHECK(optimizer.apply(parameters, blocks.gradients, 0, 0, context) == penalty);
    if (threads == 1) first = penalty;
    CHECK(penalty == first);
  }
}

TEST_CASE(
    "the updater's state consists of named blocks with the parameters' segments, and is averaged in a "
    "merge") {
  const Blocks blocks({{.name = "a", .shape = {3}}});
  Optimizer optimizer({.updater = Adam{}}, blocks.parameters);
  REQUIRE(optimizer.state().size() == 2);
  CHECK(optimizer.state()[0].name == "firstMoment");
  CHECK(optimizer.state()[1].name == "secondMoment");
  for (const auto& block : optimizer.state()) {
    CHECK(block.kind == BlockKind::UpdaterState);
    CHECK(block.merge == MergeRule::Average);
    CHECK(block.segments == blocks.parameters.segments);
    CHECK(block.values.elements() == 16);
  }
  CHECK(Optimizer({}, blocks.parameters).state().empty());
}

TEST_CASE("training options are written and read back, and refused out of range") {
  const TrainingOptions options{.updater = Nesterovs{.learningRate = 0.01},
                                .l1 = 0.5,
                                .l2 = 5e-4,
                                .weightDecay = 0.25,
                                .clipNorm = 2,
                                .clipValue = 3};
  const auto written = [](TrainingOptions some) {
    JsonWriter writer;
    some.fields(writer);
    return writer.line();
  };
  CHECK(
      written(options) ==
      R"({"updater": {"type": "nesterovs", "learningRate": {"type": "fixed", "value": 0.01}, "momentum": 0.9, )"
      R"("rateInVelocity": false}, "l1": 0.5, "l2": 0.0005, "weightDecay": 0.25, "clipNorm": 2.0, "clipValue": 3.0, )"
      R"("accumulate": 1})");
  JsonReader reader(written(options));
  TrainingOptions again;
  again.fields(reader);
  CHECK(written(again) == written(options));
  CHECK_NOTHROW(options.validate());

  const TrainingOptions broken[] = {{.updater = Nesterovs{.momentum = 1}},
                                    {.l1 = -1},
                                    {.l2 = kNan},
                                    {.weightDecay = -0.1},
                                    {.clipNorm = INFINITY},
                                    {.clipValue = -1}};
  const Blocks blocks({{.name = "a", .shape = {3}}});
  for (const auto& option : broken) {
    CHECK_THROWS_AS(option.validate(), InvalidArgument);
    CHECK_THROWS_AS(Optimizer(option, blocks.parameters), InvalidArgument);
  }
  CHECK_REFUSED(TrainingOptions{.l2 = -0.5}.validate(),
                "training options: l2 must be finite and not negative, got -0.5");
}

TEST_CASE("an optimizer refuses blocks of another size") {
  const Blocks small({{.name = "a", .shape = {3}}});
  Blocks large({{.name = "a", .shape = {30}}});
  Optimizer optimizer({.updater = Nesterovs{}}, small.parameters);
  Context context;
  CHECK_THROWS_AS(optimizer.apply(large.parameters, large.gradients, 0, 0, context), InvalidArgument);
}

TEST_CASE("a user-defined updater is applied, and on a GPU logged once") {
  Blocks blocks({{.name = "a", .shape = {4}}, {.name = "b", .shape = {4}, .learningRateScale = 0.5}});
  blocks.fill("a", 1, 3);
  blocks.fill("b", 1, -3);
  Context context;
  Optimizer optimizer({.updater = SignDescent{}, .clipNorm = 1}, blocks.parameters);
  CHECK_FALSE(optimizer.enqueues());
  optimizer.prepare(blocks.parameters, context);
  CHECK(optimizer.apply(blocks.parameters, blocks.gradients, 0, 0, context) == 0);
  CHECK(blocks.holds("a", 0.5f));
  CHECK(blocks.holds("b", 1.25f));

  std::string lines;
  const LogSink before = setLogSink([&](LogLevel, std::string_view line) { lines += line; });
  StateBlock onGpu = blocks.parameters;
  onGpu.values = Tensor::view(onGpu.values.raw(), onGpu.values.shape(), DType::Float32, Device::cuda(0));
  Optimizer({.updater = Sgd{}}, onGpu);
  CHECK(lines.empty());
  Optimizer({.updater = SignDescent{}}, onGpu);
  setLogSink(before);
  CHECK(lines == "updater test-sign: it has no settings(), so each step waits for its apply() on cuda:0");
}
