#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/base/dtype.h"
#include "muster/core/base/shape.h"
#include "muster/core/io/safetensors.h"

namespace muster::detail {

/// The JSON header of a safetensors file.
struct SafetensorsHeader {
  struct Entry {
    std::string name;
    std::string type;              ///< as the file names it: "BF16"
    DType dtype = DType::Float32;  ///< of its values once they are read
    Shape shape;
    std::uint64_t begin = 0, end = 0;  ///< bytes after the header
  };
  std::map<std::string, std::string> metadata;
  std::vector<Entry> tensors;  ///< sorted by position; also those whose type cannot be read
};

/// @param dataBytes  bytes after the header; the tensors must fill them without gap or overlap.
/// @param path       used in error messages.
/// @throws FileError naming the tensor and what is wrong.
SafetensorsHeader parseSafetensorsHeader(std::string_view text, std::uint64_t dataBytes,
                                         const std::filesystem::path& path,
                                         OtherTypes others = OtherTypes::Refuse);

}  // namespace muster::detail
