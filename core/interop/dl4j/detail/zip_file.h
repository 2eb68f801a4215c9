#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct zip;

namespace muster::dl4j::detail {

/// A zip file, open for reading. All members throw FileError naming the path. One thread at a time.
class ZipFile {
 public:
  explicit ZipFile(const std::filesystem::path& path);

  bool has(std::string_view name) const;
  /// The contents of a file in it; nothing if there is none.
  /// @param most  bytes that it may have; a larger one is refused, whatever size the zip file states.
  std::optional<std::string> read(const std::string& name, std::uint64_t most) const;

 private:
  struct Discard {
    void operator()(zip* archive) const;
  };
  std::filesystem::path path_;
  std::unique_ptr<zip, Discard> archive_;
};

/// Replaces the file at `path` by a zip file with these files in order, completely or not at all.
void writeZip(const std::filesystem::path& path, std::span<const std::pair<std::string, std::string>> files);

}  // namespace muster::dl4j::detail
