#include "muster/datasets/image_folder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/device/memory_room.h"
#include "muster/core/io/detail/directory_names.h"
#include "muster/core/io/detail/file_shortage.h"

namespace muster {
namespace {

constexpr std::size_t kMostClasses = 256;  // a label is a byte

/// The names in a directory that `wanted` takes, sorted.
template <typename Wanted>
std::vector<std::string> namesIn(const std::filesystem::path& directory, const Wanted& wanted) {
  std::error_code error;
  auto names = detail::namesIn(directory, error);
  if (error) throw FileError(directory, "cannot be read: " + error.message());
  std::erase_if(names, [&](const auto& name) { return name.starts_with('.') || !wanted(directory / name); });
  std::ranges::sort(names);
  return names;
}

bool isDirectory(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

bool isPng(const std::filesystem::path& path) {
  const auto extension = path.extension();
  return extension == ".png" || extension == ".PNG";
}

/// The pictures read so far.
struct Pictures {
  std::size_t count = 0;  // of all that are to be read
  std::vector<std::uint8_t> pixels = {}, labels = {};
  int width = 0, height = 0;

  void add(const std::filesystem::path& path, PngColour colour, std::size_t label) {
    const PngPicture picture = readPng(path, colour);
    if (labels.empty()) beginWith(picture);
    if (picture.width != width || picture.height != height)
      throw FileError(path, fmt::format("has {} x {} pixels, and the first picture {} x {}", picture.width,
                                        picture.height, width, height));
    const std::size_t pixelsOfOne = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
    const std::size_t channels = colour == PngColour::Rgb ? 3 : 1;
    const std::size_t begin = pixels.size();
    pixels.resize(begin + channels * pixelsOfOne);
    for (std::size_t c = 0; c < channels; ++c)  // by channel, as networks read images
      for (std::size_t i = 0; i < pixelsOfOne; ++i)
        pixels[begin + c * pixelsOfOne + i] = picture.pixels[i * channels + c];
    labels.push_back(static_cast<std::uint8_t>(label));
  }

 private:
  /// All pictures have the size of the first one, so it tells what memory they need together.
  void beginWith(const PngPicture& first) {
    width = first.width;
    height = first.height;
    requireMemoryRoom(static_cast<double>(count) * static_cast<double>(first.pixels.size()),
                      fmt::format("its {} pictures of {} x {} pixels take", count, width, height),
                      "fewer or smaller pictures need less");
    pixels.reserve(count * first.pixels.size());
    labels.reserve(count);
  }
};

/// The paths of the pictures of each class. [class]
using Files = std::vector<std::vector<std::filesystem::path>>;

Files filesOf(const std::filesystem::path& directory, const std::vector<std::string>& classes) {
  Files files;
  for (const auto& name : classes) {
    const auto folder = directory / name;
    auto& paths = files.emplace_back();
    for (const auto& file : namesIn(folder, isPng)) paths.push_back(folder / file);
    if (paths.empty()) throw FileError(folder, "has no PNG files");
  }
  return files;
}

ImageFolder readWhole(const std::filesystem::path& directory, PngColour colour,
                      std::vector<std::string> classes) {
  const auto found = namesIn(directory, isDirectory);
  if (classes.empty()) classes = found;
  for (const auto& name : found)
    if (std::ranges::find(classes, name) == classes.end())
      throw FileError(directory / name, fmt::format("is no class; there are {}", fmt::join(classes, ", ")));
  if (classes.size() < 2 || classes.size() > kMostClasses)
    throw FileError(directory, fmt::format("has {} directories; expected 2 to {}, one for each class",
                                           classes.size(), kMostClasses));
  const auto files = filesOf(directory, classes);
  Pictures pictures;
  for (const auto& paths : files) pictures.count += paths.size();
  for (std::size_t c = 0; c < classes.size(); ++c)
    for (const auto& path : files[c]) pictures.add(path, colour, c);
  const Shape image{colour == PngColour::Rgb ? 3 : 1, pictures.height, pictures.width};
  return {.images = std::make_shared<ImageSet>(std::move(pictures.pixels), image, std::move(pictures.labels),
                                               static_cast<int>(classes.size()), directory),
          .classes = std::move(classes)};
}

}  // namespace

ImageFolder readImageFolder(const std::filesystem::path& directory, PngColour colour,
                            std::vector<std::string> classes) {
  return detail::onFile("readImageFolder", directory,
                        [&] { return readWhole(directory, colour, std::move(classes)); });
}

}  // namespace muster
