// Errors for iterators, models and listeners that violate their contracts.

#include "muster/core/data/next_batch.h"
#include "tests/support/allocations.h"
#include "tests/support/on_merge.h"
#include "tests/support/one_block_model.h"
#include "tests/support/recording_listener.h"
#include "tests/support/thrown.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

/// Batches of two examples; every other batch has a mask, which the next batch may leave in place.
class MaskingIterator final : public DataSetIterator {
 public:
  explicit MaskingIterator(bool drops) : drops_(drops) {}
  void reset(std::int64_t) override { next_ = 0; }
  bool next(Batch& batch) override {
    if (next_ == 6) return false;
    Tensor x = Batch::ensureOnly(batch.features, "features", {2, 1});
    x.data<float>()[0] = static_cast<float>(next_ * next_);
    x.data<float>()[1] = static_cast<float>(3 - next_);
    if (next_ % 2 == 0) {
      Tensor& mask = Batch::ensureOnly(batch.masks, "weights", {2});
      mask.data<float>()[0] = 1;
      mask.data<float>()[1] = 0;
    } else if (drops_) {
      batch.masks.clear();
    }
    ++next_;
    return true;
  }

 private:
  bool drops_;
  int next_ = 0;
};

TEST_CASE("masks of an earlier batch are removed if the iterator gives none") {
  const auto parameterAfter = [](bool drops, int workers) {
    MaskingIterator data(drops);
    ToyModel model;
    workers == 0 ? model.fit(data, 2) : toyWrapper(model, workers).prefetchBuffer(0).build().fit(data, 2);
    return model.parameters().front();
  };
  for (const int workers : {0, 1, 2}) {
    CAPTURE(workers);
    CHECK(parameterAfter(false, workers) == parameterAfter(true, workers));
  }
}

TEST_CASE("an iterator that gives a mask with every batch reuses its memory") {
  ToyIterator data(std::vector<ToyBatch>(4, ToyBatch{.values = {1, 2}, .mask = {0, 1}}));
  Batch batch;
  data.reset(0);
  REQUIRE(nextBatch(data, batch));
  const auto before = allocations();
  while (nextBatch(data, batch)) CHECK(batch.masks.front().value.data<float>()[1] == 1);
  CHECK(allocations() == before);
}

TEST_CASE("a round whose examples are all masked has model.fit()'s score: the penalty") {
  const auto scoresOf = [](int workers, std::int64_t frequency) {
    std::vector<double> scores;
    ToyModel model({.training = {.updater = Sgd{.learningRate = 0.5}, .l2 = 0.25}});
    model.setParameters({3});
    ToyIterator data(std::vector<ToyBatch>(4, {.values = {1, 2}, .mask = {0, 0}}));
    fitWith(model, workers, data, 1,
            {onMerge([&](const MergeEvent& event) { scores.push_back(event.score); })}, frequency);
    CHECK(scores.back() == model.score());
    return scores;
  };
  const auto alone = scoresOf(0, 1);
  REQUIRE(alone.size() == 4);
  REQUIRE(alone[3] > 0);
  CHECK(scoresOf(1, 1) == alone);
  // Two workers with two iterations each: both took the same steps, so the mean equals the result of two
  // steps.
  CHECK(scoresOf(2, 2).back() == doctest::Approx((alone[0] + alone[1]) / 2).epsilon(1e-6));
}

TEST_CASE("a listener's changes to the trainer's model are not trained, wherever the epoch ends") {
  for (const std::size_t batches : {4, 5, 6})
    for (const std::int64_t frequency : {1, 2}) {
      INFO("batches ", batches, ", frequency ", frequency);
      const std::vector<float> values{1, 2, 3, 4, 5, 6};
      const auto fitted = [&](const Listeners& listeners) {
        ToyModel model;
        auto data =
            ToyIterator::ofValues({values.begin(), values.begin() + static_cast<std::ptrdiff_t>(batches)});
        auto wrapper = toyWrapper(model, 2, frequency).listeners(listeners).build();
        wrapper.fit(data, 2);
        wrapper.fit(data, 1);
        return model.allBits();
      };
      const auto editor = mergedListener([](const RecordedCall& call, Trainer& trainer) {
        if (call.event == "merge" || call.event == "epochEnd")
          dynamic_cast<ToyModel&>(trainer.model()).setParameters({1000});
      });
      CHECK(fitted({editor}) == fitted({}));
    }
}

/// A model that updates itself.
class OwnUpdate final : public OneBlockModel {
 public:
  using OneBlockModel::OneBlockModel;
  double update(const BatchStamp&) override { return 0; }
  std::span<StateBlock> updaterState() override { return {}; }
};

TEST_CASE("a float64 model without its own update() is refused when the wrapper is built") {
  OneBlockModel model(nullptr, DType::Float64);
  CHECK(thrown<InvalidArgument>([&] { toyWrapper(model, 2).build(); })
            .ends_with("parameters must be float32, got float64; a model with others implements update() and "
                       "updaterState()"));
  OwnUpdate own(nullptr, DType::Float64);
  CHECK_NOTHROW(toyWrapper(own, 2).build());
}

}  // namespace
