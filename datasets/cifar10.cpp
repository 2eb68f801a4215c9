#include "muster/datasets/cifar10.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/datasets/tar.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr int kCifarClasses = 10;
constexpr std::size_t kImage = 3 * 32 * 32, kRecord = 1 + kImage;
constexpr std::size_t kRecordsPerFile = 10000;  // in each published file

constexpr std::array<std::string_view, 5> kTrainFiles{
    "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"};
constexpr std::array<std::string_view, 1> kTestFiles{"test_batch.bin"};

constexpr std::array<PublishedFile, 1> kArchive{
    {{"cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"}}};
constexpr PublishedSet kCifar10{"cifar-10", "https://www.cs.toronto.edu/~kriz/", "MUSTER_CIFAR10_URL",
                                SumOf::Packed, kArchive};
constexpr std::string_view kFolderInArchive = "cifar-10-batches-bin";

/// Splits records into pixels and labels.
class Records {
 public:
  /// @param file  for error messages.
  void add(std::span<const std::uint8_t> bytes, const fs::path& file) {
    if (bytes.empty() || bytes.size() % kRecord != 0)
      throw FileError(file,
                      fmt::format("its {} bytes are no whole number of records of {} bytes, a label and "
                                  "3 x 1024 of red, green and blue",
                                  bytes.size(), kRecord));
    for (std::size_t record = 0; !bytes.empty(); ++record, bytes = bytes.subspan(kRecord)) {
      if (bytes[0] >= kCifarClasses)
        throw FileError(file, fmt::format("record {} has label {}, but labels are 0 to {}", record, bytes[0],
                                          kCifarClasses - 1));
      labels_.push_back(bytes[0]);
      const auto pixels = bytes.subspan(1, kImage);
      pixels_.insert(pixels_.end(), pixels.begin(), pixels.end());
    }
  }

  /// For a published file, whose length is known.
  void addPublished(std::span<const std::uint8_t> bytes, const fs::path& file) {
    if (bytes.size() != kRecordsPerFile * kRecord)
      throw FileError(file, fmt::format("its {} bytes are not the {} of {} records of {}", bytes.size(),
                                        kRecordsPerFile * kRecord, kRecordsPerFile, kRecord));
    add(bytes, file);
  }

  void reserve(std::size_t records) {
    labels_.reserve(records);
    pixels_.reserve(records * kImage);
  }

  std::shared_ptr<const ImageSet> take(const fs::path& origin) {
    return std::make_shared<const ImageSet>(
        std::move(pixels_), Shape{3, 32, 32}, std::move(labels_), kCifarClasses, origin,
        std::vector<std::string>(Cifar10DataSetIterator::kClassNames.begin(),
                                 Cifar10DataSetIterator::kClassNames.end()));
  }

 private:
  std::vector<std::uint8_t> pixels_, labels_;
};

using Names = std::span<const std::string_view>;

/// The plain files in a folder; null if it has none. @throws FileError if only some exist.
std::shared_ptr<const ImageSet> readFolder(const fs::path& folder, Names names) {
  const auto present = [&](std::string_view name) { return fs::exists(folder / name); };
  if (std::ranges::none_of(names, present)) return nullptr;
  Records records;
  records.reserve(names.size() * kRecordsPerFile);
  for (const auto name : names) {
    if (!present(name)) throw FileError(folder / name, "is missing beside the other files of CIFAR-10");
    const auto file = readContents(folder / name);
    records.addPublished(file.bytes, file.path);
  }
  return records.take(folder / names.front());
}

std::shared_ptr<const ImageSet> readArchive(const FileContents& archive, Names names) {
  const auto entries = readTar(archive.bytes, archive.path);
  Records records;
  records.reserve(names.size() * kRecordsPerFile);
  for (const auto name : names) {
    const auto found = std::ranges::find_if(
        entries, [&](const TarEntry& entry) { return fs::path(entry.name).filename() == name; });
    if (found == entries.end())
      throw FileError(archive.path, fmt::format("the archive does not hold {}", name));
    records.addPublished(found->bytes, archive.path / found->name);
  }
  return records.take(archive.path);
}

std::shared_ptr<const ImageSet> lookInto(const fs::path& directory, Names names) {
  for (const auto& folder : {directory / kCifar10.name, directory / kFolderInArchive, directory})
    if (auto set = readFolder(folder, names)) return set;
  if (const auto archive = findPublishedIn(directory, kCifar10, 0, {})) return readArchive(*archive, names);
  return nullptr;
}

std::shared_ptr<const ImageSet> load(bool train, const DataOptions& options) {
  const Names names = train ? Names(kTrainFiles) : Names(kTestFiles);
  for (const auto& directory : givenDirectories(options))
    if (auto set = lookInto(directory.existing(), names)) return set;
  return readArchive(fetchPublished(kCifar10, 0, options), names);
}

}  // namespace

std::shared_ptr<const ImageSet> readCifar10(std::span<const std::filesystem::path> files) {
  require(!files.empty(), "CIFAR-10: no file to read was given");
  Records records;
  for (const auto& path : files) {
    const auto file = readContents(path);
    records.add(file.bytes, file.path);
  }
  return records.take(files.front());
}

Cifar10DataSetIterator::Cifar10DataSetIterator(std::int64_t batch, bool train, std::uint64_t seed,
                                               const DataOptions& options)
    : ImageSetIterator(load(train, options), batch, train ? std::optional(seed) : std::nullopt,
                       options.limit) {}

}  // namespace muster
