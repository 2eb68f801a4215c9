#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "muster/core/tensor/tensor.h"

namespace muster {

/// The header of an IDX file; the elements begin at byte `offset`.
struct IdxHeader {
  DType dtype = DType::UInt8;
  Shape shape;
  std::size_t offset = 0;
};

/// Reads the header of an IDX file and checks the file's length against it.
/// @param contents  the whole file, unpacked.
/// @param path      for error messages.
/// @throws FileError, with the numbers, for a wrong magic number, an element type other than unsigned byte,
///         float and double, more dimensions than a Shape has, or too few or too many bytes.
/// Source: the description on the MNIST page, http://yann.lecun.com/exdb/mnist/.
IdxHeader readIdxHeader(std::span<const std::uint8_t> contents, const std::filesystem::path& path);

/// Reads an IDX file, plain or gzip, into a tensor of its shape and element type.
/// @throws FileError as `readIdxHeader`, or if the file cannot be read or unpacked.
Tensor readIdx(const std::filesystem::path& path);

}  // namespace muster
