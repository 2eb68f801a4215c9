#include "muster/parallel/training/fit_run.h"

#include <doctest/doctest.h>

#include "muster/parallel/strategies/averaging.h"
#include "tests/parallel/no_exchange.h"

using namespace muster;
using muster::test::NoExchange;

namespace {

/// Inspects the run when it is aborted.
class Watching final : public NoExchange {
 public:
  Watching() : NoExchange(/*participants=*/2) {}
  void abort() noexcept override { stopping = run->stopping(); }

  const FitRun* run = nullptr;
  bool stopping = true;
};

}  // namespace

TEST_CASE("after a failure workers end their rounds only once these can no longer be merged") {
  // If workers noticed the failure before the rounds were aborted, they would contribute partial rounds, and
  // if all did, these would be merged.
  std::atomic<bool> stop{false};
  const auto strategy = Averaging{.frequency = 5}.make();
  const StrategyTraits traits = strategy->traits(2);
  const Schedule rate = 0.1;
  const std::vector<std::unique_ptr<Batch>> batches(1);
  Watching exchange;
  FitRun run({.local = 2}, batches,
             {.strategy = *strategy, .traits = traits, .stop = stop, .learningRate = rate},
             ledgerAt({}, 0, 0, 2), &exchange);
  exchange.run = &run;
  run.fail(0, std::make_exception_ptr(Error("boom")), [] { return "worker 0 failed"; });
  CHECK_FALSE(exchange.stopping);
  CHECK(run.stopping());
  CHECK_FALSE(run.rounds.await());
  CHECK_THROWS_WITH_AS(run.failure.rethrow(), "worker 0 failed: boom", TrainingError);
}
