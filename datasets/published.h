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

/// Which bytes of a published file its MD5 sum was taken of.
enum class SumOf { Packed, Contents };

/// A gzip file of a published data set.
struct PublishedFile {
  std::string_view name;  ///< as published, "x.gz"; looked for as "x" too
  std::string_view md5;
};

/// A data set that somebody offers for download, with the sums of its files.
struct PublishedSet {
  std::string_view name;        ///< of its folder, as "fashion-mnist"
  std::string_view address;     ///< what the files' names are appended to
  const char* addressVariable;  ///< an environment variable that replaces the address
  SumOf sumOf;
  std::span<const PublishedFile> files;
};

/// Where a published data set is taken from, and how much of it.
struct DataOptions {
  /// Looked into first; must exist. Empty: no such directory.
  std::filesystem::path directory{};
  /// Whether a file that is nowhere else may be fetched.
  bool allowDownload = true;
  /// Fetch from here instead of the published address.
  std::string address{};
  /// Only the first `limit` examples.
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();
  DownloadOptions download{};
};

/// Finds file `index` of `set` and reads it, unpacked.
///
/// Looks, in this order, into `options.directory`, the directory MUSTER_DATA_DIR, the cache, and on the
/// network (from there into the cache). In a directory the folder `<name>/` comes first, then the directory
/// itself; in each the packed file, then the plain one. The checksum decides whether a file is the one: one
/// that is another set's of `family` (they share names) is passed over. A plain file whose set has sums of
/// the packed one only cannot be checked: it is taken, with a warning in the log. In the cache a wrong file
/// is fetched anew.
///
/// @param family  data sets whose files have the same names, `set` among them or not.
/// @throws FileError for a directory that does not exist, a file that cannot be read, or one with a wrong sum
/// (naming both); DownloadError where the file is nowhere to be had.
FileContents findPublished(const PublishedSet& set, std::size_t index, std::span<const PublishedSet> family,
                           const DataOptions& options);

// The steps of `findPublished`, for a set that has other files to look for between them.

/// A directory that the user gave.
struct GivenDirectory {
  std::filesystem::path path;
  const char* givenBy;  ///< for errors: an option or a variable
  /// The path. @throws FileError where there is no such directory.
  const std::filesystem::path& existing() const;
};

/// `options.directory` and MUSTER_DATA_DIR, those of them that are set.
std::vector<GivenDirectory> givenDirectories(const DataOptions& options);

/// The file in `<directory>/<name>/` or `directory` itself; nothing where it is in neither.
/// @throws FileError as `findPublished`.
std::optional<FileContents> findPublishedIn(const std::filesystem::path& directory, const PublishedSet& set,
                                            std::size_t index, std::span<const PublishedSet> family);

/// The file from the cache, or from the network into it. @throws as `findPublished`.
FileContents fetchPublished(const PublishedSet& set, std::size_t index, const DataOptions& options);

}  // namespace muster
