#include "muster/core/nn/layer_difference.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/nn/compile/network_probe.h"
#include "muster/core/nn/layers/dropout.h"
#include "muster/core/nn/step/network_impl.h"

namespace muster {
namespace {

/// Names, first values, and what belongs to the loss or the training; the sizes are those of the blocks.
constexpr std::array<std::string_view, 13> kNotInPredictions{
    "name",  "classes",        "units",    "init",       "recurrentInit", "forgetBias",  "loss",
    "delta", "labelSmoothing", "lossMean", "lossWeight", "momentum",      "synchronised"};

/// The fields that count in predictions, as text: name and value.
class FieldTexts final : public Fields {
 public:
  void field(std::string_view name, bool& value) override { add(name, value); }
  void field(std::string_view name, std::int64_t& value) override { add(name, value); }
  void field(std::string_view name, std::uint64_t& value) override { add(name, value); }
  void field(std::string_view name, double& value) override { add(name, value); }
  void field(std::string_view name, std::string& value) override { add(name, value); }
  void field(std::string_view name, Shape& value) override { add(name, value.toString()); }
  void choice(std::string_view name, std::size_t& index, std::span<const std::string_view> names) override {
    add(name, names[index]);
  }
  void object(std::string_view name, std::string& type, const std::function<void(Fields&)>& inside) override {
    if (!counts(name)) return;
    add(name, type);
    inside(*this);
  }

  std::vector<std::pair<std::string, std::string>> all;

 private:
  static bool counts(std::string_view name) {
    return std::ranges::find(kNotInPredictions, name) == kNotInPredictions.end();
  }
  void add(std::string_view name, const auto& value) {
    if (counts(name)) all.emplace_back(name, fmt::format("{}", value));
  }
};

auto fieldsOf(const Module& module) {
  FieldTexts texts;
  if (module.type() != Dropout::kType) module.clone()->fields(texts);
  return std::move(texts.all);
}

}  // namespace

std::string layerDifference(const Model& mine, const Model& theirs, const std::string& other) {
  const auto *const a = dynamic_cast<const Network*>(&mine), *const b = dynamic_cast<const Network*>(&theirs);
  if (a == nullptr || b == nullptr) return {};
  const auto &nodes = detail::NetworkProbe::of(*a).plan.nodes,
             &others = detail::NetworkProbe::of(*b).plan.nodes;
  if (nodes.empty() || others.empty()) return {};
  if (nodes.size() != others.size())
    return fmt::format("it has {} layers, {} {}", nodes.size(), other, others.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto &x = nodes[i], &y = others[i];
    const auto differs = [&](std::string_view what, std::string_view ours, std::string_view its) {
      return fmt::format("its layer {} has the {} {}, {} {}", x.name, what, ours, other, its);
    };
    if (x.module->type() != y.module->type()) return differs("type", x.module->type(), y.module->type());
    if (x.inputs != y.inputs) return fmt::format("its layer {} has other inputs than {}", x.name, other);
    const auto fields = fieldsOf(*x.module), itsFields = fieldsOf(*y.module);
    for (std::size_t f = 0; f < std::min(fields.size(), itsFields.size()); ++f)
      if (fields[f] != itsFields[f]) return differs(fields[f].first, fields[f].second, itsFields[f].second);
  }
  return {};
}

}  // namespace muster
