#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "muster/parallel/strategies/outer_averaging.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/toy_wrapper.h"
#ifdef MUSTER_WITH_TENSORBOARD
#include "muster/core/listeners/watch/tensorboard/tensorboard_listener.h"
#endif
#ifdef MUSTER_WITH_PAGE
#include "muster/core/listeners/watch/page/page_listener.h"
#endif

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kWidth = 37;

const std::vector<AnyStrategy>& strategies() {
  static const std::vector<AnyStrategy> all{
      Averaging{.frequency = 3}, Averaging{.frequency = 2, .updaterState = UpdaterState::Keep},
      OuterAveraging::diloco(), SynchronousGradients{}, SharedGradients{}};
  return all;
}

std::vector<std::byte> bitsAfter(const AnyStrategy& strategy, const Listeners& listeners) {
  ToyModel model(
      {.size = kWidth, .training = {.updater = Nesterovs{.learningRate = 0.1}}, .statistics = true});
  ToyIterator data(randomBatches(11, 13, 6, kWidth, true), kWidth);
  ParallelWrapper::Builder builder(model);
  auto wrapper = builder.workers(2).pinThreads(false).strategy(strategy).listeners(listeners).build();
  wrapper.fit(data, 2);
  wrapper.fit(data);
  return model.allBits();
}

/// The same without a wrapper: listeners get the trained model itself.
std::vector<std::byte> bitsAfterFitAlone(const Listeners& listeners) {
  ToyModel model(
      {.size = kWidth, .training = {.updater = Nesterovs{.learningRate = 0.1}}, .statistics = true});
  ToyIterator data(randomBatches(11, 13, 6, kWidth, true), kWidth);
  model.setListeners(listeners);
  model.fit(data, 2);
  return model.allBits();
}

}  // namespace

#ifdef MUSTER_WITH_TENSORBOARD
TEST_CASE("an event file changes no bit of a training, whatever the strategy") {
  for (const auto& strategy : strategies()) {
    const TemporaryDirectory directory;
    const auto board =
        std::make_shared<TensorBoardListener>(directory / "run", TensorBoardOptions{.histogramsEvery = 1});
    CHECK(bitsAfter(strategy, {board, board->workers()}) == bitsAfter(strategy, {}));
  }
  const TemporaryDirectory directory;
  const auto board =
      std::make_shared<TensorBoardListener>(directory / "run", TensorBoardOptions{.histogramsEvery = 1});
  CHECK(bitsAfterFitAlone({board, board->workers()}) == bitsAfterFitAlone({}));
}
#endif

#ifdef MUSTER_WITH_PAGE
TEST_CASE("the page changes no bit of a training, whatever the strategy") {
  const auto page = [] {
    return std::make_shared<PageListener>(PageOptions{.sink = [](std::string_view) {}});
  };
  for (const auto& strategy : strategies()) {
    const auto one = page();
    CHECK(bitsAfter(strategy, {one, one->workers()}) == bitsAfter(strategy, {}));
  }
  const auto one = page();
  CHECK(bitsAfterFitAlone({one, one->workers()}) == bitsAfterFitAlone({}));
}
#endif
