#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/data/epoch_order.h"

namespace muster {

/// The code points of UTF-8 bytes. A byte order mark at the start is skipped.
/// @throws FileError naming `origin` and the offset of the first invalid byte: a stray continuation, a lead
///         without its continuations, an overlong form, a surrogate, or beyond U+10FFFF.
std::vector<char32_t> decodeUtf8(std::string_view bytes, const std::filesystem::path& origin);

/// @throws InvalidArgument for an invalid code point.
std::string encodeUtf8(std::span<const char32_t> characters);

/// The characters that a model knows, numbered in code point order. A value.
class Vocabulary {
 public:
  Vocabulary() = default;
  /// All characters that occur in `text`.
  explicit Vocabulary(std::span<const char32_t> text);

  std::int64_t size() const { return static_cast<std::int64_t>(characters_.size()); }
  /// 0 <= index < size(). @throws InvalidArgument otherwise.
  char32_t character(std::int64_t index) const;
  /// Empty if the character is not in the vocabulary.
  std::optional<std::int64_t> find(char32_t character) const;
  /// Indices of a text. @throws InvalidArgument naming the first unknown character and its position.
  std::vector<std::int64_t> indicesOf(std::span<const char32_t> text) const;
  /// All characters, in order: `Vocabulary(characters())` equals this one.
  const std::vector<char32_t>& characters() const { return characters_; }

  bool operator==(const Vocabulary&) const = default;

 private:
  std::vector<char32_t> characters_;  // [index], ascending
};

/// A text as indices into the vocabulary of its own characters. Shared by iterators.
struct CharacterText {
  Vocabulary vocabulary;
  std::vector<std::int32_t> indices;  ///< [place in the text]
  std::filesystem::path origin;
};

/// Reads a UTF-8 text, plain or gzip, in memory of five times its bytes. @throws FileError as decodeUtf8, or
/// if it cannot be read, or a gzip file unpacks to more than 256 MiB.
std::shared_ptr<const CharacterText> readCharacterText(const std::filesystem::path& path);

/// Gives a text in windows of `steps` characters, without overlap: features int64 [B, T], and labels int64
/// [B, T], the next character of each. Characters that do not fill the last window are left out; the last
/// batch of an epoch may be smaller.
class CharacterIterator : public DataSetIterator {
 public:
  /// @param steps        characters a window, at least 1.
  /// @param batch        windows per batch, at least 1.
  /// @param shuffleSeed  if given, each epoch is shuffled by (seed, epoch).
  /// @throws InvalidArgument for numbers below 1; FileError naming the text if it is too short for one window
  ///         and the next character.
  CharacterIterator(std::shared_ptr<const CharacterText> text, std::int64_t steps, std::int64_t batch,
                    std::optional<std::uint64_t> shuffleSeed = std::nullopt);
  CharacterIterator(const std::filesystem::path& path, std::int64_t steps, std::int64_t batch,
                    std::optional<std::uint64_t> shuffleSeed = std::nullopt);

  void reset(std::int64_t epoch) override { order_.reset(epoch); }
  bool next(Batch& batch) override;
  std::int64_t skip(std::int64_t batches) override { return order_.skip(batches, batch_); }
  std::optional<std::int64_t> examples() const override { return order_.count(); }
  std::optional<std::int64_t> batchSize() const override { return batch_; }

  /// Whether to leave out the last batch of each epoch if it is not full; by default it is given. Call it
  /// between epochs: it holds at once.
  void setDropLast(bool drop) { order_.keepFull(drop ? batch_ : 1); }

  const std::shared_ptr<const CharacterText>& text() const { return text_; }
  const Vocabulary& vocabulary() const { return text_->vocabulary; }
  std::int64_t steps() const { return steps_; }

 private:
  std::shared_ptr<const CharacterText> text_;
  std::int64_t steps_, batch_;
  EpochOrder order_;  // of the windows
};

}  // namespace muster
