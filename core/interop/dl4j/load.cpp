#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/interop/dl4j/detail/conversion.h"
#include "muster/core/interop/dl4j/detail/nd4j_array.h"
#include "muster/core/interop/dl4j/detail/zip_file.h"
#include "muster/core/interop/dl4j/dl4j.h"
#include "muster/core/io/detail/file_shortage.h"
#include "muster/core/nn/detail/network_probe.h"

namespace muster::dl4j {
namespace {

using namespace dl4j::detail;

constexpr std::uint64_t kMostConfiguration = std::uint64_t{1} << 24;
constexpr std::int64_t kMostCounter = std::int64_t{1} << 60;

/// A parameter's tensor in the network, with the parameter.
struct Target {
  const PlacedParameter* placed;
  std::int64_t count;
};

/// The parameters' sizes, known before the network has memory.
std::vector<Target> targetsOf(const Conversion& conversion) {
  std::map<std::string, std::int64_t, std::less<>> counts;
  const auto plan = muster::detail::NetworkProbe::layOut(*conversion.network);
  for (const auto& node : plan.nodes)
    for (const auto& specs :
         {node.module->parameters(node.inputShapes), node.module->statistics(node.inputShapes)})
      for (const auto& spec : specs) counts[node.name + "." + spec.name] = spec.shape.elements();
  std::vector<Target> targets;
  for (const auto& placed : conversion.parameters)
    targets.push_back({&placed, counts.at(placed.parameter.tensor)});
  return targets;
}

std::int64_t countOf(const std::vector<Target>& targets) {
  std::int64_t count = 0;
  for (const auto& target : targets) count += target.count;
  return count;
}

/// The values of an array in the file; nothing if there is none.
std::optional<std::vector<float>> arrayIn(const ZipFile& zip, const std::string& name, std::int64_t most) {
  const auto bytes = zip.read(name, kMostArrayHeader + static_cast<std::uint64_t>(most) * sizeof(double));
  if (!bytes) return std::nullopt;
  try {
    JavaReader reader(*bytes);
    auto values = readArray(reader);
    require(reader.left() == 0, "has {} bytes after its array", reader.left());
    return values;
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{} {}", name, error.what()));
  }
}

/// Writes values there into a tensor here. @return the values after them.
std::span<const float> put(std::span<const float> values, const Target& target, Tensor tensor, Coding coding,
                           float factor = 1) {
  const auto to = tensor.span<float>();
  for (std::int64_t i = 0; i < target.count; ++i)
    to[static_cast<std::size_t>(target.placed->parameter.order.here(i, target.count))] =
        factor * decoded(coding, values[static_cast<std::size_t>(i)]);
  return values.subspan(static_cast<std::size_t>(target.count));
}

void putParameters(Network& network, const std::vector<Target>& targets, std::span<const float> values) {
  for (const auto& target : targets) {
    const auto& [tensor, order, coding, trained] = target.placed->parameter;
    for (const auto& block : network.blocks())
      if (block.kind != BlockKind::Gradients && block.segments->find(tensor) != nullptr)
        values = put(values, target, block.segment(tensor), coding);
  }
}

/// How many values the updater's state has: its arrays, for each parameter with one.
std::int64_t stateCount(Network& network, const std::vector<Target>& targets) {
  std::int64_t count = 0;
  for (const auto& target : targets)
    if (!target.placed->updaterKey.empty()) count += target.count;
  return count * static_cast<std::int64_t>(network.optimizer().state().size());
}

/// Parameters with equal updaters that follow one another share a block: its first array for all of them,
/// then its second.
void putState(Network& network, const std::vector<Target>& targets, std::span<const float> values) {
  const float factor = network.trainingOptions().updater.type() == Nesterovs::kType ? -1.0f : 1.0f;
  for (auto begin = targets.begin(); begin != targets.end();) {
    const std::string& key = begin->placed->updaterKey;
    const auto end =
        std::find_if(begin, targets.end(), [&](const Target& t) { return t.placed->updaterKey != key; });
    if (!key.empty())
      for (auto& state : network.optimizer().state())
        for (auto target = begin; target != end; ++target)
          values =
              put(values, *target, state.segment(target->placed->parameter.tensor), Coding::Same, factor);
    begin = end;
  }
}

void fill(Network& network, const Conversion& conversion, const ZipFile& zip) {
  const auto targets = targetsOf(conversion);
  const std::int64_t count = countOf(targets);
  const auto parameters = arrayIn(zip, "coefficients.bin", count);
  require(parameters || count == 0, "holds no coefficients.bin, so no parameters");
  const auto size = parameters ? static_cast<std::int64_t>(parameters->size()) : 0;
  require(size == count, "coefficients.bin has {} numbers, but the configuration describes {}", size, count);
  network.init();
  if (parameters) putParameters(network, targets, *parameters);
  const std::int64_t states = stateCount(network, targets);
  const auto state = states > 0 ? arrayIn(zip, "updaterState.bin", states) : std::nullopt;
  if (state) {
    require(static_cast<std::int64_t>(state->size()) == states,
            "updaterState.bin has {} numbers, but the configuration describes {}", state->size(), states);
    putState(network, targets, *state);
  } else if (conversion.initialState != 0) {
    const std::vector<float> initial(static_cast<std::size_t>(states),
                                     static_cast<float>(conversion.initialState));
    putState(network, targets, initial);
  }
}

std::unique_ptr<Network> networkIn(const ZipFile& zip, const LoadOptions& options) {
  const auto text = zip.read("configuration.json", kMostConfiguration);
  require(text.has_value(), "holds no model of Deeplearning4j: there is no configuration.json in it");
  Problems problems;
  if (zip.has("preprocessor.bin")) problems.add("preprocessor.bin", "a Java object as preprocessor");
  const Description description = describe(*text, problems);
  require(description.iteration <= kMostCounter && description.epoch <= kMostCounter,
          "its counters are out of range");
  Conversion conversion = convert(description, options.inputShapes, {}, problems);
  fill(*conversion.network, conversion, zip);
  conversion.network->setCounters(description.iteration, description.epoch);
  return std::move(conversion.network);
}

}  // namespace

std::unique_ptr<Network> load(const std::filesystem::path& path, const LoadOptions& options) {
  return muster::detail::onFile("dl4j::load", path, [&] {
    const ZipFile zip(path);
    try {
      return networkIn(zip, options);
    } catch (const InvalidArgument& error) {
      throw FileError(path, fmt::format("cannot be converted: {}", error.what()));
    }
  });
}

}  // namespace muster::dl4j
