// Layers of images as Deeplearning4j's.
#include "muster/core/base/error.h"
#include "muster/core/interop/dl4j/detail/written_layer.h"

namespace muster::dl4j::detail {
namespace {

namespace json = boost::json;

/// The members that all convolutions have.
template <typename Convolution>
json::object window(const Convolution& o, json::object there) {
  there["cnn2dDataFormat"] = "NCHW";
  there["convolutionMode"] = "Truncate";
  there["cudnnAlgoMode"] = "PREFER_FASTEST";
  there["cudnnAllowFallback"] = true;
  for (const auto* const none : {"cudnnBwdDataAlgo", "cudnnBwdFilterAlgo", "cudnnFwdAlgo"})
    there[none] = nullptr;
  there["dilation"] = pairOf(o.dilation);
  there["hasBias"] = o.bias;
  there["kernelSize"] = pairOf(o.kernel);
  there["nout"] = o.outChannels;
  there["padding"] = pairOf(o.padding);
  there["stride"] = pairOf(o.stride);
  return there;
}

WrittenLayers convolution(const Conv2d& o, const Writing& to) {
  const std::int64_t channels = to.input()[0];
  const bool depthwise = o.groups > 1 && o.groups == channels;
  if (o.groups > 1 && !depthwise) to.refuse(fmt::format("{} groups of {} channels", o.groups, channels));
  json::object there =
      window(o, to.trained(depthwise ? "DepthwiseConvolution2D" : "ConvolutionLayer", o.activation, o.init));
  if (depthwise) there["depthMultiplier"] = o.outChannels / channels;
  return to.layer(std::move(there), Form::Image, Form::Image, weightNames(o.bias));
}

WrittenLayers transposedConvolution(const ConvTranspose2d& o, const Writing& to) {
  if (o.groups != 1) to.refuse("groups");
  if (o.outputPadding != std::array<std::int64_t, 2>{0, 0}) to.refuse("outputPadding");
  return to.layer(window(o, to.trained("Deconvolution2D", o.activation, o.init)), Form::Image, Form::Image,
                  weightNames(o.bias));
}

template <typename Pool>
WrittenLayers imagePooling(const Pool& o, std::string_view kind, const Writing& to) {
  json::object there = to.layer("SubsamplingLayer");
  std::array<std::int64_t, 2> stride = o.stride;
  for (std::size_t i = 0; i < stride.size(); ++i)
    if (stride[i] == 0) stride[i] = o.kernel[i];
  // For max pooling the option has no effect; there its default is false.
  there["avgPoolIncludePadInDivisor"] = kind == "AVG";
  there["cnn2dDataFormat"] = "NCHW";
  there["convolutionMode"] = "Truncate";
  there["cudnnAllowFallback"] = true;
  there["dilation"] = json::array{1, 1};
  there["eps"] = 1e-8;
  there["gradientNormalization"] = "None";
  there["gradientNormalizationThreshold"] = 0.0;
  there["kernelSize"] = pairOf(o.kernel);
  there["padding"] = pairOf(o.padding);
  there["pnorm"] = 0;
  there["poolingType"] = kind;
  there["stride"] = pairOf(stride);
  return to.layer(std::move(there), Form::Image, Form::Image);
}

WrittenLayers maximum(const MaxPool2d& o, const Writing& to) {
  return imagePooling(o, "MAX", to);
}

WrittenLayers average(const AveragePool2d& o, const Writing& to) {
  return imagePooling(o, "AVG", to);
}

WrittenLayers globalPooling(const GlobalPool2d& o, const Writing& to) {
  json::object there = to.layer("GlobalPoolingLayer");
  there["collapseDimensions"] = false;
  there["pnorm"] = 2;
  there["poolingDimensions"] = nullptr;
  there["poolingType"] = o.kind == PoolKind::Max ? "MAX" : "AVG";
  return to.layer(std::move(there), Form::Image, Form::Image);
}

WrittenLayers upsampling(const Upsample2d& o, const Writing& to) {
  if (o.mode != UpsampleMode::Nearest) to.refuse("bilinear enlargement");
  json::object there = to.layer("Upsampling2D");
  there["format"] = "NCHW";
  there["size"] = pairOf(o.scale);
  return to.layer(std::move(there), Form::Image, Form::Image);
}

WrittenLayers zeroPadding(const ZeroPad2d& o, const Writing& to) {
  json::object there = to.layer("ZeroPaddingLayer");
  there["dataFormat"] = "NCHW";
  there["padding"] = json::array{o.padding[0], o.padding[1], o.padding[2], o.padding[3]};
  return to.layer(std::move(there), Form::Image, Form::Image);
}

}  // namespace

std::vector<WriteRule> imageWriteRules() {
  return {writeRule<Conv2d, &convolution>(),         writeRule<ConvTranspose2d, &transposedConvolution>(),
          writeRule<MaxPool2d, &maximum>(),          writeRule<AveragePool2d, &average>(),
          writeRule<GlobalPool2d, &globalPooling>(), writeRule<Upsample2d, &upsampling>(),
          writeRule<ZeroPad2d, &zeroPadding>()};
}

}  // namespace muster::dl4j::detail
