#include "muster/datasets/image_folder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <system_error>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/base/text_table.h"
#include "muster/core/data/in_parallel.h"
#include "muster/core/device/memory_room.h"
#include "muster/core/io/detail/directory_names.h"
#include "muster/core/io/detail/file_shortage.h"

namespace muster {
namespace {

/// The names in a directory without the hidden ones, sorted.
std::vector<std::string> namesIn(const std::filesystem::path& directory) {
  std::error_code error;
  auto names = detail::namesIn(directory, error);
  if (error) throw FileError(directory, "cannot be read: " + error.message());
  std::erase_if(names, [](const auto& name) { return name.starts_with('.'); });
  std::ranges::sort(names);
  return names;
}

bool isDirectory(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

/// What a folder has beside the pictures of its classes, by the endings of the names.
class LeftOut {
 public:
  void add(const std::filesystem::path& path) {
    const auto ending = path.extension().string();
    ++counts_[isDirectory(path) ? "directories" : ending.empty() ? "names without an ending" : ending];
  }
  /// @param where  read files are, as in " in a directory".
  void say(const std::filesystem::path& directory, std::size_t pictures, std::string_view where) const {
    if (counts_.empty()) return;
    std::vector<std::string> kinds;
    for (const auto& [kind, count] : counts_) kinds.push_back(fmt::format("{} {}", count, kind));
    logWarning("{}: {} read, and left out {}; .png, .jpg and .jpeg{} are read", directory.string(),
               plural(pictures, "picture"), fmt::join(kinds, ", "), where);
  }

 private:
  std::map<std::string, std::size_t> counts_;
};

/// The pictures of a folder: paths relative to it, and classes.
struct Listing {
  std::vector<std::string> classes = {}, files = {};
  std::vector<std::int32_t> labels = {};  // [file]
  LeftOut leftOut = {};
};

std::vector<std::string> classesIn(const std::filesystem::path& directory, Listing& listing,
                                   std::vector<std::string> classes) {
  std::vector<std::string> found;
  for (const auto& name : namesIn(directory)) {
    if (isDirectory(directory / name))
      found.push_back(name);
    else if (isPicture(name))
      listing.leftOut.add(directory / name);
  }
  if (classes.empty()) classes = found;
  for (const auto& name : found)
    if (std::ranges::find(classes, name) == classes.end())
      throw FileError(directory / name, fmt::format("is no class; there are {}", csvList(classes)));
  if (classes.size() < 2)
    throw FileError(directory, fmt::format("has {} directories; expected one for each class, at least 2",
                                           classes.size()));
  return classes;
}

Listing listingOf(const std::filesystem::path& directory, const std::vector<std::string>& classes) {
  Listing all;
  all.classes = classesIn(directory, all, classes);
  for (std::size_t c = 0; c < all.classes.size(); ++c) {
    const auto& name = all.classes[c];
    const std::size_t before = all.files.size();
    for (const auto& file : namesIn(directory / name)) {
      const auto path = directory / name / file;
      if (!isPicture(path) || isDirectory(path)) {
        all.leftOut.add(path);
        continue;
      }
      all.files.push_back(name + "/" + file);
      all.labels.push_back(static_cast<std::int32_t>(c));
    }
    if (all.files.size() == before) throw FileError(directory / name, "has no PNG or JPEG files");
  }
  return all;
}

/// Reads all pictures into one block. The first one's size says what memory they need together.
std::vector<std::uint8_t> pixelsOf(const std::filesystem::path& directory, const Listing& listing,
                                   const PictureOptions& options, Shape& shape) {
  const Tensor first = readPicture(directory / listing.files.front(), options);
  shape = first.shape();
  const std::size_t count = listing.files.size(), bytes = first.bytes();
  requireMemoryRoom(static_cast<double>(count) * static_cast<double>(bytes),
                    fmt::format("its {} pictures of {} x {} pixels take", count, shape[2], shape[1]),
                    "fewer or smaller pictures need less");
  std::vector<std::uint8_t> pixels(count * bytes);
  std::ranges::copy(first.span<std::uint8_t>(), pixels.begin());
  inParallel(count - 1, [&](std::size_t i) {
    const auto path = directory / listing.files[i + 1];
    const Tensor picture = readPicture(path, options);
    if (picture.shape() != first.shape())
      throw FileError(path, fmt::format("has {} x {} pixels, and the first picture {} x {}; give a size, as "
                                        "in {{.size = {{{}, {}}}}} or data.height and data.width, to which "
                                        "all are brought",
                                        picture.shape()[2], picture.shape()[1], first.shape()[2],
                                        first.shape()[1], first.shape()[1], first.shape()[2]));
    std::ranges::copy(picture.span<std::uint8_t>(),
                      pixels.begin() + static_cast<std::ptrdiff_t>((i + 1) * bytes));
  });
  return pixels;
}

ImageFolder readWhole(const std::filesystem::path& directory, const ImageFolderOptions& options) {
  auto listing = listingOf(directory, options.classes);
  listing.leftOut.say(directory, listing.files.size(), " in a directory of each class");
  Shape shape;
  auto pixels = pixelsOf(directory, listing, {.colour = options.colour, .size = options.size}, shape);
  return {.images = std::make_shared<ImageSet>(std::move(pixels), shape, std::move(listing.labels),
                                               static_cast<int>(listing.classes.size()), directory,
                                               listing.classes),
          .classes = std::move(listing.classes),
          .files = std::move(listing.files)};
}

}  // namespace

ImageFolder readImageFolder(const std::filesystem::path& directory, const ImageFolderOptions& options) {
  return detail::onFile("readImageFolder", directory, [&] { return readWhole(directory, options); });
}

std::vector<std::string> picturesIn(const std::filesystem::path& directory, bool warnLeftOut) {
  std::vector<std::string> pictures;
  LeftOut leftOut;
  const std::function<void(const std::string&)> visit = [&](const std::string& within) {
    for (const auto& name : namesIn(directory / within)) {
      const auto path = within.empty() ? name : within + "/" + name;
      if (isDirectory(directory / path))
        visit(path);
      else if (isPicture(path))
        pictures.push_back(path);
      else
        leftOut.add(directory / path);
    }
  };
  visit({});
  if (warnLeftOut) leftOut.say(directory, pictures.size(), "");
  return pictures;
}

}  // namespace muster
