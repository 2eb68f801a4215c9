#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/io/png.h"
#include "muster/datasets/image_set.h"

namespace muster {

/// Images with the names of their classes.
struct ImageFolder {
  std::shared_ptr<const ImageSet> images;  ///< [N, 1 or 3, H, W]
  std::vector<std::string> classes;        ///< [class]
};

/// Reads `directory/<class>/*.png`, classes and files in the order of their names. Other files and hidden
/// files are ignored.
/// @param classes  the classes of another folder of the same data, in order; empty: the directories, sorted.
/// @throws FileError for fewer than two classes or more than 256, a class without images, a directory that
///         is not a class, or an image that is broken or of another size than the first; OutOfMemory naming
///         the directory if there is no room for all images, before more than the first one is read.
ImageFolder readImageFolder(const std::filesystem::path& directory, PngColour colour,
                            std::vector<std::string> classes = {});

}  // namespace muster
