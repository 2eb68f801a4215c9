#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/datasets/download.h"
#include "muster/datasets/file_bytes.h"

namespace muster {

/// Whether a published MD5 sum is of the packed file or of its contents.
enum class SumOf { Packed, Contents };

/// A gzip file of a published data set.
struct PublishedFile {
  std::string_view name;  ///< as published, "x.gz"; "x" is searched too
  std::string_view md5;
};

/// A data set published for download, with the sums of its files.
struct PublishedSet {
  std::string_view name;        ///< of its folder, as "fashion-mnist"
  std::string_view address;     ///< file names are appended to it
  const char* addressVariable;  ///< an environment variable that replaces the address
  SumOf sumOf;
  std::span<const PublishedFile> files;
};

/// Where to search for a published data set, and how much of it to use.
struct DataOptions {
  /// Searched first; must exist. Empty: not used.
  std::filesystem::path directory{};
  /// Whether a missing file may be downloaded.
  bool allowDownload = true;
  /// Replaces the published address.
  std::string address{};
  /// Only so many examples, each class in equal shares, of each class the first ones.
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();
  DownloadOptions download{};
};

/// Finds file `index` of `set` and reads it, unpacked.
///
/// Searches in this order: `options.directory`, the directory MUSTER_DATA_DIR, the cache, the network
/// (downloads go into the cache). In a directory the folder `<name>/` comes before the directory itself, and
/// in each the packed file before the plain one. The checksum decides whether a file is the right one; a file
/// of another set of `family` (same names) is skipped. If only sums of packed files are published, a plain
/// file cannot be checked: it is accepted with a warning in the log. A wrong file in the cache is downloaded
/// again.
///
/// @param family  data sets whose files have the same names; may include `set`.
/// @throws FileError for a directory that does not exist, a file that cannot be read, or a wrong sum (naming
///         both sums); DownloadError if the file is not available.
FileContents findPublished(const PublishedSet& set, std::size_t index, std::span<const PublishedSet> family,
                           const DataOptions& options);

// The steps of `findPublished`, for a set that searches other files between them.

/// A directory that the user gave.
struct GivenDirectory {
  std::filesystem::path path;
  const char* givenBy;  ///< for errors: an option or a variable
  /// The path. @throws FileError if the directory does not exist.
  const std::filesystem::path& existing() const;
};

/// `options.directory` and MUSTER_DATA_DIR, if set.
std::vector<GivenDirectory> givenDirectories(const DataOptions& options);

/// The file in `<directory>/<name>/` or `directory` itself; empty if it is in neither.
/// @throws FileError as `findPublished`.
std::optional<FileContents> findPublishedIn(const std::filesystem::path& directory, const PublishedSet& set,
                                            std::size_t index, std::span<const PublishedSet> family);

/// The file from the cache, or downloaded into it. @throws as `findPublished`.
FileContents fetchPublished(const PublishedSet& set, std::size_t index, const DataOptions& options);

}  // namespace muster
