#include "muster/core/listeners/detail/best_state.h"

#include "tests/support/allocations.h"
#include "tests/support/one_block_model.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using detail::BestState;

Tensor number(float value) {
  return Tensor::of({value}, {1});
}

/// With a parameter and a strategy's state.
struct Trained {
  Trained() {
    parameter() = 3;
    model.strategyState().push_back({"momentum", number(7)});
  }
  float& parameter() { return model.block(BlockKind::Parameters).values.data<float>()[0]; }
  std::string text() {
    std::string all = textOf(parameter(), model.iteration(), model.epoch(), model.score());
    for (const auto& [name, values] : model.strategyState())
      all += fmt::format(" {} {}", name, values.data<float>()[0]);
    return all;
  }
  OneBlockModel model;
};

TEST_CASE("a state that was taken is given back: parameters, counters, score and the strategy's state") {
  Trained t;
  t.model.setCounters(5, 2);
  t.model.setScore(0.5);
  BestState best;
  CHECK_FALSE(best.whole());
  CHECK(best.take(t.model));
  CHECK(best.whole());
  CHECK(best.score() == 0.5);
  t.parameter() = 4;
  t.model.setCounters(9, 3);
  t.model.setScore(1);
  t.model.strategyState().clear();
  best.giveBack(t.model);
  CHECK(t.text() == "3 5 2 0.5 momentum 7");
}

TEST_CASE("copies stay in their memory, unless the strategy's state is another") {
  Trained t;
  auto& state = t.model.strategyState();
  BestState best;
  const auto takesNew = [&] {
    const bool first = best.take(t.model);
    CHECK_FALSE(best.take(t.model));
    return first;
  };
  CHECK(takesNew());
  state[0].name = "centre";
  CHECK(takesNew());
  state[0].values = Tensor::zeros({2});
  CHECK(takesNew());
  state.clear();
  CHECK(takesNew());
}

TEST_CASE("copies in the listener state are read again, and not if one is missing or has another shape") {
  Trained t;
  BestState best, read, none;
  best.take(t.model);
  for (int i = 0; i < 2; ++i) {
    best.putInto(t.model.listenerState(), "best: ");
    // No gradients, but the strategy's state.
    CHECK(t.model.listenerState().size() == t.model.state().size());
  }
  read.setScore(0.5);
  for (int i = 0; i < 2; ++i) {  // a state that is read again replaces the one before, with its score
    t.parameter() = 4;
    t.model.strategyState().clear();
    REQUIRE(read.read(t.model, "best: "));
    CHECK(read.score() == 0.5);
    read.giveBack(t.model);
    CHECK(t.text() == "3 0 0 0.5 momentum 7");
  }
  CHECK_FALSE(none.read(t.model, "other: "));
  putValues(t.model.listenerState(), "best: block parameters", Tensor::zeros({3}));
  CHECK_FALSE(none.read(t.model, "best: "));
  CHECK_FALSE(none.whole());
}

TEST_CASE("after a copy that failed, at any allocation, the next one is whole and in other memory") {
  bool any = true;
  for (long nth = 0; any; ++nth) {
    CAPTURE(nth);
    Trained t;
    t.model.state();
    BestState best;
    bool failed = false;
    {
      const FailingAllocations shortage(nth);
      try {
        best.take(t.model);
      } catch (const std::exception&) {
        failed = true;
      }
      any = shortage.any();
    }
    CHECK(best.whole() == !failed);
    CHECK(best.take(t.model) == failed);
    const std::string before = t.text();
    t.parameter() = 4;
    best.giveBack(t.model);
    CHECK(t.text() == before);
  }
}

}  // namespace
}  // namespace muster::test
