#include "muster/core/listeners/detail/best_state.h"

#include <doctest/doctest.h>

#include "tests/support/allocations.h"
#include "tests/support/one_block_model.h"

namespace muster {
namespace {

using detail::BestState;
using test::OneBlockModel;

float& parameter(Model& model) {
  return model.block(BlockKind::Parameters).values.data<float>()[0];
}

Tensor number(float value) {
  Tensor tensor = Tensor::zeros({1});
  tensor.data<float>()[0] = value;
  return tensor;
}

TEST_CASE("a state that was taken is given back: parameters, counters, score and the strategy's state") {
  OneBlockModel model;
  parameter(model) = 3;
  model.setCounters(5, 2);
  model.setScore(0.5);
  model.strategyState().push_back({"momentum", number(7)});
  BestState best;
  CHECK_FALSE(best.whole());
  CHECK(best.take(model));
  CHECK(best.whole());
  CHECK(best.score() == 0.5);
  parameter(model) = 4;
  model.setCounters(9, 3);
  model.setScore(1);
  model.strategyState().clear();
  best.giveBack(model);
  CHECK(parameter(model) == 3);
  CHECK(model.iteration() == 5);
  CHECK(model.epoch() == 2);
  CHECK(model.score() == 0.5);
  REQUIRE(model.strategyState().size() == 1);
  CHECK(model.strategyState()[0].values.data<float>()[0] == 7);
}

TEST_CASE("copies stay in their memory, unless the strategy's state is another") {
  OneBlockModel model;
  BestState best;
  CHECK(best.take(model));
  CHECK_FALSE(best.take(model));
  model.strategyState().push_back({"momentum", number(1)});
  CHECK(best.take(model));
  CHECK_FALSE(best.take(model));
  model.strategyState()[0].name = "centre";
  CHECK(best.take(model));
  model.strategyState()[0].values = Tensor::zeros({2});
  CHECK(best.take(model));
  model.strategyState().clear();
  CHECK(best.take(model));
}

TEST_CASE("copies in the listener state are read again, and not if one is missing or has another shape") {
  OneBlockModel model;
  parameter(model) = 3;
  model.strategyState().push_back({"momentum", number(7)});
  BestState best;
  best.take(model);
  best.putInto(model.listenerState(), "best: ");
  const std::size_t entries = model.listenerState().size();
  CHECK(entries == model.state().size());  // no gradients, but the strategy's state
  best.putInto(model.listenerState(), "best: ");
  CHECK(model.listenerState().size() == entries);

  parameter(model) = 4;
  model.strategyState().clear();
  BestState read;
  REQUIRE(read.read(model, "best: "));
  read.giveBack(model);
  CHECK(parameter(model) == 3);
  CHECK(model.strategyState().size() == 1);

  BestState none;
  CHECK_FALSE(none.read(model, "other: "));
  CHECK_FALSE(none.whole());
  putValues(model.listenerState(), "best: block parameters", Tensor::zeros({3}));
  CHECK_FALSE(none.read(model, "best: "));
  CHECK_FALSE(none.whole());
}

TEST_CASE("after a copy that failed, at any allocation, the next one is whole and in other memory") {
  bool any = true;
  for (long nth = 0; any; ++nth) {
    CAPTURE(nth);
    OneBlockModel model;
    model.strategyState().push_back({"momentum", number(7)});
    model.state();
    parameter(model) = 3;
    BestState best;
    bool failed = false;
    {
      const test::FailingAllocations shortage(nth);
      try {
        best.take(model);
      } catch (const std::exception&) {
        failed = true;
      }
      any = shortage.any();
    }
    CHECK(best.whole() == !failed);
    CHECK(best.take(model) == failed);
    parameter(model) = 4;
    best.giveBack(model);
    CHECK(parameter(model) == 3);
    CHECK(model.strategyState().size() == 1);
  }
}

TEST_CASE("a state that is read again replaces the one before, with its score") {
  OneBlockModel model;
  model.strategyState().push_back({"momentum", number(7)});
  BestState best;
  best.take(model);
  best.putInto(model.listenerState(), "best: ");
  BestState read;
  read.setScore(0.5);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(read.read(model, "best: "));
    CHECK(read.score() == 0.5);
    read.giveBack(model);
    CHECK(model.strategyState().size() == 1);
  }
}

}  // namespace
}  // namespace muster
