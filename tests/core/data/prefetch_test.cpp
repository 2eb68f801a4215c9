#include "muster/core/data/prefetch.h"

#include <unistd.h>

#include "tests/support/child_process.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using Values = std::vector<float>;

float valueOf(const Batch& batch) {
  return batch.features.front().value.data<float>()[0];
}

/// Counts from 100 * epoch, and can seek. Throws or stalls on request, and records its calls.
class Counting : public DataSetIterator {
 public:
  explicit Counting(int batches) : reads(static_cast<std::size_t>(batches)) {}

  void reset(std::int64_t epoch) override {
    if (throwOnReset) throw std::runtime_error("no such epoch");
    ++resets;
    epoch_ = epoch;
    next_ = 0;
  }
  bool next(Batch& batch) override {
    REQUIRE_FALSE(inside_.exchange(true));  // one thread at a time
    struct Leave {
      std::atomic<bool>& inside;
      ~Leave() { inside = false; }
    } leave{inside_};
    ++calls;
    while (stalled) std::this_thread::sleep_for(1ms);
    if (next_ == throwAt) throw std::runtime_error("broken example");
    if (next_ >= std::ssize(reads)) return false;
    Batch::ensure(batch.features, "x", {1}).data<float>()[0] = static_cast<float>(100 * epoch_ + next_);
    ++reads[static_cast<std::size_t>(next_++)];
    return true;
  }
  std::int64_t skip(std::int64_t batches) override {
    if (throwOnSkipFrom <= next_) throw std::runtime_error("broken example");
    const auto count = std::min<std::int64_t>(batches, std::ssize(reads) - next_);
    next_ += static_cast<int>(count);
    return count;
  }
  std::optional<std::int64_t> examples() const override { return std::ssize(reads); }
  std::optional<std::int64_t> batchSize() const override { return 1; }

  /// Waits for so many calls of next().
  void awaitCalls(int count) const {
    while (calls < count) std::this_thread::sleep_for(1ms);
  }
  /// Ends a stall soon.
  std::jthread release() {
    return std::jthread([this] {
      std::this_thread::sleep_for(20ms);
      stalled = false;
    });
  }

  std::vector<int> reads;  // [batch]
  int resets = 0;
  std::atomic<int> calls{0}, throwAt{-1}, throwOnSkipFrom{std::numeric_limits<int>::max()};
  std::atomic<bool> stalled{false}, throwOnReset{false};

 private:
  std::int64_t epoch_ = 0;
  int next_ = 0;
  std::atomic<bool> inside_{false};
};

Values valuesOfRest(DataSetIterator& iterator) {
  Values values;
  for (Batch batch; iterator.next(batch);) values.push_back(valueOf(batch));
  return values;
}

/// Takes the batches of one node of several in epoch 0. @return their sum.
double shareOf(DataSetIterator& data, int node, int nodes) {
  data.reset(0);
  double sum = 0;
  Batch batch;
  for (int b = 0;; ++b)
    if (b % nodes != node) {
      if (data.skip(1) == 0) return sum;
    } else {
      if (!data.next(batch)) return sum;
      sum += valueOf(batch);
    }
}

TEST_CASE("every prefetch depth gives the same batches in the same order") {
  for (const int depth : {0, 1, 2, 7, 100}) {
    CAPTURE(depth);
    Counting inner(5), empty(0);
    PrefetchingIterator iterator(inner, depth), none(empty, depth);
    CHECK(valuesOfRest(iterator) == Values{0, 1, 2, 3, 4});
    CHECK(valuesOfRest(iterator).empty());
    iterator.reset(3);
    CHECK(valuesOfRest(iterator) == Values{300, 301, 302, 303, 304});
    CHECK(iterator.examples() == 5);
    CHECK(iterator.batchSize() == 1);
    none.reset(0);
    CHECK(valuesOfRest(none).empty());
    CHECK_THROWS_AS(PrefetchingIterator(inner, -1), InvalidArgument);
  }
}

TEST_CASE("nothing is read before the first request, and then at most the depth of batches ahead") {
  Counting inner(50);
  { const PrefetchingIterator iterator(inner, 3); }
  CHECK(inner.calls == 0);
  PrefetchingIterator iterator(inner, 3);
  iterator.reset(0);
  Batch batch;
  for (const int calls : {3, 4}) {
    inner.awaitCalls(calls);
    std::this_thread::sleep_for(30ms);
    CHECK(inner.calls == calls);
    iterator.next(batch);
  }
}

TEST_CASE("without a reset a prefetching iterator continues from the wrapped iterator's position") {
  Counting inner(4);
  Batch batch;
  inner.next(batch);
  PrefetchingIterator iterator(inner, 2);
  CHECK(valuesOfRest(iterator) == Values{1, 2, 3});
}

TEST_CASE("next() does not change the stamp, and batches are recycled") {
  Counting inner(20);
  PrefetchingIterator iterator(inner, 2);
  Batch batch;
  batch.stamp.sequence = 9;
  std::set<const void*> places;
  for (int epoch = 0; epoch < 3; ++epoch) {
    iterator.reset(epoch);
    while (iterator.next(batch)) {
      CHECK(batch.stamp.sequence == 9);
      places.insert(batch.features.front().value.raw());
    }
  }
  CHECK(places.size() <= 3);  // two ahead and the caller's
}

TEST_CASE("reset() abandons an epoch wherever the caller stopped") {
  for (const int depth : {1, 3})
    for (const int taken : {0, 1, 2, 10}) {
      CAPTURE(depth);
      CAPTURE(taken);
      Counting inner(10);
      PrefetchingIterator iterator(inner, depth);
      iterator.reset(0);
      Batch batch;
      for (int i = 0; i < taken; ++i) CHECK(iterator.next(batch));
      iterator.reset(1);
      iterator.reset(2);
      REQUIRE(iterator.next(batch));
      CHECK(valueOf(batch) == 200);
    }
}

TEST_CASE("a prefetching iterator can be destroyed and reset while its reader waits, reads or has failed") {
  Counting waiting(1000), failed(6);
  failed.throwAt = 1;
  for (Counting* const inner : {&waiting, &failed}) {
    PrefetchingIterator iterator(*inner, 2);
    iterator.reset(0);
    inner->awaitCalls(2);
  }
  CHECK(waiting.calls == 2);
  for (const bool resets : {false, true}) {
    Counting inner(1000);
    inner.stalled = true;
    std::jthread release;
    {
      PrefetchingIterator iterator(inner, 2);
      iterator.reset(0);
      inner.awaitCalls(1);
      release = inner.release();
      if (resets) {
        iterator.reset(1);
        Batch batch;
        REQUIRE(iterator.next(batch));
        CHECK(valueOf(batch) == 100);
      }
    }
    CHECK(inner.calls <= 5);
  }
}

TEST_CASE("an exception comes after the batches before it, at every call until a reset") {
  for (const int depth : {1, 2, 8}) {
    CAPTURE(depth);
    Counting inner(6);
    inner.throwAt = 3;
    PrefetchingIterator iterator(inner, depth);
    iterator.reset(0);
    Batch batch;
    for (int i = 0; i < 3; ++i) {
      REQUIRE(iterator.next(batch));
      CHECK(valueOf(batch) == static_cast<float>(i));
    }
    for (int i = 0; i < 2; ++i) CHECK_THROWS_WITH(iterator.next(batch), "broken example");
    inner.throwAt = -1;
    iterator.reset(1);
    CHECK(valuesOfRest(iterator).size() == 6);
  }
}

TEST_CASE("many failing epochs lose no recycled batches") {
  Counting inner(6);
  PrefetchingIterator iterator(inner, 2);
  for (int epoch = 0; epoch < 10; ++epoch) {
    inner.throwAt = epoch % 2 == 0 ? 1 : -1;
    iterator.reset(epoch);
    Batch batch;
    CHECK(iterator.next(batch));
    if (epoch % 4 < 2) continue;  // leave the rest, an exception in it or not
    if (epoch % 2 == 0)
      CHECK_THROWS(iterator.next(batch));
    else
      CHECK(valuesOfRest(iterator).size() == 5);
  }
}

TEST_CASE("one node of several takes its batches: each is read at most once, and the iterator is not reset") {
  for (const int depth : {1, 2, 5})
    for (const int nodes : {2, 3, 40})
      for (const int node : {0, 1}) {
        CAPTURE(depth);
        CAPTURE(nodes);
        CAPTURE(node);
        Counting inner(500);
        PrefetchingIterator iterator(inner, depth);
        double expected = 0;
        for (int b = node; b < 500; b += nodes) expected += b;
        for (int epoch = 0; epoch < 3; ++epoch) {
          CHECK(shareOf(iterator, node, nodes) == expected);
          Batch batch;
          CHECK_FALSE(iterator.next(batch));
          CHECK(inner.resets == epoch + 1);
          CHECK(*std::ranges::max_element(inner.reads) <= 1);
          // The first three of its batches tell which ones it takes; later epochs read these alone.
          int others = 0;
          for (int b = 0; b < 500; ++b)
            others += b % nodes == node ? 0 : inner.reads[static_cast<std::size_t>(b)];
          CHECK(others <= (epoch == 0 ? 3 * nodes + depth + 1 : 0));
          std::ranges::fill(inner.reads, 0);
        }
      }
}

TEST_CASE("a caller that changes which batches it takes gets the right ones") {
  for (const int depth : {1, 3}) {
    CAPTURE(depth);
    Counting inner(30);
    PrefetchingIterator iterator(inner, depth);
    CHECK(shareOf(iterator, 1, 3) == 145);
    CHECK(shareOf(iterator, 2, 3) == 155);
    CHECK(shareOf(iterator, 0, 1) == 435);
    CHECK(shareOf(iterator, 0, 2) == 210);
    CHECK(inner.resets <= 4 + 3);
    iterator.reset(4);
    CHECK(iterator.skip(20) == 20);
    CHECK(valuesOfRest(iterator).size() == 10);
  }
}

TEST_CASE("an exception in a skipped batch is thrown") {
  Counting inner(30);
  inner.throwOnSkipFrom = 10;
  PrefetchingIterator iterator(inner, 2);
  CHECK_THROWS_WITH(shareOf(iterator, 0, 3), "broken example");
  Batch batch;
  CHECK_THROWS_WITH(iterator.next(batch), "broken example");
  CHECK_THROWS_WITH(iterator.skip(1), "broken example");
  iterator.reset(1);
  CHECK(iterator.next(batch));
}

TEST_CASE("a child of fork() cannot read ahead by its parent's thread, but may destroy its copy") {
  Counting inner(4);
  std::optional<PrefetchingIterator> ahead(std::in_place, inner, 2);
  ahead->reset(0);
  Batch batch;
  REQUIRE(ahead->next(batch));
  const auto refusals = inChild([&] {
    ::alarm(20);  // ends a child that hangs
    std::string all;
    const auto add = [&](auto call) { all += thrown<InvalidArgument>(call) + "\n"; };
    add([&] { ahead->reset(1); });
    add([&] { ahead->next(batch); });
    add([&] { ahead->skip(1); });
    ahead.reset();
    return all;
  });
  CHECK(refusals.starts_with("prefetch: this process is a child of the one that made the object"));
  CHECK(std::ranges::count(refusals, '\n') == 3);
  CHECK(ahead->next(batch));
}

TEST_CASE("next() throws the exception of reset()") {
  Counting inner(2);
  PrefetchingIterator iterator(inner, 2);
  inner.throwOnReset = true;
  iterator.reset(1);
  Batch batch;
  CHECK_THROWS_WITH(iterator.next(batch), "no such epoch");
  inner.throwOnReset = false;
  iterator.reset(2);
  CHECK(valuesOfRest(iterator) == Values{200, 201});
}

}  // namespace
}  // namespace muster::test
