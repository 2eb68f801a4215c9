#include "muster/datasets/image_set.h"

#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/data/split.h"
#include "muster/datasets/idx.h"

namespace muster {
namespace {

/// Checks the header of a file of bytes with `rank` dimensions and removes it.
Shape takeHeader(FileContents& file, int rank, std::string_view what) {
  const IdxHeader header = readIdxHeader(file.bytes, file.path);
  if (header.dtype != DType::UInt8 || header.shape.rank() != rank)
    throw FileError(file.path, fmt::format("{} expected, uint8 of {} dimension(s), but the file holds {} {}",
                                           what, rank, toString(header.dtype), header.shape.toString()));
  file.bytes.erase(file.bytes.begin(), file.bytes.begin() + static_cast<std::ptrdiff_t>(header.offset));
  return header.shape;
}

}  // namespace

ImageSet::ImageSet(std::vector<std::uint8_t> pixels, const Shape& image,
                   const std::vector<std::uint8_t>& labels, int classes, const std::filesystem::path& origin,
                   std::vector<std::string> names)
    : ImageSet(std::move(pixels), image, std::vector<std::int32_t>(labels.begin(), labels.end()), classes,
               origin, std::move(names)) {}

ImageSet::ImageSet(std::vector<std::uint8_t> pixels, const Shape& image, std::vector<std::int32_t> labels,
                   int classes, const std::filesystem::path& origin, std::vector<std::string> names)
    : pixels_(std::move(pixels)),
      labels_(std::move(labels)),
      imageShape_(image),
      imageBytes_(static_cast<std::size_t>(image.elements())),
      classes_(classes),
      origin_(origin) {
  require(image.rank() == 3 && pixels_.size() == labels_.size() * imageBytes_,
          "image set: {} bytes do not make {} images {}", pixels_.size(), labels_.size(), image.toString());
  const auto wrong = std::ranges::find_if(labels_, [&](int label) { return label < 0 || label >= classes; });
  if (wrong != labels_.end())
    throw FileError(origin, fmt::format("label {} of example {} is out of range: there are {} classes",
                                        *wrong, wrong - labels_.begin(), classes));
  if (names.empty()) return;
  require(std::ssize(names) == classes, "image set: {} names of {} classes", names.size(), classes);
  description_ = {.pictures = PictureDescription{.channels = image[0], .height = image[1], .width = image[2]},
                  .classes = std::move(names)};
}

std::shared_ptr<const ImageSet> ImageSet::part(std::span<const std::int64_t> rows) const {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  pixels.reserve(rows.size() * imageBytes_);
  for (const auto row : rows) {
    require(row >= 0 && row < size(), "image set: there is no image {} of {}", row, size());
    pixels.insert(pixels.end(), image(row).begin(), image(row).end());
    labels.push_back(label(row));
  }
  return std::make_shared<const ImageSet>(std::move(pixels), imageShape_, std::move(labels), classes_,
                                          origin_, description_.classes);
}

std::pair<std::shared_ptr<const ImageSet>, std::shared_ptr<const ImageSet>> splitAt(
    const std::shared_ptr<const ImageSet>& set, std::int64_t count, std::uint64_t seed) {
  require(set != nullptr, "split: there is no image set");
  const auto parts = splitRows(set->labels(), count, seed);
  return {set->part(parts.first), set->part(parts.second)};
}

std::pair<std::shared_ptr<const ImageSet>, std::shared_ptr<const ImageSet>> split(
    const std::shared_ptr<const ImageSet>& set, double fraction, std::uint64_t seed) {
  require(set != nullptr, "split: there is no image set");
  return splitAt(set, countOf(fraction, set->size()), seed);
}

std::shared_ptr<const ImageSet> limited(std::shared_ptr<const ImageSet> set, std::int64_t limit) {
  require(set != nullptr, "limit: there is no image set");
  if (set->size() <= limit) return set;
  return set->part(firstRows(set->labels(), limit));
}

std::shared_ptr<const ImageSet> idxImageSet(FileContents images, FileContents labels, int classes,
                                            std::vector<std::string> names) {
  const Shape shape = takeHeader(images, 3, "images");
  const Shape count = takeHeader(labels, 1, "labels");
  if (shape[0] != count[0])
    throw FileError(labels.path, fmt::format("{} labels, but {} holds {} images", count[0],
                                             images.path.string(), shape[0]));
  return std::make_shared<const ImageSet>(std::move(images.bytes), shape.dropFirst().prepend(1), labels.bytes,
                                          classes, labels.path, std::move(names));
}

std::shared_ptr<const ImageSet> readIdxImageSet(const std::filesystem::path& images,
                                                const std::filesystem::path& labels, int classes) {
  return idxImageSet(readContents(images), readContents(labels), classes);
}

}  // namespace muster
