#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace muster {

/// A file of TensorBoard's records: appended to and never read. After a write that failed (a full disk) the
/// file ends with its last whole record, a warning is logged, and the rest of the records is lost: a training
/// continues without them. One thread at a time.
///
/// A record is its length as uint64, little-endian; the masked CRC32C of these 8 bytes; the bytes; their
/// masked CRC32C. Source: TensorFlow, tensorflow/core/lib/io/record_writer.
class EventFile {
 public:
  /// Makes the directory and a new file in it, `events.out.tfevents.SECONDS.HOST.PROCESS.NUMBER`.
  /// @throws FileError.
  explicit EventFile(const std::filesystem::path& directory);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  void append(std::string_view bytes);
  const std::filesystem::path& path() const { return path_; }
  /// Whether a write has failed.
  bool failed() const { return descriptor_ < 0; }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t wholeBytes_ = 0;  // of whole records
};

/// CRC32C (Castagnoli), rotated right by 15 bits and increased by a constant, so that a checksum of bytes
/// that hold checksums is no weak one.
std::uint32_t maskedCrc32c(std::string_view bytes);

}  // namespace muster
