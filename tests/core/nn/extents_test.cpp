#include "muster/core/nn/multi_layer_network.h"
#include "muster/core/ops/conv2d.h"
#include "muster/core/ops/conv_transpose2d.h"
#include "muster/core/ops/pad2d.h"
#include "muster/core/ops/pool2d.h"
#include "tests/support/test.h"

namespace muster {
namespace {

/// Sizes that a file may declare and that overflow sums and products.
constexpr std::int64_t kHostile[] = {std::int64_t{1} << 31, std::int64_t{1} << 61,
                                     (std::int64_t{1} << 62) + 1, std::numeric_limits<std::int64_t>::max()};

void refuses(const Layer& layer, const Shape& input) {
  const MultiLayerConfiguration configuration{.inputShape = input, .layers = {layer}};
  CHECK_THROWS_AS(static_cast<void>(MultiLayerNetwork(configuration).outputShapes()), InvalidArgument);
}

TEST_CASE("layers refuse sizes for which their output sizes overflow") {
  for (const std::int64_t n : kHostile) {
    CAPTURE(n);
    const Shape image{2, 8, 8}, steps{8, 2};
    for (const std::array<std::int64_t, 2>& pair : {std::array{n, std::int64_t{1}}, {1, n}, {n, n}}) {
      refuses(Conv2d{.outChannels = 2, .kernel = pair}, image);
      refuses(Conv2d{.outChannels = 2, .kernel = {3, 3}, .stride = pair}, image);
      refuses(Conv2d{.outChannels = 2, .kernel = {3, 3}, .padding = pair}, image);
      refuses(Conv2d{.outChannels = 2, .kernel = {3, 3}, .dilation = pair}, image);
      refuses(ConvTranspose2d{.outChannels = 2, .kernel = pair}, image);
      refuses(ConvTranspose2d{.outChannels = 2, .kernel = {3, 3}, .stride = pair}, image);
      refuses(ConvTranspose2d{.outChannels = 2, .kernel = {3, 3}, .padding = pair}, image);
      refuses(ConvTranspose2d{.outChannels = 2, .kernel = {3, 3}, .dilation = pair}, image);
      refuses(MaxPool2d{.kernel = pair, .padding = pair}, image);
      refuses(AveragePool2d{.kernel = {2, 2}, .stride = pair}, image);
      refuses(Upsample2d{.scale = pair}, image);
      refuses(ZeroPad2d{.padding = {pair[0], pair[1], 0, 0}}, image);
      refuses(ZeroPad2d{.padding = {0, 0, pair[0], pair[1]}}, image);
    }
    refuses(Conv2d{.outChannels = n, .kernel = {3, 3}}, image);
    refuses(Conv2d{.outChannels = 2, .kernel = {3, 3}, .padding = {1, 1}}, {2, n, 8});
    refuses(MaxPool2d{.kernel = {2, 2}, .padding = {1, 1}}, {2, 8, n});
    refuses(ZeroPad2d{.padding = {1, 1, 1, 1}}, {2, n, n});
    refuses(Upsample2d{.scale = {2, 2}}, {2, n, n});
    refuses(Conv1d{.outChannels = 2, .kernel = 3, .dilation = n}, steps);
    refuses(Conv1d{.outChannels = 2, .kernel = n, .dilation = n, .causal = true}, steps);
    refuses(Conv1d{.outChannels = 2, .kernel = 3, .padding = n}, steps);
    refuses(Conv1d{.outChannels = 2, .kernel = 3, .causal = true}, {8, n});
    refuses(Conv1d{.outChannels = n, .kernel = 3}, steps);
    refuses(SelfAttention{.heads = 1}, {8, n});
    refuses(MaxPool1d{.kernel = n, .padding = n / 2}, steps);
    refuses(LSTM{.units = n}, steps);
    refuses(GRU{.units = n}, steps);
  }
}

TEST_CASE("convolutions refuse weights whose number overflows though each of their sizes is allowed") {
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 2;
  refuses(Conv2d{.outChannels = 3, .kernel = {8, kMost}, .padding = {1, kMost / 2}}, {kMost, 18, 16});
  refuses(ConvTranspose2d{.outChannels = 3, .kernel = {8, kMost}, .padding = {1, 16}}, {kMost, 18, 16});
}

TEST_CASE("a size that is too large to count to is refused, also beside an open one") {
  const MultiLayerConfiguration configuration{.inputShape = {(std::int64_t{1} << 56) + 1, 6, 0},
                                              .layers = {ZeroPad2d{}}};
  const auto said = test::thrown<InvalidArgument>([&] { MultiLayerNetwork network(configuration); });
  CAPTURE(said);
  CHECK(said.ends_with(
      "shape: [72057594037927937, 6, 64] is too large; the shape of features is [72057594037927937, 6, 0], "
      "and 64 stands for a size that it leaves open"));
}

TEST_CASE("planned sizes that overflow are refused, naming the operation and the size") {
  const std::int64_t n = std::numeric_limits<std::int64_t>::max();
  const auto refusal = [](auto shape) { return test::thrown<InvalidArgument>([&] { shape.validate(); }); };
  const std::string why = ": a size of 9223372036854775807 is too large, the most is 2147483647";
  CHECK(refusal(Conv2dShape{.batch = 1,
                            .inChannels = 1,
                            .height = 8,
                            .width = 8,
                            .outChannels = 1,
                            .kernel = {3, 3},
                            .dilation = {1, n}}) == "conv2d" + why);
  CHECK(refusal(ConvTranspose2dShape{
            .batch = 1, .inChannels = 1, .height = n, .width = 8, .outChannels = 1, .kernel = {3, 3}}) ==
        "conv_transpose2d" + why);
  CHECK(refusal(Pool2dShape{.batch = 1, .channels = 1, .height = 8, .width = 8, .kernel = {n, 1}}) ==
        "pool2d" + why);
  CHECK_REFUSED(padded2d({1, 1, 8, 8}, {0, n, 0, 0}), "pad2d" + why);
}

}  // namespace
}  // namespace muster
