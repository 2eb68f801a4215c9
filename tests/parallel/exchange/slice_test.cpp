#include "muster/parallel/exchange/slice.h"

#include "tests/support/thrown.h"

using namespace muster;

namespace {

SegmentTable tableOf(std::initializer_list<std::int64_t> lengths) {
  SegmentTable table;
  for (const std::int64_t length : lengths)
    table.add({.name = fmt::format("s{}", table.segments.size()), .shape = {length}});
  return table;
}

std::string toText(const Fragment& fragment) {
  std::string text;
  for (const Slice slice : fragment.slices) text += fmt::format("[{}, {})", slice.begin, slice.end);
  return text;
}

}  // namespace

TEST_CASE("slices of all participants cover every element once, and begin at cache lines") {
  for (const std::int64_t elements : {0, 1, 15, 16, 17, 1000})
    for (const int participants : {1, 2, 3, 7}) {
      std::int64_t end = 0;
      for (int p = 0; p < participants; ++p) {
        const Slice slice = sliceOf(elements, p, participants);
        CHECK(slice.begin == end);
        CHECK(slice.length() >= 0);
        if (slice.length() > 0) CHECK(slice.begin % 16 == 0);
        end = slice.end;
      }
      CHECK(end == elements);
    }
}

TEST_CASE("the participant that reduces an element depends on the element alone") {
  for (const Slice slice : {Slice{0, 100}, Slice{16, 80}, Slice{64, 64}, Slice{90, 100}})
    for (const int participants : {1, 2, 3, 7}) {
      std::int64_t end = slice.begin;
      for (int p = 0; p < participants; ++p) {
        const Slice part = partOf(slice, 100, p, participants), own = sliceOf(100, p, participants);
        if (part.length() == 0) continue;
        CHECK(part.begin == end);
        CHECK(part.begin >= own.begin);
        CHECK(part.end <= own.end);
        end = part.end;
      }
      CHECK(end == slice.end);
    }
}

TEST_CASE("fragments hold each segment once, padding included, and have about equal sizes") {
  // Segments begin at 0, 112, 128, 224 (padded to 16 elements); the block ends at 240.
  const auto table = tableOf({100, 10, 90, 16});
  const auto two = fragmentsOf(table, 2);
  REQUIRE(two.size() == 2);
  CHECK(toText(two[0]) == "[0, 112)[224, 240)");
  CHECK(toText(two[1]) == "[112, 224)");
  CHECK(two[0].elements() == 128);
  CHECK(two[1].elements() == 112);
  CHECK(toText(fragmentsOf(table, 1).at(0)) == "[0, 240)");
  CHECK(fragmentsOf(table, 9).size() == 4);
  CHECK_REFUSED(fragmentsOf(table, 0), "fragments: there must be at least 1, got 0");
}
