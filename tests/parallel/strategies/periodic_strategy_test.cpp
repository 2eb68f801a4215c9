#include "muster/parallel/strategies/periodic_strategy.h"

#include "muster/parallel/exchange/host_exchange.h"
#include "tests/parallel/replicas.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::test;

namespace {

struct MeasuringOptions {
  Period frequency;
  Codec codec;
};

/// Measures 3 of 12 on participant 0, and 0 of 36 on participant 1: sqrt(3 / 48) is a quarter.
struct Measuring final : PeriodicStrategy<MeasuringOptions> {
  explicit Measuring(std::string_view measured) : PeriodicStrategy({3, {}}, measured) {}
  std::string describe() const override { return "measuring"; }
  void land(int, const Round&, MergeOps& ops) override {
    CHECK(all_.elements() == 20);
    if (measures()) spread(ops) = ops.participant() == 0 ? Spread{3, 12} : Spread{0, 36};
  }
};

}  // namespace

TEST_CASE("listeners get the period of a round, and the distance of all participants if it has a name") {
  const Replicas replicas(firstWorkers(2), {{"parameters", BlockKind::Parameters, MergeRule::Average, 20}},
                          [](int, std::size_t, std::int64_t) { return 0; });
  HostExchange exchange(replicas.states, UpdaterState::Average);
  Context context;
  for (const std::string measured : {"", "distance"}) {
    Measuring rule(measured);
    rule.begin(exchange);
    CHECK(rule.plan({.workers = 2}).iterations == 3);
    for (const int p : {0, 1}) {
      MergeOps ops(exchange, p, context);
      rule.land(0, {}, ops);
    }
    std::string text;
    for (const auto& [name, value] : rule.report().values) text += fmt::format("{} {}, ", name, value);
    CHECK(text == (measured.empty() ? "period 3, " : "period 3, distance 0.25, "));
  }
}
