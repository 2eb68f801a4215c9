// An iterator that hands out its own tensors, and fills the same memory again for the next batch.

#include "muster/core/data/joining_iterator.h"
#include "muster/core/data/own_memory.h"
#include "muster/core/data/prefetch.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/strategies.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kHandedOut = 24, kRefilled = 2, kColumns = 3;

enum class Memory {
  OfBatch,   ///< fills the batch's memory, as the library's iterators do
  Handed,    ///< hands out its own tensors
  Viewed,    ///< hands out views of memory that tensors do not own
  RowsOfOwn  ///< hands out rows of a larger tensor of its own
};

/// Examples of ones times a number that depends on the batch, with labels 0 and 1.
class Refilling final : public DataSetIterator {
 public:
  explicit Refilling(Memory memory) : memory_(memory), floats_(kRefilled * kColumns), classes_(kRefilled) {}
  void reset(std::int64_t epoch) override {
    epoch_ = epoch;
    next_ = 0;
  }
  bool next(Batch& batch) override {
    if (next_ == kHandedOut) return false;
    const auto value = static_cast<float>((next_ * 7 + epoch_ * 3) % 11 - 5);
    Tensor features, labels;
    if (memory_ == Memory::OfBatch) {
      features = Batch::ensure(batch.features, "x", {kRefilled, kColumns});
      labels = Batch::ensure(batch.labels, "y", {kRefilled}, DType::Int64);
    } else if (memory_ == Memory::Handed) {
      features = own_;
      labels = ownLabels_;
    } else if (memory_ == Memory::Viewed) {
      features = Tensor::view(floats_.data(), {kRefilled, kColumns});
      labels = Tensor::view(classes_.data(), {kRefilled}, DType::Int64);
    } else {
      features = all_.rows(1, 1 + kRefilled);
      labels = ownLabels_;
    }
    for (std::int64_t i = 0; i < kRefilled * kColumns; ++i)
      features.data<float>()[i] = value + static_cast<float>(i) * 0.25f;
    for (std::int64_t i = 0; i < kRefilled; ++i) labels.data<std::int64_t>()[i] = (next_ + i) % 2;
    if (memory_ != Memory::OfBatch) {
      batch.features = {{"x", features}};
      batch.labels = {{"y", labels}};
    }
    ++next_;
    return true;
  }

 private:
  const Memory memory_;
  Tensor own_ = Tensor::zeros({kRefilled, kColumns}), all_ = Tensor::zeros({kRefilled + 2, kColumns}),
         ownLabels_ = Tensor::zeros({kRefilled}, DType::Int64);
  std::vector<float> floats_;
  std::vector<std::int64_t> classes_;
  std::int64_t epoch_ = 0, next_ = 0;
};

MultiLayerConfiguration network(std::int64_t accumulate = 1) {
  return {.seed = 3,
          .updater = Sgd{.learningRate = 0.05},
          .accumulate = accumulate,
          .inputShape = {kColumns},
          .layers = {Dense{.units = 4, .activation = Activation::Tanh}, Output{.classes = 2}}};
}

}  // namespace

TEST_CASE("memory that a batch shares or does not own is copied, and no other") {
  Batch batch;
  Batch::ensure(batch.features, "own", {2, 2});
  const void* const before = batch.features[0].value.raw();
  ownMemory(batch);
  CHECK(batch.features[0].value.raw() == before);
  const Tensor theirs = Tensor::of({1, 2, 3, 4, 5, 6}, {3, 2});
  std::vector<float> numbers{7, 8};
  batch.features = {{"shared", theirs}, {"rows", theirs.rows(1, 2)}};
  batch.labels = {{"view", Tensor::view(numbers.data(), {2})}};
  batch.masks = {{"last rows of a tensor without other users", Tensor::of({1, 2, 3}, {3, 1}).rows(1, 3)}};
  ownMemory(batch);
  theirs.data<float>()[2] = numbers[0] = 99;
  const auto values = [](const NamedTensor& tensor) {
    const auto all = tensor.value.span<float>();
    return std::vector(all.begin(), all.end());
  };
  CHECK(values(batch.features[0]) == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(values(batch.features[1]) == std::vector<float>{3, 4});
  CHECK(values(batch.labels[0]) == std::vector<float>{7, 8});
  CHECK(values(batch.masks[0]) == std::vector<float>{2, 3});
}

TEST_CASE("such an iterator trains, accumulates, prefetches and evaluates as one that fills the batch") {
  const auto trained = [](Memory how, std::int64_t accumulate, int workers, bool prefetched = false) {
    MultiLayerNetwork model(network(accumulate));
    Refilling data(how);
    PrefetchingIterator ahead(data, 4);
    fitWith(model, workers, prefetched ? static_cast<DataSetIterator&>(ahead) : data, 2);
    return stateBits(model);
  };
  const auto counts = [](Memory how) {
    MultiLayerNetwork model(network());
    model.init();
    Refilling data(how);
    return toyWrapper(model, 3).build().evaluate(data).confusionMatrix();
  };
  for (const auto memory : {Memory::Handed, Memory::Viewed, Memory::RowsOfOwn}) {
    CAPTURE(static_cast<int>(memory));
    for (const std::int64_t accumulate : {1, 3})
      for (const int workers : {0, 1, 3}) {  // 0: model.fit
        INFO("accumulate ", accumulate, ", workers ", workers);
        CHECK(trained(memory, accumulate, workers) == trained(Memory::OfBatch, accumulate, workers));
      }
    CHECK(trained(memory, 1, 0, /*prefetched=*/true) == trained(Memory::OfBatch, 1, 0, true));
    CHECK(counts(memory) == counts(Memory::OfBatch));
  }
}
