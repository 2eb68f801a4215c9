// Layers of images.
#include <algorithm>

#include "muster/core/base/error.h"
#include "muster/core/interop/dl4j/detail/rules.h"

namespace muster::dl4j::detail {
namespace {

using Pair = std::array<std::int64_t, 2>;

std::string modeOf(const Options& o) {
  return o.word({"convolutionMode"}, "Truncate");
}

constexpr std::int64_t kMostWindow = 1 << 20;  // products of two of them and of a size do not overflow

/// The window of a convolution or pooling along height and width.
std::array<Resize, 2> windowsOf(const Options& o) {
  const Pair kernel = o.pair("kernelSize", 1), stride = o.pair("stride", 1), padding = o.pair("padding", 0),
             dilation = o.pair("dilation", 1);
  std::array<Resize, 2> windows;
  for (const Pair& numbers : {kernel, stride, padding, dilation})
    if (std::max(numbers[0], numbers[1]) > kMostWindow) {
      o.refuse(fmt::format("a kernel, stride, padding or dilation of more than {}", kMostWindow));
      return windows;
    }
  for (std::size_t i = 0; i < 2; ++i) {
    if (kernel[i] == 0 || stride[i] == 0 || dilation[i] == 0) o.refuse("a kernel, stride or dilation of 0");
    windows[i] = {.window = dilation[i] * (std::max<std::int64_t>(kernel[i], 1) - 1) + 1,
                  .stride = std::max<std::int64_t>(stride[i], 1),
                  .padding = 2 * padding[i],
                  .same = modeOf(o) == "Same"};
  }
  return windows;
}

/// Zeros above, below, left and right of an image.
Padding2d paddingOf(const Reading& r) {
  const auto windows = windowsOf(r.options);
  Padding2d zeros{0, 0, 0, 0};
  for (std::size_t i = 0; i < 2; ++i) {
    const Resize& w = windows[i];
    std::int64_t total = w.padding;
    if (w.same && r.size[i] == 0 && w.stride > 1)
      r.options.refuse(
          "convolutionMode Same needs the size of the images, which the file does not say; state the input's "
          "shape, as in inputShapes=3,32,32");
    if (w.same) {
      const std::int64_t in = std::max<std::int64_t>(r.size[i], 1);
      const std::int64_t steps = w.stride > 1 ? w.forward(in) : in;
      total = std::max<std::int64_t>((steps - 1) * w.stride + w.window - in, 0);
    }
    zeros[2 * i] = total / 2;
    zeros[2 * i + 1] = total - total / 2;
  }
  return zeros;
}

/// Sets a layer's padding. Unequal sides become a layer before it.
template <typename Window>
void pad(const Reading& r, Window& layer, Converted& all) {
  const Padding2d zeros = paddingOf(r);
  layer.padding = {zeros[0], zeros[2]};
  if (zeros[0] == zeros[1] && zeros[2] == zeros[3]) return;
  layer.padding = {0, 0};
  all.layers.emplace_back(ZeroPad2d{.padding = zeros, .name = r.name + ".pad"});
}

/// Its bias and weights, as convolutions have them: the bias first.
void addParameters(Converted& all, const std::string& name, bool bias, const Order& order = {}) {
  if (bias) all.parameters.push_back({.tensor = name + ".bias"});
  all.parameters.push_back({.tensor = name + ".weight", .order = order});
}

Conv2d convolutionOf(const Reading& r, Converted& all) {
  const Options& o = r.options;
  requireChannelsFirst(o);
  if (modeOf(o) != "Truncate" && modeOf(o) != "Same" && modeOf(o) != "Strict")
    o.refuse("convolutionMode " + modeOf(o));
  Conv2d conv{.outChannels = o.count({"nout", "nOut"}, 0),
              .kernel = o.pair("kernelSize", 1),
              .stride = o.pair("stride", 1),
              .dilation = o.pair("dilation", 1),
              .activation = activationIn(o),
              .init = initIn(o),
              .bias = o.flag("hasBias", true),
              .name = r.name};
  pad(r, conv, all);
  return conv;
}

Converted convolution(const Reading& r) {
  Converted all{.kind = Kind::Image};
  const Conv2d conv = convolutionOf(r, all);
  all.layers.emplace_back(conv);
  addParameters(all, r.name, conv.bias);
  return all;
}

/// A convolution of each channel by itself; its channels there are [multiplier, in].
Conv2d depthwise(const Reading& r, Converted& all, Order& order) {
  const std::int64_t in = r.options.count({"nin", "nIn"}, 1);
  const std::int64_t multiplier = r.options.count({"depthMultiplier"}, 1);
  Conv2d conv = convolutionOf(r, all);
  conv.groups = std::max<std::int64_t>(in, 1);
  conv.outChannels = in * multiplier;
  order = {.outer = std::max<std::int64_t>(multiplier, 1), .inner = conv.groups};
  return conv;
}

Converted depthwiseConvolution(const Reading& r) {
  Converted all{.kind = Kind::Image};
  Order order;
  const Conv2d conv = depthwise(r, all, order);
  all.layers.emplace_back(conv);
  addParameters(all, r.name, conv.bias, order);
  return all;
}

Converted separableConvolution(const Reading& r) {
  Converted all{.kind = Kind::Image};
  Order order;
  Conv2d first = depthwise(r, all, order);
  Conv2d second{.outChannels = r.options.count({"nout", "nOut"}, 0),
                .activation = first.activation,
                .init = first.init,
                .bias = first.bias,
                .name = r.name};
  first.activation = Activation::Identity;
  first.bias = false;
  first.name += ".depthwise";
  all.layers.emplace_back(first);
  all.layers.emplace_back(second);
  if (second.bias) all.parameters.push_back({.tensor = r.name + ".bias"});
  all.parameters.push_back({.tensor = first.name + ".weight", .order = order});
  all.parameters.push_back({.tensor = r.name + ".weight"});
  return all;
}

std::array<Resize, 2> enlargements(const Options& o) {
  auto windows = windowsOf(o);
  for (auto& w : windows) w = {.window = w.window, .padding = w.padding, .up = w.stride};
  return windows;
}

Converted transposedConvolution(const Reading& r) {
  const Options& o = r.options;
  requireChannelsFirst(o);
  if (modeOf(o) != "Truncate" && modeOf(o) != "Strict") o.refuse("convolutionMode " + modeOf(o));
  const ConvTranspose2d conv{.outChannels = o.count({"nout", "nOut"}, 0),
                             .kernel = o.pair("kernelSize", 1),
                             .stride = o.pair("stride", 1),
                             .padding = o.pair("padding", 0),
                             .dilation = o.pair("dilation", 1),
                             .activation = activationIn(o),
                             .init = initIn(o),
                             .bias = o.flag("hasBias", true),
                             .name = r.name};
  Converted all{.layers = {conv}, .kind = Kind::Image};
  addParameters(all, r.name, conv.bias);
  return all;
}

Converted pooling(const Reading& r) {
  const Options& o = r.options;
  requireChannelsFirst(o);
  Converted all{.kind = Kind::Image};
  if (o.pair("dilation", 1) != Pair{1, 1}) o.refuse("pooling with dilation");
  const Padding2d zeros = paddingOf(r);
  const bool padded = zeros != Padding2d{0, 0, 0, 0};
  const bool unequal = zeros[0] != zeros[1] || zeros[2] != zeros[3];
  const std::string type = o.word({"poolingType"}, "MAX");
  if (type == "MAX") {
    if (unequal) o.refuse("maximum pooling with unequal padding");
    all.layers.emplace_back(MaxPool2d{.kernel = o.pair("kernelSize", 1),
                                      .stride = o.pair("stride", 1),
                                      .padding = {zeros[0], zeros[2]},
                                      .name = r.name});
  } else if (type == "AVG") {
    if (padded && !o.flag("avgPoolIncludePadInDivisor", false))
      o.refuse("average pooling that leaves its padding out of the mean");
    AveragePool2d pool{.kernel = o.pair("kernelSize", 1), .stride = o.pair("stride", 1), .name = r.name};
    pad(r, pool, all);
    all.layers.emplace_back(pool);
  } else {
    o.refuse("pooling " + type);
  }
  return all;
}

Converted upsampling(const Reading& r) {
  const Pair size = r.options.pair("size", 2);
  return {.layers = {Upsample2d{.scale = size, .name = r.name}}, .kind = Kind::Image};
}

std::array<Resize, 2> upsamplings(const Options& o) {
  const Pair size = o.pair("size", 2);
  return {Resize{.window = size[0], .up = size[0]}, Resize{.window = size[1], .up = size[1]}};
}

/// Top, bottom, left, right.
Padding2d zerosIn(const Options& o) {
  const auto all = o.counts("padding");
  if (all.size() == 2) return {all[0], all[0], all[1], all[1]};
  if (all.size() != 4) o.refuse("padding without four numbers");
  return all.size() == 4 ? Padding2d{all[0], all[1], all[2], all[3]} : Padding2d{0, 0, 0, 0};
}

Converted zeroPadding(const Reading& r) {
  requireChannelsFirst(r.options);
  return {.layers = {ZeroPad2d{.padding = zerosIn(r.options), .name = r.name}}, .kind = Kind::Image};
}

std::array<Resize, 2> zeroPaddings(const Options& o) {
  const Padding2d zeros = zerosIn(o);
  return {Resize{.padding = zeros[0] + zeros[1]}, Resize{.padding = zeros[2] + zeros[3]}};
}

}  // namespace

std::vector<LayerRule> imageRules() {
  std::vector<LayerRule> rules;
  const auto add = [&](std::string_view type, ConvertLayer convert, ResizeImage resize) {
    rules.push_back({type, convert, Kind::Image, resize});
  };
  add("ConvolutionLayer", &convolution, &windowsOf);
  add("Convolution2D", &convolution, &windowsOf);
  add("DepthwiseConvolution2D", &depthwiseConvolution, &windowsOf);
  add("SeparableConvolution2D", &separableConvolution, &windowsOf);
  add("Deconvolution2D", &transposedConvolution, &enlargements);
  add("SubsamplingLayer", &pooling, &windowsOf);
  add("Pooling2D", &pooling, &windowsOf);
  add("Upsampling2D", &upsampling, &upsamplings);
  add("ZeroPaddingLayer", &zeroPadding, &zeroPaddings);
  return rules;
}

}  // namespace muster::dl4j::detail
