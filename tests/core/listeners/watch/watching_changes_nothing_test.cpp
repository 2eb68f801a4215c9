#include "muster/core/listeners/watch_listener.h"
#include "muster/parallel/strategies/outer_averaging.h"
#include "tests/parallel/builder_of.h"
#include "tests/support/test.h"
#include "tests/support/toy_wrapper.h"

#ifdef MUSTER_WITH_TENSORBOARD
#include "muster/core/listeners/watch/tensorboard/tensorboard_listener.h"
#endif
#ifdef MUSTER_WITH_PAGE
#include "muster/core/listeners/watch/page/page_listener.h"
#endif

namespace muster::test {
namespace {

/// Three epochs with a rule, or two without a wrapper, in which listeners get the trained model itself.
std::vector<std::byte> bitsAfter(const std::optional<AnyStrategy>& rule, const Listeners& listeners) {
  constexpr std::int64_t kWidth = 37;
  ToyModel model(
      {.size = kWidth, .training = {.updater = Nesterovs{.learningRate = 0.1}}, .statistics = true});
  ToyIterator data(randomBatches(11, 13, 6, kWidth, true), kWidth);
  if (!rule) {
    fitWith(model, 0, data, 2, listeners);
  } else {
    auto wrapper = builderOf(model, 2, *rule).listeners(listeners).build();
    wrapper.fit(data, 2);
    wrapper.fit(data);
  }
  return model.allBits();
}

/// Checks that what `watch` makes, with the part that listens to workers, changes no bit of a training.
[[maybe_unused]] void checkChangesNothing(const auto& watch) {
  using Rule = std::optional<AnyStrategy>;
  for (const Rule& rule :
       {Rule(), Rule(Averaging{.frequency = 3}),
        Rule(Averaging{.frequency = 2, .updaterState = UpdaterState::Keep}), Rule(OuterAveraging::diloco()),
        Rule(SynchronousGradients{}), Rule(SharedGradients{})}) {
    const TemporaryDirectory directory;
    const auto watcher = watch(directory);
    CHECK(bitsAfter(rule, {watcher, watcher->workers()}) == bitsAfter(rule, {}));
  }
}

TEST_CASE("watching in the terminal changes no bit of a training, whatever the strategy") {
  checkChangesNothing([](const auto&) {
    return std::make_shared<WatchListener>(
        WatchListenerOptions{.terminal = {.terminal = true, .write = [](std::string_view) {}}});
  });
}

#ifdef MUSTER_WITH_TENSORBOARD
TEST_CASE("an event file changes no bit of a training, whatever the strategy") {
  checkChangesNothing([](const TemporaryDirectory& directory) {
    return std::make_shared<TensorBoardListener>(directory / "run", TensorBoardOptions{.histogramsEvery = 1});
  });
}
#endif

#ifdef MUSTER_WITH_PAGE
TEST_CASE("the page changes no bit of a training, whatever the strategy") {
  checkChangesNothing([](const auto&) {
    return std::make_shared<PageListener>(PageOptions{.sink = [](std::string_view) {}});
  });
}
#endif

}  // namespace
}  // namespace muster::test
