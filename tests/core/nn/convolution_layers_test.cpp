#include <doctest/doctest.h>

#include "muster/core/base/error.h"
#include "muster/core/nn/layers.h"

// Convolutions as layers: what they say about shapes and parameters. Their gradients are in gradient_test.

namespace muster {
namespace {

TEST_CASE("a grouped convolution's weights see one group of the input, and are initialised for it") {
  const Conv2d layer{.outChannels = 12, .kernel = {3, 5}, .groups = 4};
  const auto specs = layer.parameters({8, 9, 9});
  REQUIRE(specs.size() == 2);
  CHECK(specs[0].shape == Shape{12, 2, 3, 5});
  CHECK(specs[0].fanIn == 2 * 3 * 5);
  CHECK(specs[0].fanOut == 3 * 3 * 5);
  CHECK(specs[1].shape == Shape{12});
  CHECK(layer.outputShape({8, 9, 9}) == Shape{12, 7, 5});
}

TEST_CASE("groups that do not divide the channels are refused, with both counts") {
  CHECK_THROWS_WITH_AS((Conv2d{.outChannels = 12, .groups = 4}.outputShape({6, 9, 9})),
                       "conv2d: 4 groups do not divide 6 input and 12 output channels", InvalidArgument);
  CHECK_THROWS_WITH_AS((Conv2d{.outChannels = 10, .groups = 4}.validate()),
                       "conv2d: groups must be at least 1 and divide outChannels, got 4 and 10",
                       InvalidArgument);
  CHECK_THROWS_AS((Conv2d{.outChannels = 10, .groups = 0}.validate()), InvalidArgument);
}

}  // namespace
}  // namespace muster
