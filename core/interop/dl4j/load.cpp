#include <boost/json/array.hpp>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/interop/dl4j/detail/conversion.h"
#include "muster/core/interop/dl4j/detail/flat_state.h"
#include "muster/core/interop/dl4j/detail/nd4j_array.h"
#include "muster/core/interop/dl4j/detail/normaliser.h"
#include "muster/core/interop/dl4j/detail/zip_file.h"
#include "muster/core/interop/dl4j/dl4j.h"
#include "muster/core/io/detail/file_shortage.h"
#include "muster/core/io/json_value.h"

namespace muster::dl4j {
namespace {

using namespace dl4j::detail;

constexpr std::uint64_t kMostConfiguration = std::uint64_t{1} << 24;
constexpr std::int64_t kMostCounter = std::int64_t{1} << 60;

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

void fill(Network& network, const Conversion& conversion, const ZipFile& zip) {
  const FlatState flat(conversion);
  const std::int64_t count = flat.parameterCount(), states = flat.stateCount();
  const auto parameters = arrayIn(zip, "coefficients.bin", count);
  require(parameters || count == 0, "holds no coefficients.bin, so no parameters");
  const auto size = parameters ? static_cast<std::int64_t>(parameters->size()) : 0;
  require(size == count, "coefficients.bin has {} numbers, but the configuration describes {}", size, count);
  network.init();
  if (parameters) flat.putParameters(network, *parameters);
  if (states == 0) return;
  auto state = arrayIn(zip, "updaterState.bin", states);
  if (!state) state.emplace(static_cast<std::size_t>(states), static_cast<float>(conversion.initialState));
  require(static_cast<std::int64_t>(state->size()) == states,
          "updaterState.bin has {} numbers, but the configuration describes {}", state->size(), states);
  flat.putState(network, *state);
}

/// The shapes that muster wrote beside a model; nothing in Deeplearning4j's own files.
std::vector<Shape> shapesIn(const ZipFile& zip, Problems& problems) {
  const auto text = zip.read("muster.json", kMostConfiguration);
  std::vector<Shape> shapes;
  if (!text) return shapes;
  const auto value = parseJson(*text);
  require(value.is_object(), "muster.json is not an object");
  const Options options(value.get_object(), "muster.json", problems);
  const auto* const all = options.find({"inputShapes"});
  if (all == nullptr || !all->is_array()) return shapes;
  for (const auto& one : all->get_array()) {
    boost::json::object single{{"shape", one}};
    const auto sizes = Options(single, "muster.json", problems).counts("shape");
    shapes.emplace_back(std::span<const std::int64_t>(sizes));
  }
  return shapes;
}

constexpr const char* kNormalisation = "normalisation";

/// Puts the normaliser's numbers into the network's first layer.
void putNormaliser(Network& network, const Normaliser& normaliser) {
  const auto put = [&](const char* name, const std::vector<float>& numbers) {
    const std::string tensor = std::string(kNormalisation) + "." + name;
    for (const auto& block : network.blocks())
      if (block.kind == BlockKind::Statistics && block.segments->find(tensor) != nullptr) {
        const auto to = block.segment(tensor).span<float>();
        require(numbers.size() == 1 || numbers.size() == to.size(),
                "normalizer.bin has {} features, but the network {}", numbers.size(), to.size());
        for (std::size_t i = 0; i < to.size(); ++i) to[i] = numbers[numbers.size() == 1 ? 0 : i];
      }
  };
  put("shift", normaliser.shift);
  put("scale", normaliser.scale);
}

std::unique_ptr<Network> networkIn(const ZipFile& zip, const LoadOptions& options) {
  const auto text = zip.read("configuration.json", kMostConfiguration);
  require(text.has_value(), "holds no model of Deeplearning4j: there is no configuration.json in it");
  Problems problems;
  if (zip.has("preprocessor.bin")) problems.add("preprocessor.bin", "a Java object as preprocessor");
  const Description description = describe(*text, problems);
  require(description.iteration <= kMostCounter && description.epoch <= kMostCounter,
          "its counters are out of range");
  const auto normaliserBytes = zip.read("normalizer.bin", kMostConfiguration);
  std::optional<Normaliser> normaliser;
  FirstLayers first;
  if (normaliserBytes) {
    normaliser = readNormaliser(*normaliserBytes, problems);
    first.emplace_back(Normalise{.method = normaliser->method, .name = kNormalisation});
  }
  const auto shapes = options.inputShapes.empty() ? shapesIn(zip, problems) : options.inputShapes;
  Conversion conversion = convert(description, shapes, first, problems);
  fill(*conversion.network, conversion, zip);
  if (normaliser) putNormaliser(*conversion.network, *normaliser);
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
