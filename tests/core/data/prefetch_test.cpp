#include "muster/core/data/prefetch.h"

#include <unistd.h>

#include "tests/support/child_process.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

/// Counts from 100 * epoch; can throw or stall on request, and records its calls.
class Counting : public DataSetIterator {
 public:
  explicit Counting(int batches) : batches_(batches) {}

  void reset(std::int64_t epoch) override {
    if (throwOnReset) throw std::runtime_error("no such epoch");
    epoch_ = epoch;
    next_ = 0;
  }
  bool next(Batch& batch) override {
    REQUIRE_FALSE(inside_.exchange(true));  // one thread at a time
    ++calls;
    while (stalled) std::this_thread::sleep_for(1ms);
    if (next_ == throwAt) {
      inside_ = false;
      throw std::runtime_error("broken example");
    }
    const bool more = next_ < batches_;
    if (more)
      Batch::ensure(batch.features, "x", {1}).data<float>()[0] = static_cast<float>(100 * epoch_ + next_++);
    inside_ = false;
    return more;
  }
  std::optional<std::int64_t> examples() const override { return batches_; }
  std::optional<std::int64_t> batchSize() const override { return 1; }

  std::atomic<int> calls{0};
  std::atomic<bool> stalled{false};
  std::atomic<int> throwAt{-1};
  std::atomic<bool> throwOnReset{false};

 private:
  int batches_;
  std::int64_t epoch_ = 0;
  int next_ = 0;
  std::atomic<bool> inside_{false};
};

std::vector<float> restOf(DataSetIterator& iterator) {
  std::vector<float> values;
  Batch batch;
  while (iterator.next(batch)) values.push_back(batch.features.front().value.data<float>()[0]);
  return values;
}

/// Records how often it was reset and each batch was read; can seek.
class Reads : public DataSetIterator {
 public:
  explicit Reads(int batches) : reads(static_cast<std::size_t>(batches)) {}
  void reset(std::int64_t) override {
    ++resets;
    next_ = 0;
  }
  bool next(Batch& batch) override {
    if (next_ >= reads.size()) return false;
    Batch::ensure(batch.features, "x", {1}).data<float>()[0] = static_cast<float>(next_);
    ++reads[next_++];
    return true;
  }
  std::int64_t skip(std::int64_t batches) override {
    const auto count = std::min(static_cast<std::size_t>(batches), reads.size() - next_);
    next_ += count;
    return static_cast<std::int64_t>(count);
  }
  /// Takes the batches of one node of several. @return their sum.
  static double share(DataSetIterator& data, int node, int nodes) {
    double sum = 0;
    Batch batch;
    for (int b = 0;; ++b)
      if (b % nodes != node) {
        if (data.skip(1) == 0) return sum;
      } else {
        if (!data.next(batch)) return sum;
        sum += batch.features.front().value.data<float>()[0];
      }
  }

  std::vector<int> reads;  // [batch]
  int resets = 0;

 private:
  std::size_t next_ = 0;
};

void waitFor(const std::atomic<int>& counter, int value) {
  while (counter < value) std::this_thread::sleep_for(1ms);
}

TEST_CASE("every prefetch depth gives the same batches in the same order") {
  for (const int depth : {0, 1, 2, 7, 100}) {
    CAPTURE(depth);
    Counting inner(5);
    PrefetchingIterator iterator(inner, depth);
    CHECK(restOf(iterator) == std::vector<float>{0, 1, 2, 3, 4});
    Batch batch;
    CHECK_FALSE(iterator.next(batch));
    iterator.reset(3);
    CHECK(restOf(iterator) == std::vector<float>{300, 301, 302, 303, 304});
    CHECK(iterator.examples() == 5);
    CHECK(iterator.batchSize() == 1);
  }
}

TEST_CASE("an epoch without batches ends at once; a negative depth is refused") {
  Counting inner(0);
  PrefetchingIterator iterator(inner, 2);
  iterator.reset(0);
  CHECK(restOf(iterator).empty());
  CHECK_THROWS_AS(PrefetchingIterator(inner, -1), InvalidArgument);
}

TEST_CASE("the reader is at most its depth of batches ahead") {
  Counting inner(50);
  PrefetchingIterator iterator(inner, 3);
  iterator.reset(0);
  waitFor(inner.calls, 3);
  std::this_thread::sleep_for(30ms);
  CHECK(inner.calls == 3);
  Batch batch;
  iterator.next(batch);
  waitFor(inner.calls, 4);
  std::this_thread::sleep_for(30ms);
  CHECK(inner.calls == 4);
}

TEST_CASE("nothing is read before the first request") {
  Counting inner(5);
  { const PrefetchingIterator iterator(inner, 2); }
  CHECK(inner.calls == 0);
}

TEST_CASE("without a reset a prefetching iterator continues from the wrapped iterator's position") {
  Counting inner(4);
  Batch batch;
  inner.next(batch);
  PrefetchingIterator iterator(inner, 2);
  CHECK(restOf(iterator) == std::vector<float>{1, 2, 3});
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
  for (const int depth : {1, 3}) {
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
      CHECK(batch.features.front().value.data<float>()[0] == 200);
    }
  }
}

TEST_CASE("a prefetching iterator can be destroyed while its reader waits for room") {
  Counting inner(1000);
  {
    PrefetchingIterator iterator(inner, 2);
    iterator.reset(0);
    waitFor(inner.calls, 2);
  }
  CHECK(inner.calls == 2);
}

TEST_CASE(
    "a prefetching iterator can be destroyed and reset while its reader is inside the wrapped iterator") {
  for (const bool resets : {false, true}) {
    Counting inner(1000);
    inner.stalled = true;
    std::jthread release;
    {
      PrefetchingIterator iterator(inner, 2);
      iterator.reset(0);
      waitFor(inner.calls, 1);
      release = std::jthread([&] {
        std::this_thread::sleep_for(20ms);
        inner.stalled = false;
      });
      if (resets) {
        iterator.reset(1);
        Batch batch;
        REQUIRE(iterator.next(batch));
        CHECK(batch.features.front().value.data<float>()[0] == 100);
      }
    }
    CHECK(inner.calls <= 5);
  }
}

TEST_CASE("a caller waits for a slow iterator") {
  Counting inner(2);
  inner.stalled = true;
  PrefetchingIterator iterator(inner, 1);
  std::jthread release([&] {
    std::this_thread::sleep_for(20ms);
    inner.stalled = false;
  });
  CHECK(restOf(iterator) == std::vector<float>{0, 1});
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
      CHECK(batch.features.front().value.data<float>()[0] == static_cast<float>(i));
    }
    CHECK_THROWS_WITH(iterator.next(batch), "broken example");
    CHECK_THROWS_WITH(iterator.next(batch), "broken example");
    inner.throwAt = -1;
    iterator.reset(1);
    CHECK(restOf(iterator).size() == 6);
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
      CHECK(restOf(iterator).size() == 5);
  }
}

TEST_CASE("an exception that is never read does no harm") {
  Counting inner(6);
  inner.throwAt = 1;
  PrefetchingIterator iterator(inner, 4);
  iterator.reset(0);
  waitFor(inner.calls, 2);
}

TEST_CASE("one node of several takes its batches: each is read at most once, and the iterator is not reset") {
  for (const int depth : {1, 2, 5})
    for (const int nodes : {2, 3, 40})
      for (const int node : {0, 1}) {
        CAPTURE(depth);
        CAPTURE(nodes);
        CAPTURE(node);
        Reads inner(500);
        PrefetchingIterator iterator(inner, depth);
        double expected = 0;
        for (int b = node; b < 500; b += nodes) expected += b;
        for (int epoch = 0; epoch < 3; ++epoch) {
          iterator.reset(epoch);
          CHECK(Reads::share(iterator, node, nodes) == expected);
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
    Reads inner(30);
    PrefetchingIterator iterator(inner, depth);
    iterator.reset(0);
    CHECK(Reads::share(iterator, 1, 3) == 145);
    iterator.reset(1);
    CHECK(Reads::share(iterator, 2, 3) == 155);
    iterator.reset(2);
    CHECK(restOf(iterator).size() == 30);
    iterator.reset(3);
    CHECK(Reads::share(iterator, 0, 2) == 210);
    CHECK(inner.resets <= 4 + 3);
    iterator.reset(4);
    CHECK(iterator.skip(20) == 20);
    CHECK(restOf(iterator).size() == 10);
  }
}

TEST_CASE("an exception in a skipped batch is thrown") {
  struct Breaks final : Reads {
    using Reads::Reads;
    std::int64_t skip(std::int64_t batches) override {
      if (reads[9] > 0) throw std::runtime_error("broken example");
      return Reads::skip(batches);
    }
  };
  Breaks inner(30);
  PrefetchingIterator iterator(inner, 2);
  iterator.reset(0);
  CHECK_THROWS_WITH(Reads::share(iterator, 0, 3), "broken example");
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
  const auto refusals = test::inChild([&] {
    ::alarm(20);  // ends a child that hangs
    std::string all;
    const auto add = [&](auto call) { all += test::thrown<InvalidArgument>(call) + "\n"; };
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
  CHECK(restOf(iterator) == std::vector<float>{200, 201});
}

}  // namespace
}  // namespace muster
