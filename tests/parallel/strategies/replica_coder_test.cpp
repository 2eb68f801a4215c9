#include "muster/parallel/strategies/replica_coder.h"

#include <doctest/doctest.h>

#include <memory>

using namespace muster;

namespace {

/// A matrix [8, 16] from 0 on, a vector of 3 from 128 on, padding up to 144.
SharedBlock parameters() {
  SegmentTable table{
      .segments = {{.name = "w", .shape = {8, 16}, .offset = 0}, {.name = "b", .shape = {3}, .offset = 128}},
      .elements = 144};
  const Tensor values = Tensor::zeros({144});
  return {.name = "parameters",
          .replicas = {values},
          .mergedCopies = {values},
          .segments = std::make_shared<const SegmentTable>(std::move(table))};
}

}  // namespace

TEST_CASE("the bytes of a fragment follow from the codec") {
  struct Case {
    Codec codec;
    std::int64_t bytes;
  };
  const Fragment all = Fragment::whole(144);
  // TopK: ceil(0.1 * 131) elements of 8 bytes, without the padding. PowerSgd: the vector and the padding as
  // they are, and Q of 16 rows; the average of P is a message of its own.
  for (const Case& c :
       {Case{Bf16Codec{}, 2 * 144}, Case{TopKCodec{.share = 0.1}, 14 * 8},
        Case{TopKCodec{.share = 1}, 4 * 144}, Case{PowerSgdCodec{.rank = 2}, 4 * 16 + 4 * 2 * 16},
        Case{PowerSgdCodec{.rank = 6}, 4 * 144}}) {
    CAPTURE(describe(c.codec));
    CHECK(detail::ReplicaCoder(c.codec, parameters(), all).packedBytes() == c.bytes);
  }
}

TEST_CASE("the largest elements are a share of those that are no padding") {
  const auto largest = [](const SharedBlock& of, Slice slice) {  // of 8 bytes each
    return detail::ReplicaCoder(TopKCodec{.share = 0.5}, of, {{slice}}).packedBytes() / 8;
  };
  SharedBlock plain = parameters();
  CHECK(largest(plain, {0, 144}) == 66);   // of 131
  CHECK(largest(plain, {128, 144}) == 2);  // of 3
  plain.segments.reset();
  CHECK(largest(plain, {128, 144}) == 8);  // of 16
}
