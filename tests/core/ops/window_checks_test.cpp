#include "muster/core/backend/planes.h"
#include "muster/core/ops/conv2d.h"
#include "muster/core/ops/conv_transpose2d.h"
#include "muster/core/ops/detail/convolution2d.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using namespace detail;

TEST_CASE("sizes up to 2^31 - 1 are accepted, and the largest one beyond is named") {
  CHECK_NOTHROW(requireExtents("pool", {kMostExtent, 0, -5}));
  CHECK_REFUSED(requireExtents("pool", {1, kMostExtent + 1, kMostExtent + 2}),
                "pool: a size of 2147483649 is too large, the most is 2147483647");
}

Conv2dShape sizes() {
  return {.batch = 2, .inChannels = 4, .height = 8, .width = 9, .outChannels = 6, .kernel = {3, 3}};
}

TEST_CASE("windows and sizes of a convolution that are refused") {
  CHECK_NOTHROW(requireConvolution("conv2d", sizes()));
  constexpr std::int64_t kMost = kMostExtent;
  struct Row {
    const char* what;
    void (*spoil)(Conv2dShape&);
  };
  for (const Row& row :
       {Row{"expected positive sizes", [](Conv2dShape& s) { s.batch = 0; }},
        Row{"expected positive sizes", [](Conv2dShape& s) { s.width = -1; }},
        Row{"kernel, stride and dilation must be at least 1", [](Conv2dShape& s) { s.kernel[1] = 0; }},
        Row{"kernel, stride and dilation must be at least 1", [](Conv2dShape& s) { s.stride[0] = 0; }},
        Row{"kernel, stride and dilation must be at least 1", [](Conv2dShape& s) { s.dilation[0] = -1; }},
        Row{"padding at least 0", [](Conv2dShape& s) { s.padding[1] = -1; }},
        Row{"a size of 2147483648 is too large", [](Conv2dShape& s) { s.kernel[0] = kMost + 1; }},
        Row{"a size of 2147483648 is too large", [](Conv2dShape& s) { s.height = kMost + 1; }},
        Row{"together at most 2147483647", [](Conv2dShape& s) { s.padding[0] = kMost / 2; }},
        Row{"together at most 2147483647", [](Conv2dShape& s) { s.stride[1] = kMost; }},
        Row{"2 groups do not divide 4 input and 5 output channels",
            [](Conv2dShape& s) {
              s.groups = 2;
              s.outChannels = 5;
            }},
        Row{"0 groups do not divide", [](Conv2dShape& s) { s.groups = 0; }}}) {
    CAPTURE(row.what);
    Conv2dShape spoilt = sizes();
    row.spoil(spoilt);
    const auto text = test::thrown<InvalidArgument>([&] { requireConvolution("conv2d", spoilt); });
    CHECK(text.starts_with("conv2d: "));
    CHECK(text.find(row.what) != std::string::npos);
  }
}

TEST_CASE("an activation is planes of pixels in each layout, with the padding of blocks") {
  struct Row {
    Layout layout;
    std::int64_t count, lanes;
  };
  static_assert(kLayoutBlock == 16);
  for (const Row& row : {Row{Layout::RowMajor, 3 * 20, 1}, Row{Layout::ChannelsLast, 3, 20},
                         Row{Layout::ChannelBlocks, 3 * 2, 16}, Row{Layout::SampleBlocks, 20, 16}}) {
    const Planes planes = planesOf({3, 20, 5, 7}, row.layout);
    CHECK(planes.count == row.count);
    CHECK(planes.lanes == row.lanes);
  }
}

}  // namespace
}  // namespace muster
