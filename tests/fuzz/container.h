#pragma once

#include <boost/json/value.hpp>

#include "tests/fuzz/target.h"

namespace muster::fuzz {

/// A tensor's numbers within a file, to be replaced by hostile ones.
class TensorNumbers {
 public:
  /// @param dtype  as in a safetensors file; numbers of an unknown type are bytes.
  TensorNumbers(std::string_view dtype, std::span<char> bytes) : dtype_(dtype), bytes_(bytes) {}

  std::size_t size() const { return bytes_.size() / width(); }
  /// How many hostile numbers the type has.
  std::size_t hostile() const;
  /// Replaces a number by one of them.
  void set(std::size_t element, std::size_t choice) const;

 private:
  std::size_t width() const;

  std::string dtype_;
  std::span<char> bytes_;
};

/// A safetensors file taken apart, to be changed.
struct Container {
  boost::json::object header;  ///< with "__metadata__"
  std::string data;

  static std::optional<Container> in(ByteSpan bytes);
  Bytes bytes() const;

  /// A text of the header's metadata; null if it has none of this name.
  boost::json::value* metadata(std::string_view name);
  /// Sets the tensors' offsets in order, according to their shapes and types, and resizes the data. A tensor
  /// that is too large for a test keeps its offsets.
  void settleOffsets();
  /// Sets the tensors' checksums.
  void settleChecksums();
  /// The names of the tensors that begin with `prefix` and are within the data.
  std::vector<std::string> tensors(std::string_view prefix) const;
  /// The numbers of one of them.
  TensorNumbers numbers(std::string_view tensor);
  /// Replaces the first number of a tensor of int64, if there is one of this name.
  void replace(std::string_view tensor, std::int64_t number);
  /// Replaces a number by a hostile one: in a tensor whose name begins with `prefix`, or anywhere if there is
  /// none.
  void mutateNumber(std::string_view prefix, Draw& draw);
  /// Mutates the header so many times.
  void mutateHeader(Draw& draw, std::size_t times = 1);
};

/// The file with another text as its configuration, and with its checksums.
Bytes withConfiguration(Container file, std::string_view text);

/// Every change of one place of a model file's header, broken JSON for its parts, and files of other formats.
Sweep headerSweep(const Container& file);

/// Every change of one tensor of some files: each of its first numbers and the last one replaced by each
/// hostile one of its type; the tensor left out, renamed, and with other types and shapes. Of files with
/// equal names of tensors the first one is changed.
/// @param settle  sets what depends on the change, except for offsets.
Sweep tensorSweep(std::vector<Container> files, void (*settle)(Container& file));

}  // namespace muster::fuzz
