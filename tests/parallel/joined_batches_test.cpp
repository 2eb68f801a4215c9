// W workers against one worker on the joined batches, in float64: they differ only by rounding.

#include "tests/parallel/uneven_sizes.h"
#include "tests/support/arrays.h"
#include "tests/support/reference_model.h"
#include "tests/support/thrown.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kFeatures = 6, kLabels = 4;
constexpr int kSteps = 100;

/// Examples with masks, in batches of these sizes. Example i does not depend on the sizes.
class SizedBatches final : public DataSetIterator {
 public:
  explicit SizedBatches(std::vector<std::int64_t> sizes) : sizes_(std::move(sizes)) {}
  void reset(std::int64_t) override { next_ = first_ = 0; }
  bool next(Batch& batch) override {
    if (next_ == sizes_.size()) return false;
    const std::int64_t n = sizes_[next_++];
    Tensor& features = Batch::ensure(batch.features, "features", {n, kFeatures}, DType::Float64);
    Tensor& labels = Batch::ensure(batch.labels, "labels", {n}, DType::Int64);
    Tensor& mask = Batch::ensure(batch.masks, "mask", {n});
    const RandomStream random(17, "examples");
    for (std::int64_t i = 0; i < n; ++i, ++first_) {
      const auto example = static_cast<std::uint64_t>(first_);
      const auto label = static_cast<std::int64_t>(random.below(3 * example, kLabels));
      labels.data<std::int64_t>()[i] = label;
      mask.data<float>()[i] = random.uniform(3 * example + 1) < 0.1 ? 0.25f : 1.0f;
      for (std::int64_t j = 0; j < kFeatures; ++j)
        features.data<double>()[i * kFeatures + j] =
            random.normal(1000000 + example * kFeatures + static_cast<std::uint64_t>(j)) +
            (j == label ? 1 : 0);
    }
    return true;
  }

 private:
  const std::vector<std::int64_t> sizes_;
  std::size_t next_ = 0;
  std::int64_t first_ = 0;
};

/// The distance after a hundred steps between `workers` in this mode and one on the joined batches.
double distanceOf(TrainingMode mode, int workers, const TrainingOptions& training) {
  const ReferenceOptions options{
      .inputs = kFeatures, .classes = kLabels, .dropout = 0.3, .seed = 5, .training = training};
  ReferenceModel many(options), one(options);
  const auto sizes = test::unevenSizes(workers, kSteps);
  SizedBatches split(sizes), together(test::joined(sizes, workers));
  toyWrapper(many, workers).trainingMode(mode).build().fit(split);
  one.fit(together);
  REQUIRE(one.iteration() == kSteps);
  REQUIRE(many.iteration() == kSteps);
  return euclideanDistance(many.block(BlockKind::Parameters).values, one.block(BlockKind::Parameters).values);
}

/// Checks that it is below 1e-12 for some numbers of workers.
double largestDistance(TrainingMode mode, const TrainingOptions& training) {
  double largest = 0;
  for (const int workers : {2, 3, 4}) {
    INFO("workers ", workers, ", updater ", training.updater.type());
    CAPTURE(fmt::format("l1 {}, l2 {}, weight decay {}, clips {} and {}", training.l1, training.l2,
                        training.weightDecay, training.clipNorm, training.clipValue));
    const double d = distanceOf(mode, workers, training);
    CHECK(d < 1e-12);
    largest = std::max(largest, d);
  }
  return largest;
}

std::vector<Updater> everyUpdater() {
  return {Sgd{.learningRate = 0.1},
          Nesterovs{.learningRate = 0.05, .momentum = 0.9},
          Adam{.learningRate = CosineSchedule{.initial = 0.02, .iterations = 150}},
          AdamW{.learningRate = 0.02},
          RmsProp{.learningRate = WarmUpSchedule{.iterations = 10, .then = 0.01}},
          AdaGrad{.learningRate = 0.05}};
}

/// Each kind of regularisation and clipping, and all of them together. Both kinds of clipping take effect in
/// these trainings.
std::vector<TrainingOptions> everyTreatment() {
  return {{},
          {.l1 = 1e-3},
          {.l2 = 1e-2},
          {.weightDecay = 1e-2},
          {.clipNorm = 0.3},
          {.clipValue = 0.05},
          {.l1 = 1e-4, .l2 = 1e-3, .weightDecay = 1e-3, .clipNorm = 0.5, .clipValue = 0.1}};
}

}  // namespace

TEST_CASE("synchronous gradients equal the joined batches to 1e-12: every updater and option") {
  double largest = 0;
  for (const auto& updater : everyUpdater())
    for (auto training : everyTreatment()) {
      training.updater = updater;
      largest = std::max(largest, largestDistance(TrainingMode::SynchronousGradients, training));
    }
  MESSAGE("largest distance: " << largest);
}

TEST_CASE("averaging every iteration equals the joined batches to 1e-12: SGD and Nesterov, unclipped") {
  double largest = 0;
  for (const Updater& updater : {Updater(Sgd{.learningRate = 0.1}), Updater(Nesterovs{.learningRate = 0.05})})
    for (TrainingOptions training : {TrainingOptions{}, {.l2 = 1e-2}, {.weightDecay = 1e-2}}) {
      training.updater = updater;
      largest = std::max(largest, largestDistance(TrainingMode::Averaging, training));
    }
  MESSAGE("largest distance: " << largest);
}

TEST_CASE("averaging differs from synchronous gradients for Adam, and if gradients are clipped") {
  CHECK(distanceOf(TrainingMode::Averaging, 2, {.updater = Adam{.learningRate = 0.02}}) > 1e-3);
  CHECK(distanceOf(TrainingMode::Averaging, 2, {.updater = Sgd{.learningRate = 0.1}, .clipNorm = 0.3}) >
        1e-3);
}

TEST_CASE("shared gradients accept only float32 models") {
  ReferenceModel model({.inputs = kFeatures, .classes = kLabels});
  SizedBatches data({2, 2});
  auto wrapper =
      ParallelWrapper::Builder(model).workers(2).trainingMode(TrainingMode::SharedGradients).build();
  CHECK_REFUSED(wrapper.fit(data), "shared gradients: the parameters must be float32, not float64");
}
