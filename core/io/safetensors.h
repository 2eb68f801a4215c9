#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/tensor/tensor.h"

namespace muster {

/// The contents of a safetensors file: named tensors and a dictionary of strings. See core/io/README.md for
/// the format.
struct Safetensors {  /// A tensor of the file.
  struct Entry {
    std::string name;
    Tensor values;  ///< RowMajor on the CPU
  };
  std::vector<Entry> tensors = {};  ///< in the order of their data in the file
  /// Names and element types of tensors that were not read, as {"mask", "BOOL"}: see readSafetensors.
  std::map<std::string, std::string, std::less<>> others = {};
  std::map<std::string, std::string> metadata = {};

  void add(std::string name, Tensor values) { tensors.push_back({std::move(name), std::move(values)}); }
  /// @return nullptr if there is none of that name.
  const Tensor* find(std::string_view name) const;
  /// All tensors. Look names up here where there are many: a file may have a hundred thousand.
  std::map<std::string_view, const Tensor*> byName() const;
};

/// Whether a file that begins so may be a safetensors file: the length of its header, below 4 GiB, in eight
/// bytes, and the header, a JSON object.
inline bool isSafetensors(std::string_view beginning) {
  constexpr std::string_view kEnd{"\0\0\0\0{", 5};
  return beginning.substr(0, 9).ends_with(kEnd);
}

/// What readSafetensors does with tensors whose element type it cannot read.
enum class OtherTypes {
  Refuse,
  Skip,  ///< lists them in `Safetensors::others`
};

/// Reads a whole file; its tensors own their memory.
///
/// Strict: the header must be JSON of the right form, and the tensors must fill the file without gaps or
/// overlaps. Element types are F32, F64, U8 and I64; F16 and BF16 become F32.
/// @throws FileError naming the path and what is wrong; OutOfMemory naming the path.
Safetensors readSafetensors(const std::filesystem::path& path, OtherTypes others = OtherTypes::Refuse);

/// Writes a file, completely or not at all (see AtomicFile). Tensors with larger elements come first,
/// otherwise in the given order, so that each is aligned to its element size.
/// @throws InvalidArgument for a repeated tensor name, the name `__metadata__`, or a tensor that is
///         undefined, not RowMajor or not on the CPU; FileError if the file cannot be written; OutOfMemory
///         naming the path.
void writeSafetensors(const std::filesystem::path& path, const Safetensors& contents);

}  // namespace muster
