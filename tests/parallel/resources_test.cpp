
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/allocations.h"
#include "tests/support/at_rest.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

/// Refills batches of four images without an allocation.
class SameBatches final : public DataSetIterator {
 public:
  explicit SameBatches(std::int64_t batches) : batches_(batches) {}
  void reset(std::int64_t) override { next_ = 0; }
  bool next(Batch& batch) override {
    if (next_ == batches_) return false;
    Tensor& images = Batch::ensureOnly(batch.features, "features", images_);
    for (std::int64_t i = 0; i < images.elements(); ++i)
      images.data<float>()[i] = static_cast<float>((i + next_) % 17) - 8;
    Tensor& labels = Batch::ensureOnly(batch.labels, "labels", labels_, DType::Int64);
    std::ranges::fill(labels.span<std::int64_t>(), next_ % 3);
    ++next_;
    return true;
  }

 private:
  const Shape images_{4, 2, 6, 6}, labels_{4};
  std::int64_t batches_, next_ = 0;
};

}  // namespace

TEST_CASE("the same threads and replicas serve every epoch and every fit()") {
  ToyModel model;
  auto data = ToyIterator::ofValues({1, 2, 3, 4, 5, 6});
  std::set<std::thread::id> readers;
  data.onNext = [&](std::int64_t, std::int64_t) { readers.insert(std::this_thread::get_id()); };
  {
    auto wrapper = toyWrapper(model, 3, 2).build();
    for (int call = 0; call < 4; ++call) {
      wrapper.fit(data, 2);
      CHECK(model.control().replicated == 3);
      CHECK(model.control().alive == 4);
    }
    std::set<std::thread::id> threads;
    for (const auto& step : model.control().steps()) threads.insert(step.thread);
    CHECK(threads.size() == 3);
    readers.erase(std::this_thread::get_id());  // the first batch, before anything trains
    CHECK(readers.size() == 1);
  }
  CHECK(model.control().alive == 1);
}

TEST_CASE("batches are reused over fit() calls, with the same memory") {
  ToyModel model;
  ToyIterator data(randomBatches(1, 20, 8));
  std::set<const void*> memory;
  std::mutex mutex;
  model.control().onStep = [&](const Batch& batch) {
    std::scoped_lock lock(mutex);
    memory.insert(batch.features.front().value.raw());
  };
  auto wrapper = toyWrapper(model, 2).prefetchBuffer(3).build();
  for (int call = 0; call < 5; ++call) wrapper.fit(data, 2);
  CHECK(memory.size() <= 5);  // prefetch, and one per worker
}

TEST_CASE("steps of workers that sum statistics over all workers allocate nothing") {
  // A fit() and an epoch allocate the same for three rounds as for twelve.
  const auto allocationsOf = [](std::int64_t rounds, TrainingMode mode) {
    MultiLayerNetwork model(
        {.seed = 3,
         .updater = Nesterovs{.learningRate = 0.01},
         .inputShape = {2, 6, 6},
         .layers = {Conv2d{.outChannels = 3, .kernel = {3, 3}}, BatchNorm{.synchronised = true},
                    Dense{.units = 5}, BatchNorm{.synchronised = true}, Output{.classes = 3}}});
    model.init();
    SameBatches data(2 * rounds);
    auto wrapper = toyWrapper(model, 2).trainingMode(mode).prefetchBuffer(4).build();
    wrapper.fit(data, 2);
    const long before = allocations();
    wrapper.fit(data, 2);
    return allocations() - before;
  };
  for (const auto mode : {TrainingMode::Averaging, TrainingMode::SynchronousGradients}) {
    CHECK(allocationsOf(12, mode) == allocationsOf(3, mode));
  }
}
