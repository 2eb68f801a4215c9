#include "muster/core/io/detail/field_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "muster/core/io/json_value.h"

namespace muster::detail {

namespace json = boost::json;

namespace {

constexpr std::string_view kFromZero = "[0, )", kFromOne = "[1, )", kAboveZero = "(0, )",
                           kBelowOne = "[0, 1)", kShare = "(0, 1]";

constexpr FieldRange kRanges[] = {
    // Networks, and networks by name.
    {"l1", kFromZero},
    {"l2", kFromZero},
    {"weightDecay", kFromZero},
    {"clipNorm", kFromZero},
    {"clipValue", kFromZero},
    {"accumulate", "[1, 1048576]"},
    {"inputShape", kFromZero},
    {"weight", kFromZero},
    {"hidden", kFromOne},
    {"width", kFromOne},
    {"charLstm.layers", kFromOne},
    {"gpt.layers", kFromOne},
    {"embedding", kFromOne},
    {"normMomentum", kShare},
    // Layers.
    {"learningRate", kFromZero},
    {"units", kFromOne},
    {"output.units", kFromZero},
    {"classes", kFromZero},
    {"outChannels", kFromOne},
    {"kernel", kFromOne},
    {"stride", kFromZero},
    {"conv1d.stride", kFromOne},
    {"conv2d.stride", kFromOne},
    {"convtranspose2d.stride", kFromOne},
    {"padding", kFromZero},
    {"outputPadding", kFromZero},
    {"dilation", kFromOne},
    {"groups", kFromOne},
    {"vocabulary", kFromOne},
    {"features", kFromOne},
    {"heads", kFromOne},
    {"scale", kFromOne},
    {"reshape.shape", kFromOne},
    {"shape", kFromZero},
    {"from", kFromZero},
    {"to", kFromOne},
    {"axis", "[-1, )"},
    {"delta", kAboveZero},
    {"epsilon", kAboveZero},
    {"labelSmoothing", kBelowOne},
    {"lossWeight", kFromZero},
    {"dropout", kBelowOne},
    {"dropout.rate", kBelowOne},
    {"batchnorm.momentum", kShare},
    // Initialisers, updaters and schedules.
    {"sigma", kFromZero},
    {"bound", kFromZero},
    {"momentum", kBelowOne},
    {"beta1", kBelowOne},
    {"beta2", kBelowOne},
    {"rmsprop.decay", kBelowOne},
    {"decay", kAboveZero},
    {"fixed.value", kFromZero},
    {"initial", kFromZero},
    {"every", kFromOne},
    {"iterations", kFromOne},
    {"epochs", kFromZero},
};

void setRange(json::object& schema, std::string_view range) {
  const auto comma = range.find(',');
  const std::string least(range.substr(1, comma - 1)),
      most(range.substr(comma + 2, range.size() - comma - 3));
  if (!least.empty()) schema[range.front() == '(' ? "exclusiveMinimum" : "minimum"] = parseJson(least);
  if (!most.empty()) schema[range.back() == ')' ? "exclusiveMaximum" : "maximum"] = parseJson(most);
}

}  // namespace

void setRanges(json::object& properties, std::string_view parent, std::span<const FieldRange> ranges) {
  for (auto& [name, value] : properties) {
    auto& schema = value.as_object();
    if (auto* const inside = schema.if_contains("properties")) setRanges(inside->as_object(), name, ranges);
    auto found =
        std::ranges::find(ranges, fmt::format("{}.{}", parent, std::string_view(name)), &FieldRange::field);
    if (found == ranges.end()) found = std::ranges::find(ranges, std::string_view(name), &FieldRange::field);
    if (found == ranges.end() || !schema.contains("type")) continue;
    setRange(schema, found->range);
    if (auto* const items = schema.if_contains("items")) setRange(items->as_object(), found->range);
  }
}

std::span<const FieldRange> networkRanges() {
  return kRanges;
}

}  // namespace muster::detail
