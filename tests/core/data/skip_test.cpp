// Tests what a resumed training does with an iterator: go to an epoch and skip its trained batches.
#include "muster/core/data/class_weights.h"
#include "muster/core/data/data_loader.h"
#include "muster/core/data/image_transform.h"
#include "muster/core/data/in_memory.h"
#include "muster/core/data/joining_iterator.h"
#include "muster/core/data/prefetch.h"
#include "muster/datasets/generated_digits.h"
#include "muster/datasets/text.h"
#include "tests/core/data/batch_bytes.h"
#include "tests/support/list_iterator.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

constexpr std::int64_t kExamples = 22, kBatch = 4;
constexpr std::uint64_t kSeed = 5;

Tensor images() {
  Tensor all = Tensor::empty({kExamples, 1, 4, 4}, DType::UInt8);
  for (std::size_t i = 0; i < all.bytes(); ++i) all.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i);
  return all;
}

Tensor classes() {
  Tensor all = Tensor::empty({kExamples}, DType::Int64);
  for (std::int64_t i = 0; i < kExamples; ++i) all.data<std::int64_t>()[i] = i;
  return all;
}

class CountedRows final : public Dataset {
 public:
  std::int64_t size() const override { return kExamples; }
  Example get(std::int64_t index) const override {
    ++reads;
    return {Tensor::of({static_cast<float>(index)}, {1}), index};
  }
  mutable int reads = 0;
};

/// An iterator with what it needs.
struct Source {
  std::string name;
  std::function<std::shared_ptr<DataSetIterator>()> make;
};

std::shared_ptr<DataSetIterator> around(const std::shared_ptr<DataSetIterator>& inner, auto* outer) {
  return {outer, [inner](DataSetIterator* both) { delete both; }};
}

std::shared_ptr<DataSetIterator> inMemory() {
  return std::make_shared<InMemoryDataSetIterator>(images(), classes(), kBatch, kSeed);
}

std::shared_ptr<DataSetIterator> transformed() {
  const auto inner = inMemory();
  return around(inner, new TransformingIterator(*inner, {RandomCrop{.padding = 1}, RandomFlip{}}, kSeed));
}

std::vector<Source> sources() {
  static const CountedRows rows;
  const auto text = std::make_shared<CharacterText>();
  text->vocabulary = Vocabulary(std::u32string_view(U"ab"));
  for (int i = 0; i < 100; ++i) text->indices.push_back(i % 3 == 0 ? 1 : 0);
  const auto loader = [](bool dropLast) {
    return std::make_shared<DataLoader>(
        rows, kBatch, DataLoaderOptions{.shuffle = true, .seed = kSeed, .dropLast = dropLast});
  };
  const auto prefetching = [](int depth) {
    const auto inner = transformed();
    return around(inner, new PrefetchingIterator(*inner, depth));
  };
  const auto digits = [](DType features, MemoryPlacement placement) {
    const auto data = std::make_shared<GeneratedDigitsIterator>(kBatch, kExamples, kSeed, true);
    data->setFeatures(features);
    data->setPlacement(placement);
    return data;
  };
  const auto onDevice = [] {
    return std::make_shared<InMemoryDataSetIterator>(images(), classes(), kBatch, kSeed,
                                                     MemoryPlacement::Device);
  };
  const auto list = [] {
    std::vector<Batch> batches(5);
    for (auto& batch : batches)
      for (float& value : Batch::ensure(batch.features, "features", {3, 2}).span<float>())
        value = static_cast<float>(&batch - batches.data());
    return std::make_shared<ListIterator>(std::move(batches));
  };
  return {{"in memory", inMemory},
          {"loader", [=] { return loader(false); }},
          {"loader that drops the last batch", [=] { return loader(true); }},
          {"transforms", transformed},
          {"prefetch 0", [=] { return prefetching(0); }},
          {"prefetch 3", [=] { return prefetching(3); }},
          {"prefetch 50", [=] { return prefetching(50); }},
          {"images", [=] { return digits(DType::Float32, MemoryPlacement::Host); }},
          {"images as bytes", [=] { return digits(DType::UInt8, MemoryPlacement::Host); }},
          {"images on the device", [=] { return digits(DType::Float32, MemoryPlacement::Device); }},
          {"images in order, limited",
           [=] {
             const auto set = digits(DType::Float32, MemoryPlacement::Host)->set();
             return std::make_shared<ImageSetIterator>(set, kBatch, std::nullopt, kExamples - 5);
           }},
          {"rows on the device", onDevice},
          {"rows on the device, joined",
           [=] {
             const std::shared_ptr<DataSetIterator> inner = onDevice();
             return around(inner, new JoiningIterator(*inner, 2));
           }},
          {"class weights, joined",
           [] {
             const auto inner = inMemory();
             const auto weighted = around(inner, new ClassWeights(*inner, std::vector<float>(kExamples, 2)));
             return around(weighted, new JoiningIterator(*weighted, 2));
           }},
          {"text", [=] { return std::make_shared<CharacterIterator>(text, 5, kBatch, kSeed); }},
          {"the default", list}};
}

TEST_CASE("skipping gives the batches that reading would have given, in any epoch and from any position") {
  for (const auto& source : sources()) {
    CAPTURE(source.name);
    for (const std::int64_t epoch : {0, 3}) {
      const auto read = source.make();
      read->reset(epoch);
      const auto all = bytesOfRest(*read);
      const auto count = static_cast<std::int64_t>(all.size());
      REQUIRE(count >= 3);
      for (std::int64_t readBefore = 0; readBefore < 3; ++readBefore)
        for (std::int64_t skipped = 0; skipped <= count + 1 - readBefore; ++skipped) {
          CAPTURE(readBefore);
          CAPTURE(skipped);
          const auto data = source.make(), counting = source.make();
          data->reset(epoch);
          counting->reset(epoch);
          Batch batch;
          for (std::int64_t b = 0; b < readBefore; ++b) REQUIRE(data->next(batch));
          std::int64_t expected = 0;
          for (std::int64_t b = 0; b < readBefore + skipped && counting->next(batch); ++b)
            expected += b < readBefore ? 0 : batch.examples();
          CHECK(data->skip(skipped) == expected);
          CHECK(bytesOfRest(*data) == bytesOfRest(*counting));
          data->reset(epoch);
          CHECK(bytesOfRest(*data) == all);
        }
    }
  }
}

TEST_CASE("skipping past an epoch's last batch ends the epoch") {
  for (const auto& source : sources()) {
    CAPTURE(source.name);
    const auto data = source.make();
    data->reset(0);
    CHECK(data->skip(std::int64_t{1} << 62) > 0);
    Batch batch;
    CHECK_FALSE(data->next(batch));
    CHECK(data->skip(1) == 0);
    CHECK(data->readsToSkip() == (source.name == "the default"));
  }
}

TEST_CASE("a data loader does not read the examples that it skips") {
  const CountedRows rows;
  DataLoader loader(rows, kBatch);
  loader.reset(0);
  CHECK(loader.skip(4) == 4 * kBatch);
  CHECK(rows.reads == 0);
}

TEST_CASE("a prefetching iterator without a reset skips from its current position") {
  const auto all = bytesOfRest(*inMemory());
  for (const int read : {0, 1}) {
    const auto inner = inMemory();
    PrefetchingIterator ahead(*inner, 2);
    Batch batch;
    if (read > 0) REQUIRE(ahead.next(batch));
    CHECK(ahead.skip(2) == 2 * kBatch);
    CHECK(bytesOfRest(ahead) == std::vector(all.begin() + read + 2, all.end()));
  }
}

}  // namespace
}  // namespace muster::test
