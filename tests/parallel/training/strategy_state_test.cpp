#include "muster/parallel/training/strategy_state.h"

#include "muster/parallel/exchange/host_exchange.h"
#include "tests/parallel/one_segment.h"
#include "tests/support/thrown.h"
#include "tests/support/toy_model.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kElements = 3;

/// Three replicas, whose strategy has one block "residual".
struct Residuals {
  explicit Residuals(bool meanForOthers)
      : owned(3, StateBlock::zeros("parameters", BlockKind::Parameters, MergeRule::Average,
                                   oneSegment(kElements))),
        exchange({{&owned[0]}, {&owned[1]}, {&owned[2]}}, UpdaterState::Average) {
    const StrategyBlock residual{
        .name = "residual", .place = StrategyBlock::Place::Replica, .meanForOthers = meanForOthers};
    exchange.makeStrategyBlocks({&residual, 1});
  }
  std::vector<float> of(std::size_t worker) const {
    const Tensor& values = exchange.strategyBlock("residual").values[worker];
    return {values.data<float>(), values.data<float>() + values.elements()};
  }

  std::vector<StateBlock> owned;
  HostExchange exchange;
};

/// Gives the model the residuals of two workers.
void saveByTwo(Model& model, std::int64_t elements = kElements) {
  const Tensor saved = Tensor::empty({2, elements});
  for (std::int64_t i = 0; i < 2 * elements; ++i) saved.data<float>()[i] = static_cast<float>(i * i);
  model.strategyState().push_back({"residual", saved});
}

}  // namespace

TEST_CASE("workers of another number begin with the mean of what was saved, or anew") {
  struct Row {
    const char* what;
    bool meanForOthers, means;  // of the block; whether the training is resumed
    std::int64_t elements;      // of what was saved
    std::vector<float> expected;
  };
  const Row rows[] = {{"residuals", true, true, kElements, {4.5, 8.5, 14.5}},
                      {"other blocks", false, true, kElements, {0, 0, 0}},
                      {"residuals of a training that is not resumed", true, false, kElements, {0, 0, 0}},
                      {"residuals of a model of another size", true, true, kElements + 1, {0, 0, 0}}};
  for (const Row& row : rows) {
    CAPTURE(row.what);
    Residuals three(row.meanForOthers);
    ToyModel model;
    saveByTwo(model, row.elements);
    loadStrategyState(three.exchange, model, /*stale=*/false, row.means);
    for (std::size_t w = 0; w < 3; ++w) CHECK(three.of(w) == row.expected);
  }
}

TEST_CASE("residuals of a damaged file are refused by name before their mean is formed") {
  Residuals three(/*meanForOthers=*/true);
  ToyModel model;
  saveByTwo(model);
  model.strategyState().front().values.data<float>()[1] = std::nanf("");
  CHECK_REFUSED(loadStrategyState(three.exchange, model, /*stale=*/false, /*means=*/true),
                "strategy state: element 1 of \"residual\" is nan, which is impossible");
}

TEST_CASE("a checkpoint over nodes gives other workers the mean of its residuals, too") {
  Residuals three(/*meanForOthers=*/true);
  const Tensor saved = Tensor::zeros({2, kElements});
  saved.data<float>()[0] = 1;
  takeSection({{"of workers.residual", saved}}, Section::OfWorkers, three.exchange, /*sameWorkers=*/false);
  for (std::size_t w = 0; w < 3; ++w) CHECK(three.of(w) == std::vector<float>{0.5, 0, 0});
}
