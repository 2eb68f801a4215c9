// Long runs hold no more resources at their end than after their beginning: 1,000 epochs, calls of fit() and
// evaluations, and 20 wrappers; with MUSTER_LONG set, 2,000 epochs, 10,000 evaluations and 1,000 wrappers.

#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/held.h"
#include "tests/support/small_examples.h"
#include "tests/support/toy_wrapper.h"
#include "tests/support/whole.h"

using namespace muster;
using namespace muster::test;

namespace {

std::unique_ptr<MultiLayerNetwork> smallNetwork() {
  auto model = std::make_unique<MultiLayerNetwork>(MultiLayerConfiguration{
      .seed = 3,
      .updater = Adam{.learningRate = 0.001},
      .inputShape = {6},
      .layers = {Dense{.units = 8, .activation = Activation::Tanh}, Output{.classes = 4}}});
  model->init();
  return model;
}

ParallelWrapper mergedEveryTwo(Model& model, int workers = 3) {
  return toyWrapper(model, workers, 2).build();
}

/// Does something count / 10 times, then `count` times, and checks that the latter leave no additional
/// resources.
template <typename Once>
void repeat(const std::string& what, int count, Once once) {
  for (int i = 0; i < std::max(3, count / 10); ++i) once();
  const Held before = Held::now();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) once();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  const Held after = Held::now();
  MESSAGE(count, " ", what, ": ", before.mebibytes, " MiB before, ", after.mebibytes, " after; threads ",
          before.threads, ", ", after.threads, "; descriptors ", before.descriptors, ", ", after.descriptors,
          "; objects ", before.objects, ", ", after.objects, "; ", time.count(), " s");
  CHECK(after.objects == before.objects);
  CHECK(after.threads == before.threads);
  CHECK(after.descriptors == before.descriptors);
  CHECK(after.mebibytes <= before.mebibytes + mebibytesOfNoise(before.threads));
}

}  // namespace

TEST_CASE("long runs use no more memory than short ones: epochs, fit() calls, evaluations") {
  const auto model = smallNetwork();
  SmallExamples data(9);
  auto wrapper = mergedEveryTwo(*model);
  repeat("times 100 epochs", whole() ? 20 : 10, [&] { wrapper.fit(data, 100); });
  repeat("calls of fit()", 1'000, [&] { wrapper.fit(data); });
  repeat("evaluations by the wrapper", whole() ? 10'000 : 1'000, [&] { wrapper.evaluate(data); });
  repeat("calls of the model's own fit()", 1'000, [&] { model->fit(data); });
}

TEST_CASE("long runs use no more memory than short ones: wrappers") {
  const auto model = smallNetwork();
  SmallExamples data(9);
  repeat("wrappers that train and evaluate", whole() ? 1'000 : 20, [&] {
    auto wrapper = mergedEveryTwo(*model);
    wrapper.fit(data);
    wrapper.evaluate(data);
  });
  // Of 20 wrappers the tolerance lets a leak of 55 KiB each pass, of 1,000 one of 1 KiB.
  repeat("wrappers that are never used", whole() ? 1'000 : 20, [&] { mergedEveryTwo(*model); });
}

TEST_CASE("two wrappers that train simultaneously have the bits of each alone") {
  const auto alone = [](int workers) {
    const auto model = smallNetwork();
    SmallExamples data(9);
    mergedEveryTwo(*model, workers).fit(data, 20);
    return stateBits(*model);
  };
  const auto first = smallNetwork(), second = smallNetwork();
  {
    SmallExamples firstData(9), secondData(9);
    auto firstWrapper = mergedEveryTwo(*first, 2), secondWrapper = mergedEveryTwo(*second, 3);
    const std::jthread other([&] { firstWrapper.fit(firstData, 20); });
    secondWrapper.fit(secondData, 20);
  }
  CHECK(stateBits(*first) == alone(2));
  CHECK(stateBits(*second) == alone(3));
}
