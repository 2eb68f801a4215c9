#include "muster/core/interop/dl4j/detail/normaliser.h"

#include <cmath>

#include "muster/core/base/error.h"
#include "muster/core/interop/dl4j/detail/nd4j_array.h"

namespace muster::dl4j::detail {
namespace {

constexpr std::string_view kPlace = "normalizer.bin";
constexpr double kSmallestRange = 1e-5;  // ND4J's EPS_THRESHOLD

Normaliser standardiser(JavaReader& reader, Problems& problems) {
  if (reader.unsignedNumber(1) != 0) problems.add(kPlace, "it standardises the labels, too");
  Normaliser made{
      .method = NormaliseMethod::Standardise, .shift = readArray(reader), .scale = readArray(reader)};
  for (float& scale : made.scale) scale = scale == 0 ? 1 : static_cast<float>(1.0 / scale);
  return made;
}

Normaliser minMax(JavaReader& reader, Problems& problems) {
  if (reader.unsignedNumber(1) != 0) problems.add(kPlace, "it scales the labels, too");
  const double from = reader.float64(), to = std::max(reader.float64(), from + kSmallestRange);
  Normaliser made{.method = NormaliseMethod::MinMax, .shift = readArray(reader), .scale = readArray(reader)};
  require(made.shift.size() == made.scale.size(), "has {} minima and {} maxima", made.shift.size(),
          made.scale.size());
  for (std::size_t i = 0; i < made.shift.size(); ++i) {
    const double least = made.shift[i], range = std::max(made.scale[i] - least, kSmallestRange);
    made.scale[i] = static_cast<float>((to - from) / range);
    made.shift[i] = static_cast<float>(least - from * range / (to - from));
  }
  return made;
}

/// From 0 to `largest` there to a range.
Normaliser imageScaler(JavaReader& reader) {
  const double from = reader.float64(), to = reader.float64(), largest = reader.float64();
  require(largest > 0 && to > from, "maps 0 to {} to the range {} to {}", largest, from, to);
  const double scale = (to - from) / largest;
  return {.method = NormaliseMethod::MinMax,
          .shift = {static_cast<float>(-from / scale)},
          .scale = {static_cast<float>(scale)}};
}

Normaliser read(JavaReader& reader, Problems& problems) {
  require(reader.text() == "NORMALIZER", "does not begin as normalisers of ND4J do");
  const auto version = reader.unsignedNumber(4);
  require(version == 1, "has version {}, expected 1", version);
  const std::string type = reader.text();
  if (type == "STANDARDIZE") return standardiser(reader, problems);
  if (type == "MIN_MAX") return minMax(reader, problems);
  if (type == "IMAGE_MIN_MAX") return imageScaler(reader);
  problems.add(kPlace, "a normaliser of type " + type);
  return {};
}

void writeHeader(std::string& bytes, std::string_view type) {
  writeText(bytes, "NORMALIZER");
  bytes.append({0, 0, 0, 1});
  writeText(bytes, type);
  bytes.push_back(0);  // not the labels
}

}  // namespace

Normaliser readNormaliser(std::string_view bytes, Problems& problems) {
  try {
    JavaReader reader(bytes);
    Normaliser made = read(reader, problems);
    require(made.shift.size() == made.scale.size(), "has {} means and {} deviations", made.shift.size(),
            made.scale.size());
    for (const auto* const numbers : {&made.shift, &made.scale})
      for (const float number : *numbers) require(std::isfinite(number), "has a number that is not finite");
    return made;
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{} {}", kPlace, error.what()));
  }
}

std::string writeNormaliser(const Normaliser& normaliser) {
  std::string bytes;
  std::vector<float> other;
  if (normaliser.method == NormaliseMethod::Standardise) {
    writeHeader(bytes, "STANDARDIZE");
    for (const float scale : normaliser.scale) other.push_back(static_cast<float>(1.0 / scale));
  } else {
    writeHeader(bytes, "MIN_MAX");
    writeFloat64(bytes, 0);
    writeFloat64(bytes, 1);
    for (std::size_t i = 0; i < normaliser.scale.size(); ++i)
      other.push_back(static_cast<float>(normaliser.shift[i] + 1.0 / normaliser.scale[i]));
  }
  writeArray(bytes, normaliser.shift);
  writeArray(bytes, other);
  return bytes;
}

}  // namespace muster::dl4j::detail
