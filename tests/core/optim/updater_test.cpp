#include "muster/core/optim/updaters.h"

#include <fmt/ranges.h>

#include "muster/core/optim/optimizer.h"
#include "tests/core/optim/golden.h"
#include "tests/support/all_updaters.h"
#include "tests/support/json_text.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::test;

namespace {

TrainingOptions withAll(Updater updater) {
  return {.updater = std::move(updater),
          .l1 = 0.01,
          .l2 = 0.05,
          .weightDecay = 0.1,
          .clipNorm = 1,
          .clipValue = 0.375};
}

const std::map<std::string_view, TrainingOptions> kCases{
    {"sgd", {.updater = Sgd{.learningRate = 0.1}}},
    {"sgd l1 l2", {.updater = Sgd{.learningRate = 0.1}, .l1 = 0.01, .l2 = 0.05}},
    {"sgd decay", {.updater = Sgd{.learningRate = 0.1}, .weightDecay = 0.1}},
    {"sgd clip norm", {.updater = Sgd{.learningRate = 0.1}, .clipNorm = 1}},
    {"sgd clip value", {.updater = Sgd{.learningRate = 0.1}, .clipValue = 0.375}},
    {"sgd all", withAll(Sgd{.learningRate = 0.1})},
    {"sgd momentum", {.updater = Sgd{.learningRate = 0.01, .momentum = 0.9}}},
    {"sgd momentum all", withAll(Sgd{.learningRate = 0.1, .momentum = 0.5})},
    {"nesterovs", {.updater = Nesterovs{.learningRate = 0.01}}},
    {"nesterovs l2", {.updater = Nesterovs{.learningRate = 0.01, .momentum = 0.9}, .l2 = 5e-4}},
    {"nesterovs all", withAll(Nesterovs{.learningRate = 0.1, .momentum = 0.5})},
    {"nesterovs rate in velocity",
     {.updater = Nesterovs{.learningRate = StepSchedule{.initial = 0.2, .decay = 0.5, .every = 3},
                           .momentum = 0.9,
                           .rateInVelocity = true},
      .l2 = 0.05}},
    {"adam", {.updater = Adam{}}},
    {"adam hat",
     {.updater =
          Adam{.learningRate = 0.05, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 0.25, .epsilonHat = true}}},
    {"adamw hat",
     {.updater = AdamW{.learningRate = 0.05,
                       .beta1 = 0.8,
                       .beta2 = 0.95,
                       .epsilon = 0.25,
                       .epsilonHat = true,
                       .weightDecay = 0.3}}},
    {"adam all", withAll(Adam{.learningRate = 0.05, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3})},
    {"adamw", {.updater = AdamW{}}},
    {"adamw all",
     withAll(AdamW{.learningRate = 0.05, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weightDecay = 0.3})},
    {"rmsprop", {.updater = RmsProp{}}},
    {"rmsprop all", withAll(RmsProp{.learningRate = 0.05, .decay = 0.75, .epsilon = 1e-3})},
    {"adagrad", {.updater = AdaGrad{}}},
    {"adagrad all", withAll(AdaGrad{.learningRate = 0.1, .epsilon = 1e-3})},
    {"lion", {.updater = Lion{}, .weightDecay = 0.1}},
    {"lion all", withAll(Lion{.learningRate = 0.05, .beta1 = 0.5, .beta2 = 0.75})},
    {"sgd fixed", {.updater = Sgd{.learningRate = 0.05}}},
    {"sgd step", {.updater = Sgd{.learningRate = StepSchedule{.initial = 0.2, .decay = 0.5, .every = 3}}}},
    {"sgd exponential", {.updater = Sgd{.learningRate = ExponentialSchedule{.initial = 0.2, .decay = 0.75}}}},
    {"sgd cosine",
     {.updater = Sgd{.learningRate = CosineSchedule{.initial = 0.2, .final = 0.02, .iterations = 8}}}},
    {"sgd warmup", {.updater = Sgd{.learningRate = WarmUpSchedule{.iterations = 4, .then = 0.1}}}},
    {"sgd warmup cosine",
     {.updater =
          Sgd{.learningRate =
                  WarmUpSchedule{.iterations = 3,
                                 .then = CosineSchedule{.initial = 0.2, .final = 0.02, .iterations = 8}}}}},
};

/// Five weights and two biases, started as in the script.
struct Problem {
  Problem() {
    auto table = std::make_shared<SegmentTable>();
    table->add({.name = "weight", .shape = {5}});
    table->add({.name = "bias", .shape = {2}, .regularised = false});
    parameters = StateBlock::zeros("parameters", BlockKind::Parameters, MergeRule::Average, table);
    gradients = StateBlock::zeros("gradients", BlockKind::Gradients, MergeRule::Keep, table);
    for (int i = 0; i < 7; ++i) at(parameters, i) = static_cast<float>((3 * i) % 7 - 3) / 4;
  }
  static float& at(StateBlock& block, int i) {
    return i < 5 ? block.segment("weight").data<float>()[i] : block.segment("bias").data<float>()[i - 5];
  }
  void setGradients(int step) {
    for (int i = 0; i < 7; ++i) at(gradients, i) = static_cast<float>((7 * i + 5 * step) % 13 - 6) / 8;
  }
  StateBlock parameters, gradients;
};

/// Every updater, each option with a value other than its default.
const std::vector<Updater> kUpdaters{
    Sgd{.learningRate = 0.25},
    Nesterovs{.learningRate = StepSchedule{.initial = 0.5, .decay = 0.5, .every = 7},
              .momentum = 0.75,
              .rateInVelocity = true},
    Adam{.learningRate = 0.5, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 0.125, .epsilonHat = true},
    AdamW{.learningRate = 0.5,
          .beta1 = 0.5,
          .beta2 = 0.75,
          .epsilon = 0.125,
          .epsilonHat = true,
          .weightDecay = 0.0625},
    RmsProp{.learningRate = 0.5, .decay = 0.75, .epsilon = 0.125},
    AdaGrad{.learningRate = 0.5, .epsilon = 0.125},
    Lion{.learningRate = 0.5, .beta1 = 0.5, .beta2 = 0.75},
};

}  // namespace

TEST_CASE("updaters agree with the independent float64 script") {
  std::map<std::string_view, std::pair<Problem, std::unique_ptr<Optimizer>>> runs;
  Context context;
  for (const auto& golden : kGoldenSteps) {
    INFO(golden.name, ", iteration ", golden.iteration);
    auto& [problem, optimizer] = runs[golden.name];
    if (!optimizer) optimizer = std::make_unique<Optimizer>(kCases.at(golden.name), problem.parameters);
    problem.setGradients(static_cast<int>(golden.iteration));
    const double penalty =
        optimizer->apply(problem.parameters, problem.gradients, golden.iteration, 0, context);
    // Ten float32 steps on numbers of about one: a few units in the last place (6e-8).
    CHECK(std::abs(penalty - golden.penalty) <= 1e-6);
    for (int i = 0; i < 7; ++i) {
      CAPTURE(i);
      CHECK(std::abs(Problem::at(problem.parameters, i) - golden.parameters[i]) <= 1e-6);
    }
  }
  CHECK(runs.size() == kCases.size());
}

TEST_CASE("an updater written and read back is the same updater, its options named") {
  for (const auto& updater : kUpdaters) {
    CAPTURE(updater.type());
    const auto text = jsonOf(updater);
    const auto again = fromJson(text, updater.type() == "sgd" ? Updater(Adam{}) : Updater());
    CHECK(again.type() == updater.type());
    CHECK(again.learningRate().at(10) == updater.learningRate().at(10));
    CHECK(jsonOf(again) == text);
  }
  CHECK(jsonOf(kUpdaters[3]) ==
        R"({"it": {"type": "adamw", "learningRate": {"type": "fixed", "value": 0.5}, "beta1": 0.5, )"
        R"("beta2": 0.75, "epsilon": 0.125, "epsilonHat": true, "weightDecay": 0.0625}})");
}

TEST_CASE("updaters are created by name, with their defaults and a learning rate") {
  for (const auto& usual : allUpdaters()) {
    CAPTURE(usual.type());
    const Updater updater = Updater::named(usual.type(), 0.0625);
    CHECK(updater.type() == usual.type());
    CHECK(updater.learningRate().at(1000) == 0.0625);
    const auto states = std::visit([](const auto& rule) { return rule.kStates; }, updater.settings()->rule);
    CHECK(updater.stateNames().size() == static_cast<std::size_t>(states));
  }
  CHECK(jsonOf(Updater::named("nesterovs", 1)) ==
        jsonOf(Updater(Nesterovs{.learningRate = 1, .momentum = 0.9})));
  std::set<std::string_view> names;
  for (const auto& updater : kUpdaters) names.insert(updater.type());
  CHECK(names.size() == allUpdaters().size());  // kUpdaters has each of them
  CHECK_REFUSED(Updater::named("sdg", 0.1),
                fmt::format("updater: there is no type \"sdg\"; there are {}; the nearest is sgd",
                            fmt::join(names, ", ")));
}

TEST_CASE("Sgd keeps a velocity only with momentum, and files have it") {
  CHECK(Updater(Sgd{}).stateNames().empty());
  const Updater updater = Sgd{.learningRate = 0.5, .momentum = 0.75};
  CHECK(updater.stateNames() == std::vector<std::string>{"velocity"});
  CHECK_CONTAINS(jsonOf(updater), "\"momentum\": 0.75");
}

TEST_CASE("updaters refuse options out of range") {
  const Updater broken[] = {
      Sgd{.learningRate = -0.1},
      Sgd{.learningRate = kNan},
      Sgd{.momentum = 1},
      Nesterovs{.momentum = 1},
      Nesterovs{.momentum = -0.1},
      Nesterovs{.learningRate = StepSchedule{.every = 0}},
      Adam{.beta1 = 1},
      Adam{.beta2 = 1.5},
      Adam{.beta2 = kNan},
      Adam{.epsilon = 0},
      AdamW{.beta1 = -1},
      AdamW{.weightDecay = -0.01},
      AdamW{.epsilon = 1e-60},  // zero in float32
      RmsProp{.decay = 1},
      RmsProp{.epsilon = -1},
      AdaGrad{.learningRate = -1},
      AdaGrad{.epsilon = 0},
      Lion{.beta1 = 1},
      Lion{.beta2 = -0.5},
  };
  for (const auto& updater : broken) CHECK_THROWS_AS(updater.validate(), InvalidArgument);
  for (const auto& updater : kUpdaters) CHECK_NOTHROW(updater.validate());
  CHECK_NOTHROW(Updater(Sgd{.learningRate = 0}).validate());
  CHECK_REFUSED(Updater(Nesterovs{.momentum = 2}).validate(),
                "updater nesterovs: momentum must be in [0, 1), got 2");
}
