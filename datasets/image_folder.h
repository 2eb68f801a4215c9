#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/io/png.h"
#include "muster/datasets/image_set.h"

namespace muster {

/// Pictures with the names of their classes.
struct ImageFolder {
  std::shared_ptr<const ImageSet> images;  ///< [N, 1 or 3, H, W]
  std::vector<std::string> classes;        ///< [class]
};

/// Reads `directory/<class>/*.png`, the classes and the files of each in the order of their names. Other
/// files are left alone; hidden ones, too.
/// @param classes  as another folder of the same data had them; empty: the directories, sorted.
/// @throws FileError for fewer than two classes or more than 256, one without pictures, a directory that is
/// no
///         class, or a picture that is broken or of another size than the first.
ImageFolder readImageFolder(const std::filesystem::path& directory, PngColour colour,
                            std::vector<std::string> classes = {});

}  // namespace muster
