#include "tests/fuzz/header_sweep.h"

#include "tests/fuzz/odd_texts.h"

namespace muster::fuzz {
namespace {

namespace json = boost::json;

json::value* metadataIn(Container& file, std::string_view key) {
  auto* const metadata = file.header.if_contains("__metadata__");
  if (!metadata || !metadata->is_object()) return nullptr;
  return metadata->get_object().if_contains(key);
}

/// A file whose header is this text.
Bytes withHeader(std::string_view text) {
  const std::uint64_t length = text.size();
  std::string all(sizeof length, '\0');
  std::memcpy(all.data(), &length, sizeof length);
  return bytesOf(all.append(text));
}

/// The file with a text that is not JSON in one of the parts that are.
Bytes withBroken(Container file, const std::string& text, std::size_t part) {
  static constexpr std::array<std::string_view, 2> kParts{"configuration", "muster.crc32"};
  if (part == kParts.size()) return withHeader(text);
  file.settleChecksums();
  if (auto* const value = metadataIn(file, kParts[part])) *value = text;
  return file.bytes();
}

}  // namespace

json::value* configurationIn(Container& file) {
  return metadataIn(file, "configuration");
}

Bytes withConfiguration(Container file, std::string_view text) {
  if (auto* const configuration = configurationIn(file)) *configuration = text;
  file.settleChecksums();
  return file.bytes();
}

HeaderSweep::HeaderSweep(Container file)
    : file_(std::move(file)), changes_({json::value(file_.header)}, Vocabulary()) {}

std::optional<Bytes> HeaderSweep::at(std::size_t number) const {
  constexpr std::size_t kParts = 3;
  if (number < foreignFiles().size()) return foreignFiles()[number];
  number -= foreignFiles().size();
  if (number < kParts * brokenJson().size())
    return withBroken(file_, brokenJson()[number / kParts], number % kParts);
  number -= kParts * brokenJson().size();
  const auto changed = changes_.at(number / 2);
  if (!changed) return std::nullopt;
  Container made{.header = changed->value.is_object() ? changed->value.get_object() : json::object(),
                 .data = file_.data};
  if (number % 2 == 0) made.settleOffsets();
  made.settleChecksums();
  return made.bytes();
}

}  // namespace muster::fuzz
