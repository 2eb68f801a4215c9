#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "muster/core/base/shape.h"
#include "muster/core/data/input_description.h"
#include "muster/datasets/file_bytes.h"

namespace muster {

/// Labelled images as bytes, read once and shared by iterators. Immutable.
class ImageSet {
 public:
  /// @param pixels   all images, one after the other.
  /// @param image    [C, H, W], the shape of one image.
  /// @param labels   one per image, 0 .. classes-1.
  /// @param origin   the source: a file or a word.
  /// @param names    [class]; empty: they have none.
  /// @throws InvalidArgument if the sizes do not match; FileError naming `origin` and the index of the first
  ///         label out of range.
  ImageSet(std::vector<std::uint8_t> pixels, const Shape& image, std::vector<std::int32_t> labels,
           int classes, const std::filesystem::path& origin, std::vector<std::string> names = {});
  ImageSet(std::vector<std::uint8_t> pixels, const Shape& image, const std::vector<std::uint8_t>& labels,
           int classes, const std::filesystem::path& origin, std::vector<std::string> names = {});

  std::int64_t size() const { return static_cast<std::int64_t>(labels_.size()); }
  int classes() const { return classes_; }
  const Shape& imageShape() const { return imageShape_; }
  /// The pixels of image `index`; 0 <= index < size(), not checked.
  std::span<const std::uint8_t> image(std::int64_t index) const {
    return std::span(pixels_).subspan(static_cast<std::size_t>(index) * imageBytes_, imageBytes_);
  }
  /// The pixels of all images, one after the other.
  std::span<const std::uint8_t> pixels() const { return pixels_; }
  /// The source; for a set of two files, the file of the labels.
  const std::filesystem::path& origin() const { return origin_; }
  int label(std::int64_t index) const { return labels_[static_cast<std::size_t>(index)]; }
  /// The classes' names and the images' size; empty if the classes have no names.
  const InputDescription& description() const { return description_; }
  /// [size()]
  std::vector<std::int64_t> labels() const { return {labels_.begin(), labels_.end()}; }

  /// Copies the images `rows`, in that order. @throws InvalidArgument for a row that does not exist.
  std::shared_ptr<const ImageSet> part(std::span<const std::int64_t> rows) const;

 private:
  std::vector<std::uint8_t> pixels_;
  std::vector<std::int32_t> labels_;
  Shape imageShape_;
  std::size_t imageBytes_;
  int classes_;
  std::filesystem::path origin_;
  InputDescription description_;
};

/// Divides images into one part to train with and one to validate or test with, at random by `seed`; both
/// have the classes in equal shares. Copies the images.
///
///     auto [train, validation] = split(pets.images, 0.9, /*seed=*/1);
///
/// @param fraction  of the images for the first part, between 0 and 1.
/// @throws InvalidArgument for another fraction, or a first part without an image of some class.
std::pair<std::shared_ptr<const ImageSet>, std::shared_ptr<const ImageSet>> split(
    const std::shared_ptr<const ImageSet>& set, double fraction, std::uint64_t seed);
/// As above, with `count` images in the first part.
std::pair<std::shared_ptr<const ImageSet>, std::shared_ptr<const ImageSet>> splitAt(
    const std::shared_ptr<const ImageSet>& set, std::int64_t count, std::uint64_t seed);

/// `limit` images, each class in equal shares, of each class the first ones; `set` itself if it has not more.
std::shared_ptr<const ImageSet> limited(std::shared_ptr<const ImageSet> set, std::int64_t limit);

/// Makes a set [N, 1, H, W] from the contents of two IDX files: bytes [N, H, W] and bytes [N].
/// @param names  [class] or empty.
/// @throws FileError naming the file and the numbers if one is broken or the two do not match.
std::shared_ptr<const ImageSet> idxImageSet(FileContents images, FileContents labels, int classes,
                                            std::vector<std::string> names = {});

/// As above, from files, plain or gzip.
std::shared_ptr<const ImageSet> readIdxImageSet(const std::filesystem::path& images,
                                                const std::filesystem::path& labels, int classes);

}  // namespace muster
