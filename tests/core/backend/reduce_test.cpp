#include "muster/core/backend/cpu/reduce.h"

#include <numeric>

#include "muster/core/backend/cpu/contributors.h"
#include "muster/core/backend/cpu/first_bad.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using namespace cpu;

/// A chunk of a range.
struct Visit {
  std::int64_t begin, end;
  bool operator==(const Visit&) const = default;
};

TEST_CASE("the chunks of ranges, empty ones too, are visited in order from any of them") {
  const std::array ranges{UpdateRange{.begin = 5, .end = 5}, UpdateRange{.begin = 10, .end = 10 + kChunk},
                          UpdateRange{.begin = 9000, .end = 9000}, UpdateRange{.begin = 20000, .end = 20003},
                          UpdateRange{.begin = 30000, .end = 30001 + 2 * kChunk}};
  const std::vector<Visit> all{{10, 10 + kChunk},
                               {20000, 20003},
                               {30000, 30000 + kChunk},
                               {30000 + kChunk, 30000 + 2 * kChunk},
                               {30000 + 2 * kChunk, 30001 + 2 * kChunk}};
  for (std::size_t first = 0; first < all.size(); ++first) {
    ChunkCursor cursor(ranges, static_cast<std::int64_t>(first));
    for (std::size_t i = first; i < all.size(); ++i) {
      CHECK(Visit{cursor.begin(), cursor.end()} == all[i]);
      CHECK((cursor.range().begin <= cursor.begin() && cursor.end() <= cursor.range().end));
      if (i + 1 < all.size()) cursor.advance();
    }
  }
}

TEST_CASE("each chunk is summed once, with the same bits for any number of threads") {
  for (const std::int64_t elements :
       {std::int64_t{0}, std::int64_t{1}, kChunk, 3 * kChunk + 1, 2000 * kChunk + 7}) {
    CAPTURE(elements);
    const std::array ranges{UpdateRange{.begin = 0, .end = elements / 3},
                            UpdateRange{.begin = elements / 3, .end = elements}};
    double one = 0;
    for (const int threads : {1, 2, 3}) {
      Context context(Device::cpu(), {.threads = threads});
      double count =
          sumOverChunks(ranges, context, [](const UpdateRange&, std::int64_t begin, std::int64_t end) {
            return static_cast<double>(end - begin);
          });
      CHECK(count == static_cast<double>(elements));
      const double sum =
          sumOverChunks(ranges, context, [](const UpdateRange&, std::int64_t begin, std::int64_t end) {
            return 1 / static_cast<double>(begin + end + 1);
          });
      if (threads == 1) one = sum;
      CHECK(sum == one);
    }
  }
}

TEST_CASE("lanes sum all elements, for every rest") {
  for (std::int64_t n = 0; n <= 50; ++n) {
    std::vector<float> x(static_cast<std::size_t>(n));
    std::iota(x.begin(), x.end(), -10.0f);
    double squares = 0, magnitudes = 0;
    for (const float value : x) {
      squares += double{value} * value;
      magnitudes += value < 0 ? -value : value;
    }
    CHECK(laneSum<Square>(x.data(), n) == squares);
    CHECK(laneSum<Magnitude>(x.data(), n) == magnitudes);
  }
}

TEST_CASE("replicas without weight do not contribute") {
  const std::array weights{0.0, 2.0, 0.0, 6.0, 0.0};
  const Contributors some{weights};
  CHECK(some.first == 1);
  CHECK(some.last == 3);
  CHECK(some.count == 2);
  CHECK(some.total == 8);
  CHECK(some.share(1) == 0.25);
  CHECK(some.share(0) == 0);
  const std::array none{0.0, 0.0};
  CHECK(Contributors{none}.count == 0);
}

TEST_CASE("the first bad element is the smallest that was noted") {
  FirstBad bad;
  CHECK_NOTHROW(bad.check("relu"));
  for (const std::int64_t element : {7, 3, 9}) bad.note(element);
  CHECK_CONTAINS(test::thrown<NonFiniteResult>([&] { bad.check("relu"); }), "3");
}

}  // namespace
}  // namespace muster
