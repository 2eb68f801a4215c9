#include "muster/core/ops/update.h"

#include "muster/core/base/random.h"
#include "tests/core/ops/test.h"

using namespace muster;

namespace {

using test::randomTensor;
using test::sameBits;

/// Blocks as after some steps: second moments are positive.
UpdateBlocks randomBlocks(std::int64_t n, bool squaresFirst) {
  return {randomTensor(n, "parameters"),
          randomTensor(n, "gradients"),
          {squaresFirst ? randomTensor(n, "squares", DType::Float32, 0, 1) : randomTensor(n, "state"),
           randomTensor(n, "squares", DType::Float32, 0, 1)}};
}

UpdateBlocks clone(const UpdateBlocks& blocks, Device device = Device::cpu()) {
  return {copyTo(blocks.parameters, device),
          copyTo(blocks.gradients, device),
          {copyTo(blocks.state[0], device), copyTo(blocks.state[1], device)}};
}

/// What an update changes.
std::array<Tensor, 3> changing(const UpdateBlocks& blocks) {
  return {blocks.parameters, blocks.state[0], blocks.state[1]};
}

double worstDifference(const UpdateBlocks& a, const UpdateBlocks& b) {
  double worst = 0;
  for (std::size_t k = 0; k < 3; ++k)
    worst = std::max(worst, test::maxDifference(changing(a)[k], test::toArray(changing(b)[k])));
  return worst;
}

bool sameState(const UpdateBlocks& a, const UpdateBlocks& b) {
  return sameBits(a.state[0], b.state[0]) && sameBits(a.state[1], b.state[1]);
}

Tensor numberOn(Device device, double value = 0) {
  const Tensor number = Tensor::zeros({1}, DType::Float64);
  *number.data<double>() = value;
  return copyTo(number, device);
}

double read(const Tensor& number) {
  return *copyTo(number, Device::cpu()).data<double>();
}

/// A step's numbers for a plan.
Tensor numbersOf(const UpdateRule& rule, double rate, std::int64_t update, double scale = 1) {
  Tensor numbers = Tensor::zeros({kUpdateNumbers}, DType::Float64);
  writeUpdateNumbers(rule, rate, update, scale, numbers);
  return numbers;
}

struct RuleCase {
  std::string_view name;
  bool squaresFirst;  // the first state block holds squares
  UpdateSettings settings;
  /// Decrease of a parameter at t = 3, divided by the learning rate, in float64; updates the state.
  std::function<double(double g, double& first, double& second)> step;
};

const std::vector<RuleCase> kRules{
    {"sgd", false, {}, [](double g, double&, double&) { return g; }},
    {"momentum",
     false,
     {.rule = update::MomentumRule(0.75)},
     [](double g, double& v, double&) {
       v = 0.75 * v + g;
       return v;
     }},
    {"nesterovs",
     false,
     {.rule = update::NesterovsRule(0.75)},
     [](double g, double& v, double&) {
       v = 0.75 * v + g;
       return g + 0.75 * v;
     }},
    {"adam",
     false,
     {.rule = update::AdamRule(0.75, 0.875, 0.125), .weightDecay = 0.25},
     [](double g, double& m, double& v) {
       m = 0.75 * m + 0.25 * g;
       v = 0.875 * v + 0.125 * g * g;
       const double mean = m / (1 - 0.75 * 0.75 * 0.75), square = v / (1 - 0.875 * 0.875 * 0.875);
       return mean / (std::sqrt(square) + 0.125);
     }},
    {"rmsprop",
     true,
     {.rule = update::RmsPropRule(0.75, 0.125)},
     [](double g, double& s, double&) {
       s = 0.75 * s + 0.25 * g * g;
       return g / (std::sqrt(s) + 0.125);
     }},
    {"adagrad",
     true,
     {.rule = update::AdaGradRule(0.125)},
     [](double g, double& s, double&) {
       s += g * g;
       return g / (std::sqrt(s) + 0.125);
     }},
    {"lion",
     false,
     {.rule = update::LionRule(0.75, 0.875), .weightDecay = 0.25},
     [](double g, double& m, double&) {
       const double direction = 0.75 * m + 0.25 * g;
       m = 0.875 * m + 0.125 * g;
       return direction > 0 ? 1.0 : direction < 0 ? -1.0 : 0.0;
     }},
};

/// Ranges of awkward lengths with gaps between them, each with its own settings.
struct AwkwardRanges {
  std::vector<UpdateRange> ranges;
  std::int64_t elements;
};
AwkwardRanges awkwardRanges() {
  std::vector<UpdateRange> ranges;
  std::int64_t elements = 3;
  float setting = 0.125f;
  for (const std::int64_t length : {1, 0, 15, 16, 17, 4095, 4096, 4097, 0, 20011}) {
    const bool even = ranges.size() % 2 == 0;
    ranges.push_back({.begin = elements,
                      .end = elements + length,
                      .learningRate = setting,
                      .l1 = even ? 0.25f : 0.0f,
                      .l2 = 0.5f,
                      .weightDecay = even ? 0.0f : 0.125f,
                      .regularised = even});
    elements += length + 5;
    setting *= 0.75f;
  }
  return {ranges, elements};
}

}  // namespace

TEST_ON_DEVICES("every rule agrees with a plain float64 loop, and writes nothing outside its ranges") {
  const auto [ranges, elements] = awkwardRanges();
  Context context(Where::device());
  for (const auto& rule : kRules) {
    CAPTURE(rule.name);
    const UpdateBlocks before = randomBlocks(elements, rule.squaresFirst);
    const UpdateBlocks there = clone(before, Where::device());
    UpdateSettings settings = rule.settings;
    settings.clipValue = 0.5;
    const double penalty = updateOnce(settings, there, ranges, context, 3, 0.875);
    context.synchronize();
    const UpdateBlocks blocks = clone(there, Device::cpu());

    const UpdateBlocks expected = clone(before);  // as it was, outside the ranges
    double expectedPenalty = 0;
    for (const auto& r : ranges)
      for (std::int64_t i = r.begin; i < r.end; ++i) {
        const double w = before.parameters.data<float>()[i];
        double g = 0.875 * before.gradients.data<float>()[i];
        g = std::min(0.5, std::max(-0.5, g)) + r.l1 * ((w > 0) - (w < 0)) + r.l2 * w;
        double first = before.state[0].data<float>()[i], second = before.state[1].data<float>()[i];
        const double step = rule.step(g, first, second);
        const double decay = r.weightDecay + (r.regularised ? rule.settings.weightDecay : 0);
        expectedPenalty += r.l1 * std::abs(w) + r.l2 / 2 * w * w;
        const double values[] = {w - r.learningRate * (step + decay * w), first, second};
        for (std::size_t k = 0; k < 3; ++k)
          changing(expected)[k].data<float>()[i] = static_cast<float>(values[k]);
      }
    // A handful of float32 roundings on numbers up to 2.
    CHECK(worstDifference(blocks, expected) <= 1e-6);
    CHECK(std::abs(penalty - expectedPenalty) <= 1e-7 * expectedPenalty);
    for (std::size_t k = 0; k < 3; ++k)
      for (std::size_t r = 0; r <= ranges.size(); ++r) {
        const std::int64_t gap = r == 0 ? 0 : ranges[r - 1].end,
                           end = r < ranges.size() ? ranges[r].begin : elements;
        CHECK(sameBits(changing(blocks)[k].slice(gap, {end - gap}),
                       changing(before)[k].slice(gap, {end - gap})));
      }
    CHECK(sameBits(blocks.gradients, before.gradients));
  }
}

TEST_CASE("an update has the same bits for any number of threads") {
  const std::int64_t elements = 200077;
  const UpdateRange ranges[] = {
      {.begin = 16, .end = 70001, .learningRate = 0.5f, .l1 = 0.1f, .l2 = 0.2f},
      {.begin = 70016, .end = elements, .learningRate = 0.25f, .l1 = 0.01f, .l2 = 0.3f}};
  const UpdateBlocks before{randomTensor(elements, "parameters"),
                            randomTensor(elements, "gradients"),
                            {randomTensor(elements, "state"), {}}};
  Tensor parameters;
  double penalty = 0, norm = 0;
  for (const int threads : {1, 2, 3, 8}) {
    CAPTURE(threads);
    Context context(Device::cpu(), {.threads = threads});
    const UpdateBlocks blocks{
        cloneTensor(before.parameters), before.gradients, {cloneTensor(before.state[0]), {}}};
    const double expected = regularisationPenalty(blocks.parameters, ranges, context);
    const double now = updateOnce({.rule = update::NesterovsRule(0.9)}, blocks, ranges, context);
    CHECK(now == expected);
    if (threads == 1) {
      parameters = blocks.parameters;
      penalty = now;
      norm = squaredNorm(blocks.parameters, 5, elements, context);
    }
    CHECK(now == penalty);
    CHECK(sameBits(blocks.parameters, parameters));
    CHECK(squaredNorm(blocks.parameters, 5, elements, context) == norm);
  }
}

TEST_ON_DEVICES("a planned update equals the update of its rule, clipping by norm included") {
  const Device device = Where::device();
  const auto [ranges, elements] = awkwardRanges();
  Context context(device), cpu;
  for (const auto& rule : kRules)
    for (const double clipNorm : {0.0, 2.0}) {
      INFO(rule.name, ", clipNorm ", clipNorm);
      UpdateSettings settings = rule.settings;
      settings.clipNorm = clipNorm;
      settings.clipValue = 0.5;
      const UpdateBlocks before = randomBlocks(elements, rule.squaresFirst);
      const UpdateBlocks there = clone(before, device);
      auto plan = planUpdate(settings, elements, ranges, context);
      Tensor penalty = numberOn(device);
      plan->run(there, copyTo(numbersOf(settings.rule, 0.5, 3, 0.875), device), penalty);
      context.synchronize();

      auto scaled = ranges;
      double squares = 0;
      for (auto& range : scaled) {
        range.learningRate *= 0.5;
        squares += squaredNorm(before.gradients, range.begin, range.end, cpu);
      }
      const double norm = 0.875 * std::sqrt(squares);
      const double scale = clipNorm > 0 && norm > clipNorm ? 0.875 * clipNorm / norm : 0.875;
      const UpdateBlocks expected = clone(before);
      settings.clipNorm = 0;
      const double expectedPenalty = updateOnce(settings, expected, scaled, cpu, 3, scale);
      CHECK(std::abs(read(penalty) - expectedPenalty) <= 1e-9 * expectedPenalty);
      CHECK(worstDifference(clone(there), expected) <= 1e-6);
    }
}

TEST_ON_DEVICES("a plan updates nothing if a loss is not finite, with every rule") {
  const Device device = Where::device();
  Context context(device);
  const auto [ranges, elements] = awkwardRanges();
  const UpdateBlocks before = randomBlocks(elements, true);
  for (const auto& rule : kRules) {
    auto plan = planUpdate(rule.settings, elements, ranges, context);
    const Tensor numbers = copyTo(numbersOf(rule.settings.rule, 0.5, 1), device);
    // Two losses: sum, weight, the row of a class out of range or -1, that class.
    for (const auto& [first, weight, row, changes] : {std::tuple(3.0, 1.0, -1.0, true),
                                                      {test::kNan, 1.0, -1.0, false},
                                                      {test::kInfinity, 1.0, -1.0, false},
                                                      {3.0, test::kNan, -1.0, false},
                                                      {3.0, -1.0, -1.0, false},
                                                      {3.0, 1.0, 2.0, false}}) {
      INFO("first ", first, ", weight ", weight, ", row ", row);
      Tensor losses = Tensor::zeros({8}, DType::Float64), penalty = numberOn(device, test::kNan);
      std::ranges::copy(std::initializer_list<double>{1, 1, -1, 0, first, weight, row, 0},
                        losses.data<double>());
      const UpdateBlocks there = clone(before, device);
      plan->run(there, numbers, penalty, copyTo(losses, device));
      context.synchronize();
      const UpdateBlocks got = clone(there);
      CHECK(sameBits(got.parameters, before.parameters) != changes);
      if (!changes) CHECK(sameState(got, before));
      CHECK((read(penalty) > 0) == changes);
    }
  }
}

TEST_ON_DEVICES("a guarded plan finds the first gradient that is not finite, and then updates nothing") {
  const Device device = Where::device();
  Context context(device);
  const auto [ranges, elements] = awkwardRanges();
  const std::int64_t last = ranges.back().end - 1, second = ranges.back().begin;
  const UpdateBlocks random = randomBlocks(elements, true);
  for (const double clipNorm : {0.0, 1.0})
    for (const auto& rule : kRules) {
      UpdateSettings settings = rule.settings;
      settings.clipNorm = clipNorm;
      auto plan = planUpdate(settings, elements, ranges, context);
      const Tensor numbers = copyTo(numbersOf(settings.rule, 0.5, 1), device);
      Tensor penalty = numberOn(device);
      const UpdateGuard guard{.badGradient = numberOn(device), .refused = numberOn(device)};
      // Several bad labels, too; the same plan continues.
      for (const auto& bad : std::vector<std::vector<std::int64_t>>{
               {}, {last}, {}, {second}, {last, second}, {ranges.front().begin, second, last}}) {
        CAPTURE(bad.size());
        UpdateBlocks before = clone(random);
        for (const auto at : bad)
          before.gradients.data<float>()[at] = static_cast<float>(at == second ? test::kNan
                                                                  : at == last ? test::kInfinity
                                                                               : -test::kInfinity);
        const UpdateBlocks there = clone(before, device);
        plan->run(there, numbers, penalty, {}, guard);
        context.synchronize();
        const UpdateBlocks got = clone(there);
        CHECK(read(guard.badGradient) ==
              (bad.empty() ? -1 : static_cast<double>(*std::ranges::min_element(bad))));
        CHECK(read(guard.refused) == (bad.empty() ? 0 : 1));
        CHECK(sameBits(got.parameters, before.parameters) == !bad.empty());
        if (!bad.empty()) CHECK(sameState(got, before));
      }
    }
}

TEST_CASE("a plan's ranges and settings are checked") {
  Context context;
  const UpdateRange range{.begin = 0, .end = 5};
  CHECK_REFUSED(planUpdate({}, 4, {&range, 1}, context),
                "planUpdate: the range [0, 5) is not within 4 elements");
  CHECK_THROWS_AS(planUpdate({.clipNorm = -1}, 5, {&range, 1}, context), InvalidArgument);
  CHECK_THROWS_AS(numbersOf({}, 0.1, 0), InvalidArgument);
}

TEST_ON_DEVICES("the penalty alone equals that of the update, and squaredNorm closed forms, also of slices") {
  Context context(Where::device());
  const auto [ranges, elements] = awkwardRanges();
  const UpdateBlocks blocks = clone(randomBlocks(elements, false), Where::device());
  const double penalty = regularisationPenalty(blocks.parameters, ranges, context);
  CHECK(penalty == updateOnce({}, blocks, ranges, context));
  Tensor x = Tensor::empty({10000});
  for (int i = 0; i < 10000; ++i) x.data<float>()[i] = static_cast<float>(i);
  const Tensor there = copyTo(x, Where::device());
  const auto upTo = [](double n) { return (n - 1) * n * (2 * n - 1) / 6; };  // 0^2 + ... + (n-1)^2
  for (const int begin : {0, 1, 17, 4096, 9999, 10000})
    for (const int end : {0, 1, 17, 100, 4097, 10000})
      if (begin <= end) CHECK(squaredNorm(there, begin, end, context) == upTo(end) - upTo(begin));
  // Squares that float32 cannot hold.
  const Tensor huge = copyTo(Tensor::of({0x1p100f, 0x1p100f}, {2}), Where::device());
  CHECK(squaredNorm(huge, 0, 2, context) == 0x1p201);
}

TEST_ON_DEVICES("blocks of millions of elements are updated once each, for any number of threads") {
  // More chunks than a sum has groups on the CPU, and than a grid has blocks on a GPU.
  const std::int64_t elements = 4096 * 1030 + 77;
  const UpdateRange ranges[] = {{.begin = 0, .end = 5, .learningRate = 0.125f},
                                {.begin = 5, .end = elements, .learningRate = 0.125f, .l1 = 1}};
  Tensor halves = Tensor::empty({elements}), gradients = Tensor::empty({elements});
  std::ranges::fill(halves.span<float>(), 0.5f);
  std::ranges::fill(gradients.span<float>(), 0.25f);
  for (const int threads : test::threadCounts<Where>({1, 3})) {
    Context context(Where::device(), {.threads = threads});
    const Tensor x = copyTo(halves, Where::device());
    CHECK(squaredNorm(x, 0, elements, context) == 0.25 * static_cast<double>(elements));
    const double penalty = 0.5 * static_cast<double>(elements - 5);
    CHECK(regularisationPenalty(x, ranges, context) == penalty);
    CHECK(updateOnce({}, {x, copyTo(gradients, Where::device()), {}}, ranges, context) == penalty);
    const Tensor after = copyTo(x, Device::cpu());
    const auto span = after.span<float>();
    CHECK(std::ranges::count(span.first(5), 0.46875f) == 5);
    CHECK(std::ranges::count(span.subspan(5), 0.34375f) == elements - 5);
  }
}

TEST_CASE("an update whose result would not be finite changes nothing, with every rule") {
  const float most = std::numeric_limits<float>::max();
  const auto [ranges, elements] = awkwardRanges();
  const std::int64_t last = ranges.back().end - 1;
  struct Fault {
    float gradient, parameter;
    double learningRate;
    bool onlyUnclipped;  // with clipping the update is finite
  };
  for (const auto& rule : kRules) {
    const UpdateBlocks random = randomBlocks(elements, rule.squaresFirst);
    for (const auto& [clipNorm, clipValue] : {std::pair(0.0, 0.0), {0.0, 0.5}, {1.0, 0.0}, {1.0, 0.5}})
      for (const int threads : {1, 3})
        for (const Fault& fault : {Fault{0, 1, 0.5, false}, Fault{test::kNan, 1, 0.5, false},
                                   Fault{test::kInfinity, 1, 0.5, false},
                                   Fault{-test::kInfinity, 1, 0.5, false}, Fault{0, test::kNan, 0.5, false},
                                   Fault{most, -most, 1e38, true}, Fault{1, -most, 3e38, false}}) {
          INFO(rule.name, ", clipNorm ", clipNorm, ", clipValue ", clipValue, ", gradient ", fault.gradient,
               ", parameter ", fault.parameter);
          const bool clipped = clipNorm > 0 || clipValue > 0;
          if (fault.onlyUnclipped && clipped) continue;
          const bool good = fault.gradient == 0 && fault.parameter == 1;
          Context context(Device::cpu(), {.threads = threads});
          UpdateSettings settings = rule.settings;
          settings.clipNorm = clipNorm;
          settings.clipValue = clipValue;
          const auto plan = planUpdate(settings, elements, ranges, context);
          Tensor penalty = numberOn(Device::cpu());
          const UpdateBlocks blocks = clone(random);
          // Also after a good step, from which the plan knows the magnitude of its numbers.
          for (const bool known : {false, true}) {
            CAPTURE(known);
            if (known) {
              blocks.gradients.data<float>()[last] = fault.gradient;
              blocks.parameters.data<float>()[last] = fault.parameter;
            }
            const UpdateBlocks before = clone(blocks);
            plan->run(blocks, numbersOf(settings.rule, known ? fault.learningRate : 0.5, known ? 2 : 1),
                      penalty);
            const bool updated = good || !known;
            CHECK(std::isnan(*penalty.data<double>()) != updated);
            // A parameter that other code made NaN is found only after it was written.
            if (known && std::isnan(fault.parameter)) continue;
            CHECK(sameBits(blocks.parameters, before.parameters) != updated);
            if (!updated) CHECK(sameState(blocks, before));
          }
        }
  }
}

TEST_CASE(
    "no step of a rule exceeds the rule's bounds, for gradients and states of sizes from 2^-30 to 2^30") {
  const RandomStream random(11, "bounds");
  std::uint64_t drawn = 0;
  const auto draw = [&](double low, double high) { return low + (high - low) * random.uniform(drawn++); };
  constexpr double kSlack = 1 + 0x1p-20;  // a step rounds some ten times, each time by at most 2^-24
  for (const auto& rule : kRules)
    for (int i = 0; i < 10'000; ++i) {
      const double most = std::exp2(draw(-30, 30)), mostState = std::exp2(draw(-30, 30));
      const auto g = static_cast<float>(most * draw(-1, 1));
      float first = static_cast<float>(mostState * draw(rule.squaresFirst ? 0 : -1, 1));
      float second = static_cast<float>(mostState * draw(0, 1));
      update::StepNumbers numbers;
      std::memcpy(&numbers, numbersOf(rule.settings.rule, 1, 1 + i % 100).raw(), sizeof(numbers));
      const auto [step, bounds, states] = std::visit(
          [&](const auto& chosen) {
            const auto now = update::atStep(chosen, numbers);
            if constexpr (requires { now.bounds(most, mostState); })
              return std::tuple(now.step(g, 1, first, second), now.bounds(most, mostState), now.kStates);
            else
              return std::tuple(0.0f, update::Bounds{},
                                0);  // each update is computed twice; see update_rules.h
          },
          rule.settings.rule);
      INFO(rule.name, ", g ", g);
      CHECK(std::abs(step) <= kSlack * bounds.step);
      if (states > 0) CHECK(std::abs(first) <= kSlack * bounds.states);
      if (states > 1) CHECK(std::abs(second) <= kSlack * bounds.states);
    }
}

TEST_CASE("an update is refused also if its state would overflow") {
  Context context;
  // v + (1 - beta2) g^2 with g = 2^70: 2^140 / 1000 is beyond float32, but the parameter would hardly move.
  const UpdateBlocks blocks{Tensor::of({1, 1}, {2}),
                            Tensor::of({0x1p70f, 0x1p-70f}, {2}),
                            {Tensor::zeros({2}), Tensor::zeros({2})}};
  const UpdateRange range{.begin = 0, .end = 2, .learningRate = 0.001};
  CHECK(std::isnan(updateOnce({.rule = update::AdamRule(0.9, 0.999, 1e-8)}, blocks, {&range, 1}, context)));
  CHECK(blocks.state[1].data<float>()[1] == 0);
  // With clamping the step is valid.
  CHECK(updateOnce({.rule = update::AdamRule(0.9, 0.999, 1e-8), .clipValue = 1}, blocks, {&range, 1},
                   context) == 0);
  CHECK(blocks.state[1].data<float>()[0] == doctest::Approx(0.001));
}

TEST_CASE("weight decay uses the parameter before the update, and L1 has no effect at zero") {
  Context context;
  const UpdateBlocks blocks{Tensor::of({2, 0, -2}, {3}), Tensor::of({4, 4, 4}, {3}), {}};
  const UpdateRange range{
      .begin = 0, .end = 3, .learningRate = 0.25f, .l1 = 1, .l2 = 0.5f, .weightDecay = 0.5f};
  // g = 4 + sign(w) + w/2 = 6, 4, 2;  w - 0.25 g - 0.125 w
  CHECK(updateOnce({}, blocks, {&range, 1}, context) == 2 + 2 + 0.25 * (4 + 4));
  CHECK(test::floatsOf(blocks.parameters) == std::vector{0.25f, -1.0f, -2.25f});
}

TEST_CASE("an update of no ranges or of empty ranges changes nothing") {
  Context context;
  const UpdateBlocks blocks{Tensor::of({1, 2}, {2}), Tensor::of({1, 1}, {2}), {}};
  const UpdateRange none{.begin = 1, .end = 1, .learningRate = 1, .l2 = 1};
  CHECK(updateOnce({}, blocks, {}, context) == 0);
  CHECK(updateOnce({}, blocks, {&none, 1}, context) == 0);
  CHECK(blocks.parameters.data<float>()[1] == 2);
  CHECK(squaredNorm(Tensor::empty({0}), 0, 0, context) == 0);
}

TEST_CASE("updateSgd of one tensor has the bits of the range update, in any shape") {
  Context context;
  const std::int64_t n = 1009;
  Tensor parameters = randomTensor(2 * n, "parameters").reshape({2, n});
  const Tensor gradients = randomTensor(2 * n, "gradients").reshape({2, n});
  const UpdateBlocks blocks{cloneTensor(parameters).reshape({2 * n}), gradients.reshape({2 * n}), {}};
  const UpdateRange range{.begin = 0, .end = 2 * n, .learningRate = 0.3f};
  updateOnce({}, blocks, {&range, 1}, context);
  updateSgd(parameters, gradients, 0.3f, context);
  CHECK(std::ranges::equal(parameters.span<float>(), blocks.parameters.span<float>()));
  Tensor flat = parameters.reshape({2 * n});
  CHECK_REFUSED(updateSgd(flat, gradients, 0.3f, context),
                "updateSgd: gradients is float32 [2, 1009] on cpu, expected float32 [2018] on cpu");
}

TEST_CASE("updates refuse tensors that do not fit, and name them") {
  Context context;
  const Tensor three = Tensor::zeros({3}), two = Tensor::zeros({2});
  const UpdateRange whole{.begin = 0, .end = 3, .learningRate = 1};
  const std::span<const UpdateRange> ranges(&whole, 1);
  CHECK_REFUSED(updateOnce({}, {three, two, {}}, ranges, context),
                "update: gradients is float32 [2] on cpu, expected float32 [3] on cpu");
  const UpdateSettings nesterovs{.rule = update::NesterovsRule(0.9)};
  const UpdateSettings adam{.rule = update::AdamRule(0.9, 0.999, 1e-8)};
  CHECK_THROWS_AS(updateOnce(nesterovs, {three, three, {}}, ranges, context), InvalidArgument);
  CHECK_THROWS_AS(updateOnce(adam, {three, three, {three, two}}, ranges, context), InvalidArgument);
  CHECK_THROWS_AS(updateOnce(adam, {three, three, {three, three}}, ranges, context, 0), InvalidArgument);
  CHECK_THROWS_AS(updateOnce({}, {Tensor::zeros({3}, DType::Float64), three, {}}, ranges, context),
                  InvalidArgument);
  CHECK_THROWS_AS(updateOnce({.clipValue = -1}, {three, three, {}}, ranges, context), InvalidArgument);
  CHECK_REFUSED(updateOnce({}, {two, two, {}}, ranges, context),
                "planUpdate: the range [0, 3) is not within 2 elements");
  for (const std::int64_t begin : {2, -1})
    CHECK_THROWS_AS(squaredNorm(three, begin, 1, context), InvalidArgument);
  CHECK_THROWS_AS(regularisationPenalty(two, ranges, context), InvalidArgument);
}
