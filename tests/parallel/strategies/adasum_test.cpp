#include "muster/parallel/strategies/adasum.h"

#include "tests/parallel/rule_wrapper.h"
#include "tests/support/on_merge.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kWidth = 100;  // each of four workers has a share

/// Records the gain at each merge of a model without other state.
std::shared_ptr<Listener> recordGain(std::vector<double>& gains) {
  return onMerge([&](const MergeEvent& e) {
    REQUIRE(e.values.size() == 2);
    CHECK(e.values[1].name == "gain");
    gains.push_back(e.values[1].value);
    const Tensor& parameters = e.trainer.model().block(BlockKind::Parameters).values;
    CHECK(e.bytes == static_cast<std::int64_t>(parameters.bytes()));  // also on devices
  });
}

/// Every bit of the model after two epochs.
template <typename T>
std::vector<std::byte> train(const std::vector<ToyBatch>& batches, T strategy, int workers, int devices = 0) {
  ToyModel model({.size = kWidth, .training = halfNesterovs(), .statistics = true});
  ToyIterator data(batches, kWidth);
  wrapperOf(model, workers, strategy, devices).fit(data, 2);
  return stateBits(model);
}

}  // namespace

TEST_CASE("Adasum adds up orthogonal moves") {
  // With learning rate 1 from 0, a move is the batch's value. The values are powers of two, so products are
  // exact.
  for (const int workers : {2, 4, 8})
    for (const int devices : {0, 1, 2}) {
      INFO("workers ", workers, ", devices ", devices);
      std::vector<ToyBatch> batches(static_cast<std::size_t>(workers), {std::vector<float>(kWidth)});
      std::vector<float> sum(kWidth);
      for (std::size_t w = 0; w < batches.size(); ++w)
        for (std::size_t j = w; j < sum.size(); j += batches.size())
          sum[j] = batches[w].values[j] = static_cast<float>(1 << (j % 5)) * (j % 2 == 0 ? 1 : -1);
      ToyModel model({.size = kWidth, .training = {.updater = Sgd{.learningRate = 1}}});
      ToyIterator data(batches, kWidth);
      std::vector<double> gains;
      wrapperOf(model, workers, Adasum{.frequency = 1}, devices, {recordGain(gains)}).fit(data);
      CHECK(model.parameters() == sum);
      CHECK(gains == std::vector<double>{static_cast<double>(workers)});
    }
}

TEST_CASE("Adasum of equal replicas equals averaging, bit for bit") {
  for (const int workers : {2, 4})
    for (const int devices : {0, 1, workers}) {
      INFO("workers ", workers, ", devices ", devices);
      std::vector<ToyBatch> same;
      for (const auto& batch : randomBatches(9, 7, 4, kWidth, /*ragged=*/true))
        same.insert(same.end(), static_cast<std::size_t>(workers), batch);
      CHECK(train(same, Adasum{.frequency = 2}, workers, devices) ==
            train(same, Averaging{.frequency = 2}, workers, devices));
    }
}

TEST_CASE("Adasum of parallel moves is their mean, and an untrained worker changes nothing") {
  // From 0 to 2 and 6: (1 - 12 / 8) 2 + (1 - 12 / 72) 6 = 4. Then worker 0 alone moves to 16.
  for (const int devices : {0, 2}) {
    ToyModel model({.training = {.updater = Sgd{.learningRate = 1}}});
    auto data = ToyIterator::ofValues({2, 6, 16});
    std::vector<double> gains;
    wrapperOf(model, 2, Adasum{.frequency = 1}, devices, {recordGain(gains)}).fit(data);
    CHECK(model.parameters()[0] == 16);
    REQUIRE(gains.size() == 2);
    CHECK(gains[0] == doctest::Approx(1.0 / 3).epsilon(1e-15));  // -1/2 + 5/6
    CHECK(gains[1] == 2);
  }
}

TEST_CASE("Adasum has other bits if other workers are paired") {
  const auto batches = randomBatches(5, 30, 4, kWidth, /*ragged=*/true);
  auto swapped = batches;  // workers 1 and 2
  for (std::size_t b = 0; b + 2 < swapped.size(); b += 4) std::swap(swapped[b + 1], swapped[b + 2]);
  CHECK(train(swapped, Adasum{.frequency = 2}, 4) != train(batches, Adasum{.frequency = 2}, 4));
}

TEST_CASE("Adasum refuses numbers of workers that it cannot pair") {
  ToyModel model;
  for (const int workers : {3, 6})
    CHECK_REFUSED(wrapperOf(model, workers, Adasum{}),
                  fmt::format("adasum: the number of workers must be a power of two, because workers are "
                              "merged in pairs, got {}",
                              workers));
}
