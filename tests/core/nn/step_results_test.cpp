#include "muster/core/nn/step/step_results.h"

#include "muster/core/ops/loss.h"
#include "tests/support/test.h"

namespace muster {
namespace {

TEST_CASE("what a step writes for each output, the penalty and the gradient's element is read on the host") {
  for (const std::size_t outputs : {1, 2, 5}) {
    CAPTURE(outputs);
    Context context;
    detail::StepResults results(outputs, context);
    CHECK(results.losses().elements() == static_cast<std::int64_t>(outputs * kLossNumbers));
    for (std::size_t i = 0; i < outputs; ++i)
      for (std::size_t k = 0; k < kLossNumbers; ++k)
        results.loss(i).data<double>()[k] = static_cast<double>(100 * i + k);
    results.penalty().data<double>()[0] = 0.5;
    Tensor bad = results.badGradient();
    bad.data<double>()[0] = -1;
    results.fetch();
    context.synchronize();
    for (std::size_t i = 0; i < outputs; ++i) {
      REQUIRE(results.hostLoss(i).size() == kLossNumbers);
      for (std::size_t k = 0; k < kLossNumbers; ++k)
        CHECK(results.hostLoss(i)[k] == static_cast<double>(100 * i + k));
    }
    CHECK(results.hostPenalty() == 0.5);
    CHECK(results.hostBadGradient() == -1);
  }
}

}  // namespace
}  // namespace muster
