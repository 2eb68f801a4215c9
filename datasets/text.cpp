#include "muster/datasets/text.h"

#include <algorithm>
#include <set>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/utf8.h"
#include "muster/datasets/file_bytes.h"

namespace muster {
namespace {

constexpr char32_t kByteOrderMark = 0xFEFF;

bool isCodePoint(char32_t c) {
  return c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF);
}

std::string whyNot(const Utf8Character& read, std::string_view bytes) {
  if (read.announced == 0) return "cannot begin a character";
  if (read.bytes == read.announced) return "begins an invalid character";
  if (read.bytes == bytes.size()) return "begins a character that is cut off";
  return fmt::format("begins a character, but 0x{:02X} does not continue it",
                     static_cast<unsigned char>(bytes[read.bytes]));
}

/// The character at `at`; advances `at` to the next one.
char32_t decodeOne(std::string_view bytes, std::size_t& at, const std::filesystem::path& origin) {
  const std::string_view rest = bytes.substr(at);
  const Utf8Character read = readUtf8(rest);
  if (!read.valid)
    throw FileError(origin, fmt::format("is not UTF-8: the byte 0x{:02X} at offset {} {}; is it Latin-1?",
                                        static_cast<unsigned char>(rest.front()), at, whyNot(read, rest)));
  at += read.bytes;
  return read.character;
}

/// Calls `f` with each character, but not with a byte order mark at the start.
template <typename F>
void forEachCharacter(std::string_view bytes, const std::filesystem::path& origin, F f) {
  for (std::size_t at = 0; at < bytes.size();) {
    const bool first = at == 0;
    const char32_t character = decodeOne(bytes, at, origin);
    if (!first || character != kByteOrderMark) f(character);
  }
}

std::int64_t windowsOf(const std::shared_ptr<const CharacterText>& text, std::int64_t steps) {
  require(text != nullptr, "character iterator: there is no text");
  require(steps >= 1, "character iterator: a window needs at least 1 step, got {}", steps);
  const auto characters = static_cast<std::int64_t>(text->indices.size());
  if (characters < steps + 1)
    throw FileError(text->origin,
                    fmt::format("too short: it has {} characters, but a window of {} and the next character "
                                "need {}",
                                characters, steps, steps + 1));
  return (characters - 1) / steps;
}

}  // namespace

std::vector<char32_t> decodeUtf8(std::string_view bytes, const std::filesystem::path& origin) {
  std::vector<char32_t> characters;
  characters.reserve(bytes.size());
  forEachCharacter(bytes, origin, [&](char32_t character) { characters.push_back(character); });
  return characters;
}

std::string encodeUtf8(std::span<const char32_t> characters) {
  std::string bytes;
  const auto put = [&](char32_t byte) {
    bytes.push_back(static_cast<char>(static_cast<unsigned char>(byte)));
  };
  for (const char32_t c : characters) {
    require(isCodePoint(c), "utf-8: U+{:04X} is no character", static_cast<std::uint32_t>(c));
    if (c < 0x80) {
      put(c);
      continue;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;  // continuation bytes
    constexpr char32_t kLeads[] = {0, 0xC0, 0xE0, 0xF0};
    put(kLeads[more] | c >> 6 * more);
    for (int i = more; i-- > 0;) put(0x80 | (c >> 6 * i & 0x3F));
  }
  return bytes;
}

Vocabulary::Vocabulary(std::span<const char32_t> text) {
  const std::set<char32_t> all(text.begin(), text.end());  // avoids a sorted copy of a long text
  characters_.assign(all.begin(), all.end());
}

char32_t Vocabulary::character(std::int64_t index) const {
  require(index >= 0 && index < size(), "vocabulary: there is no character {}, only 0 to {}", index,
          size() - 1);
  return characters_[static_cast<std::size_t>(index)];
}

std::optional<std::int64_t> Vocabulary::find(char32_t character) const {
  const auto found = std::ranges::lower_bound(characters_, character);
  if (found == characters_.end() || *found != character) return std::nullopt;
  return found - characters_.begin();
}

std::vector<std::int64_t> Vocabulary::indicesOf(std::span<const char32_t> text) const {
  std::vector<std::int64_t> indices;
  indices.reserve(text.size());
  for (const char32_t character : text) {
    const auto index = find(character);
    if (!index)
      throw InvalidArgument(fmt::format("vocabulary: it does not know the character \"{}\" at place {}",
                                        encodeUtf8({&character, 1}), indices.size()));
    indices.push_back(*index);
  }
  return indices;
}

std::shared_ptr<const CharacterText> readCharacterText(const std::filesystem::path& path) {
  const auto file = readContents(path, kMostUnpackedText);
  const std::string_view bytes(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  std::set<char32_t> occurring;
  std::size_t count = 0;
  forEachCharacter(bytes, path, [&](char32_t character) {
    occurring.insert(character);
    ++count;
  });
  const std::vector<char32_t> known(occurring.begin(), occurring.end());
  CharacterText text{.vocabulary = Vocabulary(known), .indices = {}, .origin = path};
  text.indices.reserve(count);
  forEachCharacter(bytes, path, [&](char32_t character) {
    text.indices.push_back(static_cast<std::int32_t>(*text.vocabulary.find(character)));
  });
  return std::make_shared<const CharacterText>(std::move(text));
}

CharacterIterator::CharacterIterator(std::shared_ptr<const CharacterText> text, std::int64_t steps,
                                     std::int64_t batch, std::optional<std::uint64_t> shuffleSeed)
    : text_(std::move(text)), steps_(steps), batch_(batch), order_(windowsOf(text_, steps), shuffleSeed) {
  require(batch >= 1, "character iterator: a batch needs at least 1 window, got {}", batch);
}

CharacterIterator::CharacterIterator(const std::filesystem::path& path, std::int64_t steps,
                                     std::int64_t batch, std::optional<std::uint64_t> shuffleSeed)
    : CharacterIterator(readCharacterText(path), steps, batch, shuffleSeed) {}

bool CharacterIterator::next(Batch& batch) {
  const auto windows = order_.take(batch_);
  if (windows.empty()) return false;
  const Shape shape{static_cast<std::int64_t>(windows.size()), steps_};
  std::int64_t* feature =
      Batch::ensureOnly(batch.features, "features", shape, DType::Int64).data<std::int64_t>();
  std::int64_t* label = Batch::ensureOnly(batch.labels, "labels", shape, DType::Int64).data<std::int64_t>();
  batch.masks.clear();
  for (const auto window : windows) {
    const auto* from = text_->indices.data() + window * steps_;
    feature = std::copy_n(from, steps_, feature);
    label = std::copy_n(from + 1, steps_, label);
  }
  return true;
}

}  // namespace muster
