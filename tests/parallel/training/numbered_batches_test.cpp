// Workers that read their own batches by number, because no core is left for a reader, against a reader
// thread.

#include "muster/core/data/in_memory.h"
#include "muster/core/device/device.h"
#include "tests/parallel/on_nodes.h"
#include "tests/parallel/resumable.h"
#include "tests/support/one_core.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kWidth = 20, kEach = 3, kEpochs = 3;

/// So many workers that no core is left. Limits the process to two cores.
int enoughWorkers() {
  limitToCores(2);
  return 2;
}

/// The batches of a ToyIterator, which can also be read by number if `numbers`.
class NumberedToy final : public DataSetIterator, private NumberedBatches {
 public:
  NumberedToy(int batches, bool numbers) : numbers_(numbers) {
    auto values = randomBatches(7, batches, kEach, kWidth);
    values.back().values.resize(kWidth);  // the last batch has one example
    ToyIterator toy(values, kWidth);
    for (Batch batch; toy.next(batch); batch = {}) batches_.push_back(batch);
  }

  void reset(std::int64_t) override { next_ = 0; }
  bool next(Batch& batch) override {
    if (next_ == batches_.size()) return false;
    ++calls;
    give(next_++, batch);
    return true;
  }
  std::optional<std::int64_t> examples() const override {
    return kEach * static_cast<std::int64_t>(batches_.size() - 1) + 1;
  }
  std::optional<std::int64_t> batchSize() const override { return kEach; }
  const NumberedBatches* numbered() const override { return numbers_ ? this : nullptr; }

  bool masked = false;  // whether every second batch has a mask
  int calls = 0;        // of `next`
  mutable std::mutex mutex;
  mutable std::map<std::int64_t, std::vector<std::thread::id>> reads;  // by number
  std::function<void(std::int64_t)> onRead;

 private:
  std::int64_t numberOfBatches() const override { return static_cast<std::int64_t>(batches_.size()); }
  std::int64_t examplesEach() const override { return kEach; }
  void readBatch(std::int64_t number, Batch& batch) const override {
    if (onRead) onRead(number);
    const std::scoped_lock lock(mutex);
    reads[number].push_back(std::this_thread::get_id());
    give(static_cast<std::size_t>(number), batch);
  }
  void give(std::size_t number, Batch& batch) const {
    const Batch& given = batches_[number];
    batch.features = given.features;
    batch.labels = given.labels;
    // Leaves the mask of an earlier batch, as an iterator may that knows nothing of masks.
    if (masked && number % 2 == 0)
      copy(Tensor::of(std::vector<float>(static_cast<std::size_t>(given.examples()), 0.5f),
                      {given.examples()}),
           Batch::ensure(batch.masks, "mask", {given.examples()}));
  }

  std::vector<Batch> batches_;
  std::size_t next_ = 0;
  bool numbers_;
};

/// @param from  what the training is resumed from; null: a new one.  @param stamps  of its steps, in order.
Held train(const ResumableRule& rule, int workers, NumberedToy& data, const Held* from = nullptr,
           std::vector<Held>* atMerges = nullptr, std::vector<std::string>* stamps = nullptr) {
  ToyModel model(
      {.size = kWidth, .training = {.updater = rule.updater, .l2 = 0.01}, .statistics = true, .split = true});
  if (from) from->giveTo(model);
  auto holder = std::make_shared<Holder>(atMerges);
  builderOf(model, workers, rule.options).listeners({holder}).build().fit(data, kEpochs - model.epoch());
  if (stamps)
    for (const auto& step : model.control().steps())
      stamps->push_back(fmt::format("{} {} {} {}", step.stamp.epoch, step.stamp.sequence,
                                    step.stamp.iteration, step.stamp.firstExample));
  return holder->atEnd();
}

}  // namespace

TEST_CASE("workers that read their own batches have the bits of those with a reader, under every rule") {
  for (const auto& rule : ofEachKind(resumableRules()))
    for (const int more : {0, 1}) {
      const int workers = rule.workers(enoughWorkers() + more);
      INFO("name ", rule.name, ", workers ", workers);
      const int batches = 4 * workers + 2;
      NumberedToy numbered(batches, true), plain(batches, false);
      std::vector<Held> atMerges;
      std::vector<std::string> stamps, expected;
      const Held whole = train(rule, workers, numbered, nullptr, &atMerges, &stamps);
      CHECK(whole.difference(train(rule, workers, plain, nullptr, nullptr, &expected)) == "");
      CHECK(stamps == expected);
      CHECK(plain.reads.empty());
      if (rule.options.make()->traits(workers).arrivals) {
        CHECK(numbered.reads.empty());
        continue;
      }
      CHECK(numbered.calls == 1);  // to prepare the model
      REQUIRE(numbered.reads.size() == static_cast<std::size_t>(batches));
      for (const auto& [number, threads] : numbered.reads) {
        CHECK(threads.size() == kEpochs);
        for (const auto& thread : threads) CHECK(thread == numbered.reads.at(number % workers).front());
      }
      for (std::size_t m = 0; m + 1 < atMerges.size(); m += 3) {
        CAPTURE(m);
        NumberedToy again(batches, true);
        CHECK(whole.difference(train(rule, workers, again, &atMerges[m])) == "");
      }
    }
}

TEST_CASE("a batch that cannot be read ends the training with its number, and the wrapper can train again") {
  const int workers = enoughWorkers(), batches = 3 * workers + 1;
  for (const std::int64_t at : {std::int64_t{0}, std::int64_t{1}, std::int64_t{batches - 1}}) {
    CAPTURE(at);
    NumberedToy data(batches, true), plain(batches, false);
    ToyModel model({.size = kWidth}), other({.size = kWidth});
    auto wrapper = toyWrapper(model, workers, 2).build();
    data.onRead = [&](std::int64_t number) {
      if (number == at) throw std::runtime_error("boom");
    };
    const auto failure = failureOf(wrapper, data);
    CHECK(failure.text == fmt::format("the data iterator failed at batch {} of epoch 1: boom", at + 1));
    CHECK(failure.worker == -1);
    data.onRead = nullptr;
    Held(model, {}).giveTo(other);
    other.setCounters(model.iteration(), model.epoch());
    wrapper.fit(data);
    auto fresh = toyWrapper(other, workers, 2).build();
    fresh.fit(plain);
    CHECK(stateBits(model) == stateBits(other));
  }
}

TEST_CASE("a stop ends workers that read their own batches, and the next fit() has every batch") {
  const int workers = enoughWorkers(), batches = 5 * workers + 2;
  NumberedToy data(batches, true);
  ToyModel model({.size = kWidth});
  auto wrapper = toyWrapper(model, workers, 2).build();
  data.onRead = [&](std::int64_t number) {
    if (number == 2 * workers) wrapper.stopFit();
  };
  wrapper.fit(data, 4);
  const auto before = model.control().steps();
  CHECK(before.size() < static_cast<std::size_t>(batches));
  for (const auto& step : before) CHECK(step.stamp.epoch == 0);
  data.onRead = nullptr;
  wrapper.fit(data, 1);  // the epoch that was cut short begins again
  CHECK(model.control().steps().size() - before.size() == static_cast<std::size_t>(batches));
}

TEST_CASE("a stop between epochs ends workers that wait for the next one") {
  const int workers = enoughWorkers();
  for (int i = 0; i < 50; ++i) {
    NumberedToy data(2 * workers, true);
    ToyModel model({.size = kWidth});
    auto wrapper = toyWrapper(model, workers, 1).build();
    model.control().onStep = [&, steps = std::make_shared<std::atomic<int>>(0)](const Batch&) {
      if (++*steps == 2 * workers + i % 3) wrapper.stopFit();
    };
    wrapper.fit(data, 1000);
    CHECK(model.control().steps().size() < static_cast<std::size_t>(6 * workers));
  }
}

TEST_CASE("workers that read have the bits of a reader, with masks and without a batch for each") {
  struct Row {
    bool masked;
    int workers, batches;
    std::int64_t epochs;
  };
  const int enough = enoughWorkers();
  const Row rows[] = {{true, enough + 1, 4 * enough + 1, 2},  // the masks alternate within a worker
                      {false, enough + 2, 1, 3},
                      {false, enough + 2, 2, 3},
                      {false, enough + 2, 3, 3}};
  for (const Row& row : rows) {
    INFO("masked ", row.masked, ", batches ", row.batches);
    const auto trained = [&](bool numbers) {
      NumberedToy data(row.batches, numbers);
      data.masked = row.masked;
      ToyModel model({.size = kWidth});
      toyWrapper(model, row.workers, 2).build().fit(data, row.epochs);
      return stateBits(model);
    };
    CHECK(trained(true) == trained(false));
  }
}

TEST_CASE("over nodes each worker reads its own batches, with the bits of a reader") {
  const auto trained = [](bool numbers, std::map<std::int64_t, std::size_t>& reads) {
    std::mutex mutex;
    return fromAll(2, [&](const Nodes& here) {
      ToyModel model({.size = kWidth});
      NumberedToy data(11, numbers);
      builderOf(model, enoughWorkers(), Averaging{.frequency = 2}).nodes(here).build().fit(data, 2);
      const std::scoped_lock lock(mutex);
      for (const auto& [number, threads] : data.reads) reads[number] += threads.size();
      return stateBits(model);
    });
  };
  std::map<std::int64_t, std::size_t> reads, none;
  CHECK(trained(true, reads) == trained(false, none));
  CHECK(reads.size() == 11);
  for (const auto& [number, times] : reads) CHECK(times == 2);  // once an epoch, by one node
}

TEST_CASE("a wrapper whose workers leave a core free has a reader") {
  limitToCores(2);
  if (availableParallelism() < 2) return;
  NumberedToy data(6, true);
  ToyModel model({.size = kWidth});
  auto wrapper = toyWrapper(model, 1).build();
  wrapper.fit(data);
  CHECK(data.reads.empty());
  CHECK(data.calls == 6);
}

TEST_CASE("an iterator derived from an in-memory one is read by its own next()") {
  class Counting final : public InMemoryDataSetIterator {
   public:
    using InMemoryDataSetIterator::InMemoryDataSetIterator;
    bool next(Batch& batch) override {
      ++calls;
      return InMemoryDataSetIterator::next(batch);
    }
    int calls = 0;
  };
  const Tensor features = Tensor::zeros({10, 2}), labels = Tensor::zeros({10}, DType::Int64);
  CHECK(Counting(features, labels, 3).numbered() == nullptr);
  CHECK(InMemoryDataSetIterator(features, labels, 3).numbered() != nullptr);
}
