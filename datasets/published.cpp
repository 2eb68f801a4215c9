#include "muster/datasets/published.h"

#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/io/input_file.h"
#include "muster/datasets/cache.h"
#include "muster/datasets/md5.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

/// A file, its contents, and the sums of both, computed on demand.
class Candidate {
 public:
  explicit Candidate(const fs::path& path) : Candidate(path, readFile(path)) {}
  Candidate(const fs::path& path, std::vector<std::uint8_t> raw)
      : path_(path), raw_(std::move(raw)), packed_(isGzip(raw_)) {}

  /// The sum to compare with a published one; empty for a plain file if the published sum is of the packed
  /// file.
  std::optional<std::string> sum(SumOf of) {
    if (of == SumOf::Contents) return sumOnce(contentsSum_, contents());
    if (packed_) return sumOnce(rawSum_, raw_);
    return std::nullopt;
  }

  FileContents take() {
    contents();
    return {path_, std::move(packed_ ? unpacked_ : raw_)};
  }

 private:
  static std::string sumOnce(std::string& sum, const std::vector<std::uint8_t>& bytes) {
    if (sum.empty()) sum = md5(bytes);
    return sum;
  }

  const std::vector<std::uint8_t>& contents() {
    if (packed_ && unpacked_.empty()) unpacked_ = unpackGzip(raw_, path_);
    return packed_ ? unpacked_ : raw_;
  }

  fs::path path_;
  std::vector<std::uint8_t> raw_;
  std::vector<std::uint8_t> unpacked_;
  std::string rawSum_;
  std::string contentsSum_;
  bool packed_;
};

std::string_view whose(SumOf of) {
  return of == SumOf::Packed ? "its MD5 sum" : "the MD5 sum of its contents";
}

/// The set of `family` whose file `index` this is, if any.
const PublishedSet* ownerOf(Candidate& file, std::size_t index, std::span<const PublishedSet> family) {
  for (const auto& set : family)
    if (index < set.files.size() && file.sum(set.sumOf) == set.files[index].md5) return &set;
  return nullptr;
}

/// Reads the file at `path` if it is the right one; empty if it belongs to another set.
std::optional<FileContents> readIfRight(const fs::path& path, const PublishedSet& set, std::size_t index,
                                        std::span<const PublishedSet> family) {
  Candidate file(path);
  const auto& published = set.files[index].md5;
  const auto sum = file.sum(set.sumOf);
  if (sum == published) return file.take();
  if (const auto* owner = ownerOf(file, index, family)) {
    logInfo("{} belongs to {}; the search for the file of {} continues", path.string(), owner->name,
            set.name);
    return std::nullopt;
  }
  if (sum)
    throw FileError(path, fmt::format("wrong checksum: {} is {}, but {}'s is {}", whose(set.sumOf), *sum,
                                      set.name, published));
  logWarning("{}: cannot be checked, only the packed file's sum was published", path.string());
  return file.take();
}

std::string addressOf(const PublishedSet& set, std::size_t index, const DataOptions& options) {
  std::string base = options.address;
  if (base.empty()) base = pathFromEnvironment(set.addressVariable).string();
  if (base.empty()) base = set.address;
  if (!base.ends_with('/')) base += '/';
  return base.append(set.files[index].name);
}

/// What is wrong with downloaded bytes; empty if they are right.
std::string problemWith(std::span<const std::uint8_t> bytes, const fs::path& path, const PublishedSet& set,
                        std::size_t index) {
  try {
    Candidate file(path, {bytes.begin(), bytes.end()});
    const auto sum = file.sum(set.sumOf);
    if (sum == set.files[index].md5) return "";
    if (!sum) return "what arrived is not a gzip file";
    return fmt::format("wrong content: {} is {}, but {} was published", whose(set.sumOf), *sum,
                       set.files[index].md5);
  } catch (const FileError& error) {
    return error.what();
  }
}

constexpr const char* kNameDirectory =
    "if you have the files, name their directory in the environment variable MUSTER_DATA_DIR";

/// As in "mnist: train-images-idx3-ubyte.gz is neither in data nor in /home/me/.cache/muster/mnist".
std::string notFound(const PublishedSet& set, std::size_t index, const DataOptions& options,
                     const fs::path& cache) {
  auto text = fmt::format("{}: {} is", set.name, set.files[index].name);
  const auto given = givenDirectories(options);
  for (const auto& directory : given)
    text += fmt::format(" {} in {}", &directory == given.data() ? "neither" : "nor", directory.path.string());
  return text + fmt::format("{} in {}", given.empty() ? " not" : " nor", cache.string());
}

}  // namespace

const fs::path& GivenDirectory::existing() const {
  if (fileTypeOf(path) != fs::file_type::directory)
    throw FileError(path, fmt::format("no such directory, given by {}", givenBy));
  return path;
}

std::vector<GivenDirectory> givenDirectories(const DataOptions& options) {
  std::vector<GivenDirectory> given{{options.directory, "DataOptions::directory"},
                                    {pathFromEnvironment("MUSTER_DATA_DIR"), "MUSTER_DATA_DIR"}};
  std::erase_if(given, [](const GivenDirectory& directory) { return directory.path.empty(); });
  return given;
}

std::optional<FileContents> findPublishedIn(const fs::path& directory, const PublishedSet& set,
                                            std::size_t index, std::span<const PublishedSet> family) {
  const fs::path packed = set.files[index].name;
  for (const auto& folder : {directory / set.name, directory})
    for (const auto& name : {packed, packed.stem()})
      if (fileTypeOf(folder / name) != fs::file_type::not_found)
        if (auto found = readIfRight(folder / name, set, index, family)) return found;
  return std::nullopt;
}

FileContents fetchPublished(const PublishedSet& set, std::size_t index, const DataOptions& options) {
  const auto cached = cacheDirectory() / set.name / set.files[index].name;
  const auto address = addressOf(set, index, options);
  if (fileTypeOf(cached) != fs::file_type::not_found) {
    try {
      if (auto found = readIfRight(cached, set, index, {})) return *found;
    } catch (const FileError& error) {
      if (!options.allowDownload) throw;
      logWarning("{}; it will be fetched anew", error.what());
    }
  } else if (!options.allowDownload) {
    throw DownloadError(fmt::format("{}, and fetching {} is not allowed; {}",
                                    notFound(set, index, options, cached.parent_path()), address,
                                    kNameDirectory));
  }
  const auto check = [&](std::span<const std::uint8_t> bytes) {
    return problemWith(bytes, cached, set, index);
  };
  try {
    download(address, cached, check, options.download);
  } catch (const DownloadError& error) {
    throw DownloadError(fmt::format("{}; {}; {}", notFound(set, index, options, cached.parent_path()),
                                    error.what(), kNameDirectory));
  }
  return readContents(cached);
}

FileContents findPublished(const PublishedSet& set, std::size_t index, std::span<const PublishedSet> family,
                           const DataOptions& options) {
  for (const auto& directory : givenDirectories(options))
    if (auto found = findPublishedIn(directory.existing(), set, index, family)) return *found;
  return fetchPublished(set, index, options);
}

}  // namespace muster
