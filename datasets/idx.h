#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "muster/core/tensor/tensor.h"

namespace muster {

/// What the head of an IDX file says: the file's elements begin at byte `offset`.
struct IdxHeader {
  DType dtype = DType::UInt8;
  Shape shape;
  std::size_t offset = 0;
};

/// Reads the head of an IDX file and checks the length of the whole against it.
/// @param contents  the whole file, unpacked.
/// @param path      for the text of errors.
/// @throws FileError, with the numbers, for another magic number, an element type other than unsigned byte,
/// float and double, more dimensions than a Shape takes, or too few or too many bytes.
/// Source: the format's description on the MNIST page, http://yann.lecun.com/exdb/mnist/.
IdxHeader readIdxHeader(std::span<const std::uint8_t> contents, const std::filesystem::path& path);

/// Reads an IDX file, plain or packed by gzip, into a tensor of its shape and element type.
/// @throws FileError as `readIdxHeader` does, or where the file cannot be read or unpacked.
Tensor readIdx(const std::filesystem::path& path);

}  // namespace muster
