#include "muster/core/base/is_divergence.h"

#include "tests/support/test.h"

namespace muster {
namespace {

TEST_CASE("a training diverged if a score that is not finite is its failure or the cause of it") {
  const auto failure = [](const std::exception_ptr& cause) {
    return std::make_exception_ptr(TrainingError("worker 0 failed", 0, cause));
  };
  const auto score = std::make_exception_ptr(NonFiniteScore("the score became nan"));
  const auto other = std::make_exception_ptr(Error("the disk is full"));
  CHECK(isDivergence(score));
  CHECK(isDivergence(failure(score)));
  CHECK(isDivergence(failure(failure(score))));
  CHECK_FALSE(isDivergence(nullptr));
  CHECK_FALSE(isDivergence(other));
  CHECK_FALSE(isDivergence(failure(other)));
  CHECK_FALSE(isDivergence(failure(nullptr)));
  CHECK_FALSE(isDivergence(std::make_exception_ptr(1)));
}

}  // namespace
}  // namespace muster
