#include "muster/core/listeners/detail/best_value_note.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "muster/core/io/model_file.h"

namespace muster::detail {
namespace {

std::string prefixOf(const Monitored& monitored) {
  return fmt::format("{}, {}: ", monitored.name(), nameOf(monitored.better()));
}

}  // namespace

std::string bestValueNote(const Monitored& monitored, double value) {
  return fmt::format("{}{}", prefixOf(monitored), value);
}

std::optional<double> readBestValue(const std::filesystem::path& file, const Monitored& monitored) {
  if (!std::filesystem::exists(file)) return {};
  const ModelNotes notes = readModelNotes(file);
  const auto note = notes.find(std::string(kBestValueNote));
  const std::string prefix = prefixOf(monitored);
  if (note == notes.end() || !note->second.starts_with(prefix)) return {};
  const std::string text = note->second.substr(prefix.size());
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || !std::isfinite(value)) return {};
  return value;
}

}  // namespace muster::detail
